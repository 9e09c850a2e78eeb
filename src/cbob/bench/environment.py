"""What made a result: versions, and fingerprints of the code that a result depends on."""

from __future__ import annotations

import ast
import hashlib
import json
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

import cbob

__all__ = ["environment", "identity"]

SOURCE = Path(cbob.__file__).parent
BENCH = SOURCE / "bench"
# Rooms beside the engine, which no result depends on.
OUTSIDE = ("bench", "study", "integrations", "report", "cli.py")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PACKAGES = ("numpy", "scipy", "scikit-learn", "xgboost-cpu", "gymnasium", "Box2D", "mujoco", "coco-experiment")


@cache
def environment() -> dict[str, Any]:
    """Plain JSON: the versions and the code that results made here depend on. Where results are to agree to the last bit, the
    kernels that BLAS has chosen for this processor have to agree too."""
    engine = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in OUTSIDE]
    problems = [*(BENCH / "problems").rglob("*.py"), BENCH / "scenarios.py"]
    blas = {f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip() for pool in threadpool_info()}
    return {
        "cbob": cbob.__version__,
        "engine": fingerprint(engine),
        "problems": fingerprint(problems),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "blas": sorted(name for name in blas if "blas" in name),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def identity(made_by: dict[str, Any]) -> str:
    """A short name of an environment."""
    return hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:8]


def fingerprint(paths: Iterable[Path]) -> str:
    """Changes with the code, but not with comments, docstrings or layout."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                node.body[0] = ast.Pass()
        digest.update(f"{path.relative_to(SOURCE)}\n{ast.unparse(tree)}\n".encode())
    return digest.hexdigest()[:10]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
