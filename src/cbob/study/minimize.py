"""`cbob.minimize`: a study from Python, in one call. The command `cbob run` does the same from a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cbob.constraints import Constraint, as_constraints
from cbob.errors import StudyError
from cbob.parameters import Parameter
from cbob.space import Space
from cbob.study.limits import Limits
from cbob.study.plan import RETRIES, Plan, Target

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

    from cbob.study.records import Record
    from cbob.study.runner import Times, View
    from cbob.study.tally import Standing

__all__ = ["Result", "minimize", "need_study_extra"]

NEEDED = ("optuna", "psutil", "cloudpickle")


@dataclass(frozen=True)
class Result:
    """What a study found so far."""

    best: Record | None  # the best trial known to be feasible
    trials: list[Record]
    standing: Standing  # how many finished, were feasible, broke each limit, failed in each way
    study: optuna.Study  # for Optuna's own tools
    times: Times  # where the time of this run went

    @property
    def params(self) -> dict[str, Any] | None:
        """The best parameters; None while no trial was feasible."""
        return None if self.best is None else dict(self.best.params)

    @property
    def value(self) -> float | None:
        """The best objective; None while no trial was feasible."""
        return None if self.best is None else self.best.value


def need_study_extra() -> None:
    """An ImportError that says how to get what studies need, if it is not there."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ImportError(f"studies need {' and '.join(missing)}: pip install 'cbob[study]'")


def minimize(
    function: Target,
    space: Space | Mapping[str, Parameter],
    *,
    constraints: str | Constraint | Iterable[str | Constraint] = (),
    budget: int = 100,
    workers: int = 1,
    limits: Limits | None = None,
    storage: str | BaseStorage | None = None,
    name: str | None = None,
    direction: str = "minimize",
    strategy: str | None = None,
    surrogate: str | None = None,
    initial: int | str | None = None,
    seed: int = 0,
    retries: int = RETRIES,
    isolate: bool = True,
    ray: str | None = None,
    show: bool = False,
) -> Result:
    """Optimise what a function returns, a real evaluation that may fail in any way, until `budget` trials are finished.

    function    takes the parameters as one dict; returns a number, or a dict with "value" and the readings of constraints;
                or "module:function", or a command such as ["./simulate", "--thrust={thrust}"] that prints a line of JSON
    budget      finished trials, those that the storage already holds included: the same call again goes on where it ended
    workers     evaluations at a time
    limits      wall-clock time and memory of one evaluation; needs `isolate`
    storage     a URL such as "sqlite:///lander.db", or a storage of Optuna's; None keeps the study in memory
    name        of the study in its storage; None takes the function's
    strategy    a name of `cbob.strategies.STRATEGIES`; None is the sampler's default
    seed        the same seed asks the same points
    retries     how often a trial is tried again whose worker died
    isolate     each evaluation in a process of its own; False calls the function here, quicker and without a net
    ray         the address of a Ray cluster that evaluates, or "local"
    show        print how it goes
    """
    need_study_extra()
    from cbob.study.run import run_study
    from cbob.study.views import Quiet, terminal_view

    if ray is not None and not isolate:
        raise StudyError("on a Ray cluster every evaluation is isolated: leave out isolate=False")
    plan = Plan(
        name=_name(function) if name is None else name,
        space=space if isinstance(space, Space) else Space(space),
        target=function,
        constraints=as_constraints(constraints),
        direction=direction,
        budget=budget,
        workers=workers,
        retries=retries,
        limits=Limits() if limits is None else limits,
        isolate=isolate,
        strategy=strategy,
        surrogate=surrogate,
        initial=initial,
        seed=seed,
    )
    view: View
    with terminal_view(plan.name) if show else Quiet() as view:
        return run_study(plan, storage, view=view, ray=ray)


def _name(function: Target) -> str:
    """What to call a study that was given no name."""
    if isinstance(function, str):
        return function
    if callable(function):
        name = getattr(function, "__name__", type(function).__name__)
        return str(name) if str(name).isidentifier() else "study"
    return str(function[0]) if function else "study"
