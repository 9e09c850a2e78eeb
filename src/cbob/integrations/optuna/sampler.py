"""CBOBSampler: what Optuna calls.

What it asks is a function of its seed and of what the storage holds, of nothing else: each ask builds an engine anew from
the trials that count. So a process that was killed goes on as if it had not been, and processes that share a storage need
nothing but the storage. An engine that goes on for long carries its hyperparameters from fit to fit; here they are carried
from the last of a fixed series of sizes (`checkpoint`), at which they are searched for from scratch.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from cbob.candidates import Taken, is_taken
from cbob.constraints import Constraint, as_constraints
from cbob.errors import StrategyError
from cbob.integrations.optuna.branches import Branch, branches, deciding, next_branch
from cbob.integrations.optuna.history import FORECAST, PROPOSED, History, Limit, Placed, Seen, margins_to_store
from cbob.integrations.optuna.spaces import Codec
from cbob.observations import direction_sign
from cbob.optimizer import Optimizer
from cbob.space import Space
from cbob.strategies import Strategy, as_strategy
from cbob.trials import Forecast, Trial

__all__ = ["CBOBSampler", "checkpoint"]

Array = NDArray[np.float64]

_ANY = FloatDistribution(0.0, 1.0)  # stands for a space that is not yet known

FORESEEN = 3  # asks of other workers that are foreseen, each at the cost of an ask; with more, the space is filled instead
TRIES = 3  # asks until a point is taken although another worker has taken much the same in the meantime
CLOSE = 0.01  # how near it may be, in the unit cube
ROWS = 6  # at least 2^6 rows of the design are made at once
BELIEVED = 200  # points that are believed at most, the latest: each costs as much as a trial that was told


@dataclass(frozen=True)
class Proposal:
    """A point in the user's values, and how it was found."""

    params: dict[str, Any]
    forecast: Forecast | None = None  # None where surrogates had no say
    designed: bool = False  # the very row of the design that has the trial's place

    @property
    def system_attrs(self) -> dict[str, Any]:
        """What is kept with the trial, so that later asks can tell what such promises were worth."""
        return {} if self.forecast is None else {FORECAST: self.forecast.to_dict()}


