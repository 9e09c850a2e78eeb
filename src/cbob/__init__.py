"""cbob: optimisation of expensive experiments that can fail.

The names below are all there is to import; each is loaded when it is first used, so that `import cbob` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbob import acquisition, bench, models, strategies
    from cbob.constraints import Constraint
    from cbob.errors import (
        CbobError,
        ConstraintError,
        Infeasible,
        LimitsError,
        SpaceError,
        StateError,
        StorageError,
        StrategyError,
        StudyError,
        TargetError,
        TrialError,
    )
    from cbob.optimizer import Optimizer, Prediction
    from cbob.space import Categorical, Float, Int, Space
    from cbob.study.limits import Limits
    from cbob.study.minimize import Result, minimize
    from cbob.trials import Kind, Reading, Status, Trial

__version__ = "0.1.0"

_HOMES = {
    "Optimizer": "optimizer",
    "Prediction": "optimizer",
    "Space": "space",
    "Float": "space",
    "Int": "space",
    "Categorical": "space",
    "Constraint": "constraints",
    "Trial": "trials",
    "Reading": "trials",
    "Kind": "trials",
    "Status": "trials",
    "CbobError": "errors",
    "SpaceError": "errors",
    "ConstraintError": "errors",
    "TrialError": "errors",
    "StrategyError": "errors",
    "StateError": "errors",
    "LimitsError": "errors",
    "TargetError": "errors",
    "StudyError": "errors",
    "StorageError": "errors",
    "Infeasible": "errors",
    "Limits": "study.limits",
    "Result": "study.minimize",
    "minimize": "study.minimize",
}
_ROOMS = ("acquisition", "bench", "models", "strategies")

__all__ = [
    "Categorical",
    "CbobError",
    "Constraint",
    "ConstraintError",
    "Float",
    "Infeasible",
    "Int",
    "Kind",
    "Limits",
    "LimitsError",
    "Optimizer",
    "Prediction",
    "Reading",
    "Result",
    "Space",
    "SpaceError",
    "StateError",
    "Status",
    "StorageError",
    "StrategyError",
    "StudyError",
    "TargetError",
    "Trial",
    "TrialError",
    "acquisition",
    "bench",
    "minimize",
    "models",
    "strategies",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"cbob.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return import_module(f"cbob.{name}")
    raise AttributeError(f"module 'cbob' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
