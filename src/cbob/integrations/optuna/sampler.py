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
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from cbob.constraints import Constraint, as_constraints
from cbob.errors import StrategyError
from cbob.integrations.optuna.branches import Branch, branches, deciding, next_branch
from cbob.integrations.optuna.history import PROPOSED, History, Seen, margins_to_store
from cbob.integrations.optuna.spaces import Codec
from cbob.observations import direction_sign
from cbob.optimizer import Optimizer
from cbob.strategies import Strategy
from cbob.trials import Trial

__all__ = ["CBOBSampler", "checkpoint"]

_ANY = FloatDistribution(0.0, 1.0)  # stands for a space that is not yet known

FORESEEN = 3  # asks of other workers that are foreseen, each at the cost of an ask; with more, the space is filled instead
TRIES = 3  # asks until a point is taken although another worker has taken much the same in the meantime
CLOSE = 0.01  # how near it may be, in the unit cube
BELIEVED = 200  # points that are believed at most, the latest: each costs as much as a trial that was told


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
        strategy: str | Strategy = "cbob",
        surrogate: str = "hlgp",
        initial: int | str | None = None,
        seed: int | None = None,
    ) -> None:
        self._constraints = as_constraints(constraints)
        self._strategy, self._surrogate, self._initial = strategy, surrogate, initial
        self.seed = self._engine(Codec({"x": _ANY}), (), "minimize", seed).seed  # whatever is wrong is said at once
        self._memories: dict[str, Any] = {}  # the last checkpoint's, by what they depend on
        self._seen: dict[int, Seen] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lock": None, "_seen": {}, "_memories": {}}  # what is kept only saves time

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    # ---- what Optuna calls ----

    def reseed_rng(self) -> None:
        """Nothing: trials that ask at the same time get different random numbers by their order."""

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of the branch whose turn it is."""
        history = self._history(study, trial)
        sign = direction_sign(_direction(study))
        branch = next_branch(branches(history), sign, history.limits(self._constraints))
        met = history.distributions()
        return {} if branch is None else {name: met[name] for name in sorted(branch.names)}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]) -> dict[str, Any]:
        """The next point of these parameters."""
        direction = _direction(study)
        if not search_space:
            return {}
        with self._lock:
            for _ in range(TRIES):
                history = self._history(study, trial)
                params = self._propose(history, search_space, direction)
                stored = {name: float(search_space[name].to_internal_repr(value)) for name, value in params.items()}
                news = self._history(study, trial).since(history)
                if not _crowded(news, Codec(search_space), stored):
                    break
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, stored)  # what other workers see of it
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value: for parameters, or ranges, that no trial had before."""
        _direction(study)
        codec = Codec({param_name: param_distribution})
        if codec.space is None:
            return codec.decode({})[param_name]
        rng = np.random.default_rng([self.seed, self._history(study, trial).count, zlib.crc32(param_name.encode())])
        return codec.decode(codec.space.decode(codec.space.spread(rng.random((1, 1)))[0]))[param_name]

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Lets Optuna know of the constraints that `report` told of."""
        for name, margin in margins_to_store(trial, self._constraints).items():
            study._storage.set_trial_system_attr(trial._trial_id, f"constraints:{name}", margin)

    # ---- how it works ----

    def _history(self, study: Study, trial: FrozenTrial) -> History:
        return History.of(study.get_trials(deepcopy=False), trial.number, started=trial.datetime_start, kept=self._seen)

    def _propose(self, history: History, search_space: Mapping[str, BaseDistribution], direction: str) -> dict[str, Any]:
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
        codec = Codec(search_space, deciding(branch, others, search_space))
        if codec.space is None:
            return codec.decode({})
        optimizer = self._resumed(history, branch, codec, direction)
        for _ in range(min(history.silent, FORESEEN)):
            optimizer.ask()
        return codec.decode(optimizer.ask().params)

    def _resumed(self, history: History, branch: Branch, codec: Codec, direction: str) -> Optimizer:
        """The engine as it would stand, had it asked for and been told all this itself."""
        limits = history.limits(self._constraints)
        results = [one for one in branch.told if one.counts(limits)]
        believed = [one for one in branch.told if not one.counts(limits)] + list(branch.out)
        placed = [(one, point) for one in results if (point := codec.encode(one.stored)) is not None]
        told = [one.conclude(number, point, limits) for number, (one, point) in enumerate(placed)]
        held = [(one, point) for one in believed if (point := codec.encode(one.stored)) is not None]
        trials = told + [Trial(number, point) for number, (_, point) in enumerate(held[-BELIEVED:], len(told))]
        before = sum(one.state != TrialState.RUNNING or one.number < history.asking for one, _ in held)
        crowded = history.silent > FORESEEN
        ahead = history.silent if crowded else 0
        engine = self._engine(
            codec, [limit.constraint for limit in limits], direction, self.seed, "sobol" if crowded else self._strategy
        )
        memories: Mapping[str, Any] = {}
        if told and engine.strategy.uses_models and len(trials) >= engine.initial:
            memories = self._remembered(engine, told[: checkpoint(len(told))], [one.number for one, _ in placed])
        state = engine.state() | {
            "asked": len(trials),
            "designed": len(told) + before + ahead,  # the design goes on behind whatever came before: no two share a row of it
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
        self,
        codec: Codec,
        constraints: Sequence[Constraint],
        direction: str,
        seed: int | None,
        strategy: str | Strategy | None = None,
    ) -> Optimizer:
        assert codec.space is not None
        return Optimizer(
            codec.space,
            constraints=constraints,
            strategy=self._strategy if strategy is None else strategy,
            surrogate=self._surrogate,
            direction=direction,
            initial=self._initial,
            seed=seed,
        )


def checkpoint(told: int) -> int:
    """The size at which hyperparameters were last searched for from scratch: every size below 16, then 8 in each doubling,
    so that at most an eighth of what is known came later."""
    step = 1 << max(told.bit_length() - 4, 0)
    return told // step * step


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