class CBOBSampler(BaseSampler):
    """Constrained Bayesian optimisation for `optuna.create_study(sampler=...)`; it learns from trials that failed.

    constraints   texts like "fuel <= 40", whose raw readings `report(trial, readings=...)` tells. Any other name that
                  `trial.set_constraint` or `report` brings up is learned as well, and holds up to 0.
    strategy      a name of `cbob.strategies.STRATEGIES`, or a Strategy of your own
    surrogate     what models a limit whose readings are partly hidden: "hlgp" or "gpc"
    initial       size of the space-filling start; None chooses 2 d + 2, "paper" is 11 d
    seed          makes every run repeatable; None draws one
    """

    def __init__(
        self,
        *,
        constraints: str | Constraint | Iterable[str | Constraint] = (),
        strategy: str | Strategy = "auto",
        surrogate: str = "hlgp",
        initial: int | str | None = None,
        seed: int | None = None,
    ) -> None:
        self._constraints = as_constraints(constraints)
        self._strategy, self._surrogate, self._initial = strategy, surrogate, initial
        self.seed = self._engine(Codec({"x": _ANY}), (), "minimize", seed, strategy).seed  # whatever is wrong is said at once
        self._memories: dict[str, Any] = {}  # the last checkpoint's, by what they depend on
        self._seen: dict[int, Seen] = {}
        self._last_codec: tuple[Any, Codec] | None = None
        self._rows: tuple[Space, Array] | None = None  # of the design
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {
            "_lock": None,
            "_seen": {},
            "_last_codec": None,
            "_rows": None,
            "_memories": {},
        }  # what is kept only saves time

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    # ---- what Optuna calls ----

    def reseed_rng(self) -> None:
        """Nothing: trials that ask at the same time get different random numbers by their order."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of the branch whose turn it is."""
        history = self._history(study.get_trials(deepcopy=False), trial.number)
        sign = direction_sign(_direction(study))
        branch = next_branch(branches(history), sign, history.limits(self._constraints))
        met = history.distributions()
        return {} if branch is None else {name: met[name] for name in sorted(branch.names)}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """The next point of these parameters, stored for other workers to see."""
        _direction(study)
        if not search_space:
            return {}
        proposal = self.choose(study, trial, search_space)
        stored = {PROPOSED: _stored(proposal.params, search_space), **proposal.system_attrs}
        for key, value in stored.items():
            study._storage.set_trial_system_attr(trial._trial_id, key, value)
        return proposal.params

    def choose(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: Mapping[str, BaseDistribution],
        *,
        trials: Sequence[FrozenTrial] | None = None,
        place: int | None = None,
    ) -> Proposal:
        """The next point of these parameters, not stored; another one if somebody took much the same while it was chosen.
        Whoever has just read the trials may give them, and the trial's own row of the design if it is nobody else's."""
        for _ in range(TRIES):
            known = study.get_trials(deepcopy=False) if trials is None else trials
            history = self._history(known, trial.number, started=trial.datetime_start)
            proposal = self._next(study, history, search_space, place)
            if proposal.designed and place is not None:
                break
            trials = study.get_trials(deepcopy=False)
            news = self._history(trials, trial.number).since(history)
            if not _crowded(news, Codec(search_space), _stored(proposal.params, search_space)):
                break
        return proposal

    def propose(
        self,
        study: Study,
        search_space: Mapping[str, BaseDistribution],
        trials: Sequence[FrozenTrial],
        *,
        number: int,
        place: int | None = None,
    ) -> Proposal:
        """The next point of these parameters for a trial that is yet to be created under this number, as things stood when
        the trials were read. Nothing is read and nothing stored.

        place    the row of the space-filling design for this trial, should it take one from there; None counts the trials
        """
        return self._next(study, self._history(trials, number), search_space, place)

    @property
    def only_designs(self) -> bool:
        """Whether the strategy is nothing but the space-filling design, which needs to know of no trials."""
        return not as_strategy(self._strategy)[1].uses_models

    def design(self, search_space: Mapping[str, BaseDistribution], place: int) -> dict[str, Any]:
        """The point of one row of the space-filling design."""
        with self._lock:
            codec = self._codec(search_space, {})
            return codec.decode({} if codec.space is None else codec.space.decode(self._row(codec.space, place)))

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value: for parameters, or ranges, that no trial had before."""
        _direction(study)
        codec = Codec({param_name: param_distribution})
        if codec.space is None:
            return codec.decode({})[param_name]
        count = self._history(study.get_trials(deepcopy=False), trial.number).count
        rng = np.random.default_rng([self.seed, count, zlib.crc32(param_name.encode())])
        return codec.decode(codec.space.decode(codec.space.spread(rng.random((1, 1)))[0]))[param_name]

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Lets Optuna know of the constraints that `report` told of."""
        for key, margin in _margins(trial, self._constraints).items():
            study._storage.set_trial_system_attr(trial._trial_id, key, margin)

    def attributes(self, user_attrs: Mapping[str, Any]) -> dict[str, float]:
        """The system attributes that `after_trial` would store for a trial that has these user attributes, and nothing else."""
        return _margins(create_trial(state=TrialState.RUNNING, user_attrs=dict(user_attrs)), self._constraints)

    # ---- how it works ----

    def _history(self, trials: Iterable[FrozenTrial], number: int, *, started: datetime | None = None) -> History:
        return History.of(trials, number, started=started, kept=self._seen)

    def _next(
        self, study: Study, history: History, search_space: Mapping[str, BaseDistribution], place: int | None
    ) -> Proposal:
        direction = _direction(study)
        with self._lock:
            return self._propose(history, search_space, direction, place)

    def _propose(
        self, history: History, search_space: Mapping[str, BaseDistribution], direction: str, place: int | None
    ) -> Proposal:
        chosen = frozenset(name for name, spot in search_space.items() if not spot.single())
        found = branches(history)
        own = [branch for branch in found if branch.names == chosen] or [
            branch
            for branch in found
            if branch.names > chosen  # some parameters are fixed from outside
        ]
        told = {one for branch in own for one in branch.told}
        branch = Branch(
            chosen,
            tuple(one for one in history.told if one in told),
            tuple(one for one in history.out if chosen <= one.stored.keys()),
        )
        others = [other for other in found if other not in own]
        codec = self._codec(search_space, deciding(branch, others, search_space))
        if codec.space is None:
            return Proposal(codec.decode({}))
        known = _Known.of(history, branch, codec, self._constraints)
        place = known.before(history.asking) + history.silent if place is None else place
        strategy = "sobol" if history.silent > FORESEEN else self._strategy  # where many choose at this moment
        engine = self._engine(codec, [limit.constraint for limit in known.limits], direction, self.seed, strategy)
        by_design = not engine.strategy.uses_models or len(known) + history.silent < engine.initial or not known.told
        if by_design:  # nobody has to be foreseen: each trial has a row of its own
            row = self._row(codec.space, place)
            if not is_taken(row, known.taken(codec.space.width)):
                return Proposal(codec.decode(codec.space.decode(row)), designed=True)
            return Proposal(codec.decode(self._resumed(engine, known, place).ask().params))
        optimizer = self._resumed(engine, known, place - history.silent)
        for _ in range(history.silent):
            optimizer.ask()
        trial = optimizer.ask()
        return Proposal(codec.decode(trial.params), trial.forecast)

    def _row(self, space: Space, place: int) -> Array:
        """A row of the space-filling design. They are made in blocks, as long as all before."""
        if self._rows is None or self._rows[0] is not space or len(self._rows[1]) <= place:
            self._rows = space, space.sobol(1 << max(place.bit_length(), ROWS), seed=self.seed)
        return self._rows[1][place]  # type: ignore[no-any-return]

    def _codec(self, search_space: Mapping[str, BaseDistribution], only: Mapping[str, tuple[float, ...]]) -> Codec:
        """The codec of the last ask if it is of the same space: trials keep their rows by it."""
        key = (dict(search_space), dict(only))
        if self._last_codec is None or self._last_codec[0] != key:
            self._last_codec = key, Codec(*key)
        return self._last_codec[1]

    def _resumed(self, engine: Optimizer, known: _Known, place: int) -> Optimizer:
        """The engine as it would stand, had it asked for and been told all this itself."""
        told = [one.conclude(number, placed.point, known.limits) for number, (one, placed) in enumerate(known.told)]
        trials = told + [Trial(number, placed.point) for number, (_, placed) in enumerate(known.believed, len(told))]
        memories: Mapping[str, Any] = {}
        if told and engine.strategy.uses_models and len(trials) >= engine.initial:
            memories = self._remembered(engine, told[: checkpoint(len(told))], [one.number for one, _ in known.told])
        state = engine.state() | {
            "asked": len(trials),
            "designed": max(place, 0),
            "revision": len(told),
            "learned_at": checkpoint(len(told)) if memories else -1,
            "trials": [trial.to_dict() for trial in trials],
            "memories": memories,
        }
        return Optimizer.from_state(state, strategy=engine.strategy)

    def _remembered(self, engine: Optimizer, first: Sequence[Trial], numbers: Sequence[int]) -> Mapping[str, Any]:
        """What the engine learns from the first trials, from scratch. The last answer is kept: it takes longest."""
        key = repr((engine.state(), numbers[: len(first)]))
        if key not in self._memories:
            engine = Optimizer.from_state(
                engine.state() | {"revision": len(first), "trials": [trial.to_dict() for trial in first]},
                strategy=engine.strategy,
            )
            engine.learn()
            self._memories = {key: engine.state()["memories"]}
        return self._memories[key]  # type: ignore[no-any-return]

    def _engine(
        self, codec: Codec, constraints: Sequence[Constraint], direction: str, seed: int | None, strategy: str | Strategy
    ) -> Optimizer:
        assert codec.space is not None
        return Optimizer(
            codec.space,
            constraints=constraints,
            strategy=strategy,
            surrogate=self._surrogate,
            direction=direction,
            initial=self._initial,
            seed=seed,
        )


