"""The shape of the house: imports point one way, and `import cbob` stays light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "cbob"

# A room may import itself and the rooms above it. A room not named here (study, integrations, bench,
# report, cli) stands outside the engine: it may import all of these, and none of these may import it.
ENGINE = (
    "errors",
    "numerics",
    "linalg",
    "ascent",
    "parameters",
    "space",
    "constraints",
    "trials",
    "observations",
    "models",
    "acquisition",
    "candidates",
    "strategies",
    "optimizer",
)


def imported_rooms(path: Path, package: Path) -> Iterator[str]:
    """The rooms of `package` that the module at `path` imports, wherever in the file it does so."""
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(parts[: len(parts) - node.level]) if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == package.name:
                yield target[1] if len(target) > 1 else "__init__"


def imports_against_the_flow(package: Path) -> list[str]:
    found = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        room = place.with_suffix("").parts[0]
        if room not in ENGINE:
            continue
        allowed = ENGINE[: ENGINE.index(room) + 1]
        found += [f"{place} imports {other}" for other in imported_rooms(path, package) if other not in allowed]
    return found


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_imports_point_one_way() -> None:
    assert imports_against_the_flow(SOURCE) == []


def test_an_import_against_the_flow_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "cbob"
    (package / "models").mkdir(parents=True)
    (package / "models" / "gp.py").write_text("from .. import linalg, optimizer\nfrom ..space import Space\n")
    (package / "space.py").write_text("def late():\n    import cbob.models.gp\n    from cbob import Float\n")
    (package / "study.py").write_text("from cbob import optimizer\n")
    assert imports_against_the_flow(package) == [
        "models/gp.py imports optimizer",
        "space.py imports models",
        "space.py imports Float",
    ]


def test_import_cbob_loads_no_heavy_package() -> None:
    loaded = set(run_python("import sys, cbob; print(*sys.modules)").split())
    assert "cbob" in loaded
    assert not loaded & {"scipy", "matplotlib", "mpmath", "numpy.testing", "numpy.f2py", "multiprocessing"}


def test_import_cbob_takes_under_three_tenths_of_a_second() -> None:
    clock = "import time; start = time.perf_counter(); import cbob; print(time.perf_counter() - start)"
    assert min(float(run_python(clock)) for _ in range(5)) < 0.3
