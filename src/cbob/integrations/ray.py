"""Evaluations on a Ray cluster: one task for each, isolated on its node as it would be here.

The study, its sampler and its storage stay in the driver. Whatever the evaluation does is its own report, made on the node;
only where the worker or the node itself dies is the trial lost, and tried again. Needs `pip install 'cbob[ray]'`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cbob.constraints import Constraint
from cbob.errors import StudyError
from cbob.study.limits import Limits
from cbob.study.plan import Plan
from cbob.study.report import FailureKind, Report
from cbob.study.target import Command, Function, as_target

__all__ = ["RayEvaluator"]

LOOK = 0.5  # seconds between looks whether the study was stopped


class RayEvaluator:
    """Evaluates on the cluster at `address`: "auto", "ray://host:port", "host:port", or "local" for one of this machine's own.

    Each task takes one CPU and, where there is a limit, that much of the node's memory; Ray starts no more than fit.
    """

    def __init__(self, plan: Plan, address: str) -> None:
        if find_spec("ray") is None:
            raise ImportError("a Ray cluster needs ray: pip install 'cbob[ray]'")
        import ray

        self._target = as_target(plan.target)
        self._constraints, self._limits, self._workdir = plan.constraints, plan.limits, plan.folder
        if not ray.is_initialized():
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
            except (ConnectionError, ValueError) as error:
                raise StudyError(f"no Ray cluster at {address!r}: {error}") from error
            self._ours = True
        else:
            self._ours = False
        memory = {} if plan.limits.bytes is None else {"memory": plan.limits.bytes}
        self._task = ray.remote(num_cpus=1, max_retries=0, **memory)(_evaluate)
        self._lock = threading.Lock()
        self._running: set[Any] = set()
        self._closed = False

    def evaluate(self, params: Mapping[str, Any]) -> Report:
        """The report of one evaluation, from wherever it ran."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        with self._lock:
            if self._closed:
                return Report.failed(FailureKind.STOPPED, "the study ended it")
            task = self._task.remote(self._target, self._constraints, self._limits, self._workdir, dict(params))
            self._running.add(task)
        try:
            while not ray.wait([task], timeout=LOOK)[0]:
                if self._closed:
                    return Report.failed(FailureKind.STOPPED, "the study ended it")
            return Report.from_dict(ray.get(task))
        except RayTaskError as error:  # our own code failed there: another version, or none
            return Report.failed(FailureKind.LOAD, f"the node cannot evaluate: {error}")
        except RayError as error:
            if self._closed:
                return Report.failed(FailureKind.STOPPED, "the study ended it")
            lines = str(error).strip().splitlines() or [""]
            return Report.failed(FailureKind.LOST, f"{type(error).__name__}: {lines[0]}")
        finally:
            with self._lock:
                self._running.discard(task)

    def close(self) -> None:
        """End whatever still runs; a cluster that was there before us stays."""
        import ray

        with self._lock:
            self._closed = True
            running, self._running = self._running, set()
        if ray.is_initialized():
            for task in running:
                ray.cancel(task, force=True)
            if self._ours:
                ray.shutdown()


def _evaluate(
    target: Function | Command,
    constraints: tuple[Constraint, ...],
    limits: Limits,
    workdir: Path | None,
    params: dict[str, Any],
) -> dict[str, Any]:
    """On the node."""
    from cbob.study.evaluate import evaluate

    return evaluate(target, params, constraints=constraints, limits=limits, workdir=workdir).to_dict()