@dataclass(frozen=True)
class _Known:
    """The trials of a branch that lie in the space of a codec, as the engine is to see them."""

    limits: tuple[Limit, ...]
    told: tuple[tuple[Seen, Placed], ...]  # those with a result, in order of completion
    held: tuple[tuple[Seen, Placed], ...]  # those that are believed: pruned, or still out

    @classmethod
    def of(cls, history: History, branch: Branch, codec: Codec, constraints: Sequence[Constraint]) -> _Known:
        limits = history.limits(constraints)
        told, held = list[tuple[Seen, Placed]](), list[tuple[Seen, Placed]]()
        for one in (*branch.told, *branch.out):
            if (placed := one.placed(codec)) is not None:
                (told if one.state.is_finished() and one.counts(limits) else held).append((one, placed))
        return cls(limits, tuple(told), tuple(held))

    @property
    def believed(self) -> tuple[tuple[Seen, Placed], ...]:
        """The latest of those that are held."""
        return self.held[-BELIEVED:]

    def __len__(self) -> int:
        return len(self.told) + len(self.believed)

    def before(self, number: int) -> int:
        """How many of them came first. Which have ended by now makes no difference, so that two that ask at the same time do
        not get the same."""
        return sum(one.number < number for one, _ in (*self.told, *self.held))

    def taken(self, width: int) -> Taken:
        """The rows that the engine does not ask for again."""
        rows = ([placed.row for _, placed in trials] for trials in (self.told, self.believed))
        return Taken(*(np.array(some).reshape(-1, width) for some in rows))


def checkpoint(told: int) -> int:
    """The size at which hyperparameters were last searched for from scratch: every size below 16, then 8 in each doubling,
    so that at most an eighth of what is known came later."""
    step = 1 << max(told.bit_length() - 4, 0)
    return told // step * step


def _stored(params: Mapping[str, Any], search_space: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """A point as Optuna stores it."""
    return {name: float(search_space[name].to_internal_repr(value)) for name, value in params.items()}


def _margins(trial: FrozenTrial, constraints: Sequence[Constraint]) -> dict[str, float]:
    """The system attributes by which Optuna knows of constraints."""
    return {f"constraints:{name}": margin for name, margin in margins_to_store(trial, constraints).items()}


def _crowded(news: Sequence[Seen], codec: Codec, stored: Mapping[str, float]) -> bool:
    """Whether one of these trials has much the same point."""
    point = codec.encode(stored)
    if codec.space is None or point is None:
        return False
    row = codec.space.encode(point)
    others = (codec.encode(one.stored) for one in news)
    return any(np.abs(codec.space.encode(other) - row).max() < CLOSE for other in others if other is not None)


def _direction(study: Study) -> str:
    """ "minimize" or "maximize"."""
    if len(study.directions) > 1:
        raise StrategyError(
            f"CBOBSampler searches for one objective, not for {len(study.directions)}: see cbob's docs/optuna.md"
        )
    return "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
