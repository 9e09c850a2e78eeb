"""Ask and tell: the only mutable object of the engine.

An `Optimizer` holds the trials and what its surrogates remember; everything else is derived from these. So `state()` is plain
JSON, and an optimizer made from it asks bit for bit what the original would have asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from cbob.acquisition.thompson import improvements
from cbob.candidates import Taken, best_untaken, is_taken
from cbob.constraints import RAN, Constraint, as_constraints
from cbob.errors import CbobError, StateError, StrategyError, TrialError, listed, plain, shown
from cbob.linalg import one_thread
from cbob.models.gp import Posterior
from cbob.models.hlgp import GPC, GPR, HLGP, Memory
from cbob.numerics import log_ndtr
from cbob.observations import Dataset, dataset, direction_sign
from cbob.space import Parameter, Space
from cbob.strategies import STRATEGIES, Beliefs, Experience, Strategy, as_strategy, search
from cbob.trials import Forecast, Trial, conclude

Array = NDArray[np.float64]
AnyHLGP = TypeVar("AnyHLGP", bound=HLGP)

SURROGATES = ("hlgp", "gpc")
OBJECTIVE, LIMIT = "objective", "constraint "  # keys of what the surrogates remember
STATE_VERSION = 1
STATE_KEYS = (
    "version", "space", "constraints", "strategy", "surrogate", "direction", "initial", "seed",
    "asked", "designed", "revision", "learned_at", "trials", "memories",
)  # fmt: skip
DESIGN_BLOCK, DESIGN_TRIES, DESIGN_TRIES_IF_FINITE = 8, 1024, 64


@dataclass(frozen=True)
class Prediction:
    """What the surrogates expect of a point, in the user's units.

    Where readings span decades the surrogate sees their logarithm, and its belief about a reading is skewed. So `mean` is the
    middle of the belief, the value it takes to lie above or below with equal odds, and `std` half the width of the range that
    holds it with 68%; without skew these are the mean and the standard deviation. Both are NaN where nothing was ever measured.
    For the learned constraint "it ran" there are no units, and values above 0 are failures.
    """

    mean: float
    std: float
    constraints: Mapping[str, tuple[float, float]]  # name -> (mean, std)
    probability: float  # that all constraints hold


@dataclass(frozen=True)
class _Surrogates:
    objective: GPR
    limits: dict[str, HLGP]


class Optimizer:
    """Minimises (or maximises) an objective over a space under constraints, from tries that may fail.

    space        a Space, or {name: parameter}
    constraints  texts like "fuel <= 40", or Constraint objects
    strategy     a name of `cbob.strategies.STRATEGIES`, or a Strategy of your own
    surrogate    what models a limit whose readings are partly hidden: "hlgp" or "gpc"
    initial      size of the space-filling start; None chooses 2 d + 2, "paper" is the paper's 11 d
    seed         makes every run repeatable; None draws one
    """

    def __init__(
        self,
        space: Space | Mapping[str, Parameter],
        *,
        constraints: str | Constraint | Iterable[str | Constraint] = (),
        strategy: str | Strategy = "auto",
        surrogate: str = "hlgp",
        direction: str = "minimize",
        initial: int | str | None = None,
        seed: int | None = None,
    ) -> None:
        self.space = Space(space)
        self.constraints = as_constraints(constraints)
        self.strategy_name, self.strategy = as_strategy(strategy)
        if surrogate not in SURROGATES:
            raise StrategyError(f"surrogate must be one of {', '.join(SURROGATES)}, not {shown(surrogate)}")
        self.surrogate = surrogate
        direction_sign(direction)
        self.direction = direction
        self.initial = _initial_size(initial, len(self.space.names))
        self.seed = _seed(seed)
        self._trials: dict[int, Trial] = {}
        self._asked = 0  # trials asked for
        self._designed = 0  # rows of the space-filling sequence used so far
        self._revision = 0  # counts what was told
        self._learned_at = -1  # the revision that the memories belong to
        self._memories: dict[str, Memory] = {}
        self._surrogates: _Surrogates | None = None
        self._rows: dict[int, Array] = {}

    # ---- what users call ----

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next trial to run, or a list of n; trials still out shape the next ones."""
        if n is None:
            return self._ask_one()
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise TrialError(f"ask(n) needs a whole number of at least 1, not {shown(n)}")
        return [self._ask_one() for _ in range(n)]

    def tell(
        self,
        trial: Trial | int,
        value: object = None,
        *,
        constraints: Mapping[str, object] | None = None,
        violated: str | Iterable[str] = (),
        satisfied: str | Iterable[str] = (),
        failed: bool | str | BaseException | None = None,
    ) -> Trial:
        """What came of a trial; gives it back as it now stands.

        Tell what is known: the objective, readings of constraints, the names of constraints that broke or held without a
        reading, or that it failed and why.
        """
        known = self._find(trial)
        told = conclude(
            known,
            self.constraints,
            value,
            readings=constraints,
            violated=violated,
            satisfied=satisfied,
            failed=failed,
        )
        self._record(told)
        return told

    def add(
        self,
        params: Mapping[str, object],
        value: object = None,
        *,
        constraints: Mapping[str, object] | None = None,
        violated: str | Iterable[str] = (),
        satisfied: str | Iterable[str] = (),
        failed: bool | str | BaseException | None = None,
    ) -> Trial:
        """A past result that was never asked for."""
        trial = Trial(len(self._trials), self.space.check(params))
        told = conclude(
            trial,
            self.constraints,
            value,
            readings=constraints,
            violated=violated,
            satisfied=satisfied,
            failed=failed,
        )
        self._record(told)
        return told

    def learn(self) -> None:
        """Fit the surrogates to what was told now rather than at the next `ask`; later fits set out from here."""
        with one_thread():
            self._remember(self._learn(self._dataset()))

    @property
    def trials(self) -> list[Trial]:
        """Every trial in order of id, those still out included."""
        return list(self._trials.values())

    @property
    def best(self) -> Trial | None:
        """The best trial known to be feasible; None while there is none."""
        sign = direction_sign(self.direction)
        feasible = [trial for trial in self._trials.values() if trial.feasible]
        return min(feasible, key=lambda trial: sign * (trial.value or 0.0), default=None)

    def predict(self, params: Mapping[str, object]) -> Prediction:
        """What the surrogates expect at a point."""
        row = self.space.encode(params)[None]
        with one_thread():
            surrogates = self._learn(self._dataset())
            mean, std = surrogates.objective.predict(row) if surrogates.objective.measured else np.full((2, 1), np.nan)
            log_probability, believed = 0.0, {}
            for name, limit in surrogates.limits.items():
                latent_mean, latent_std = limit.posterior.predict(row)
                log_probability += float(log_ndtr(-latent_mean / latent_std)[0])
                believed[name] = self._in_readings(name, limit, row)
        sign = direction_sign(self.direction)
        return Prediction(sign * float(mean[0]), float(std[0]), believed, float(np.exp(log_probability)))

    def state(self) -> dict[str, Any]:
        """Plain JSON from which `from_state` makes an optimizer that goes on as this one would."""
        return {
            "version": STATE_VERSION,
            "space": self.space.to_dict(),
            "constraints": [str(constraint) for constraint in self.constraints],
            "strategy": self.strategy_name,
            "surrogate": self.surrogate,
            "direction": self.direction,
            "initial": self.initial,
            "seed": self.seed,
            "asked": self._asked,
            "designed": self._designed,
            "revision": self._revision,
            "learned_at": self._learned_at,
            "trials": [trial.to_dict() for trial in self._trials.values()],
            "memories": {name: memory.to_dict() for name, memory in self._memories.items()},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, strategy: Strategy | None = None) -> Self:
        """The optimizer that `state` describes. A strategy of your own has to be given again."""
        if not isinstance(state, Mapping):
            raise StateError(
                f"from_state needs the mapping that state() gave (json.loads of what was saved), not {shown(state)}"
            )
        if missing := [key for key in STATE_KEYS if key not in state]:
            raise StateError(f"not a state of an Optimizer: it lacks {listed(missing)}")
        if strategy is None and isinstance(state["strategy"], str) and state["strategy"] not in STRATEGIES:
            raise StrategyError(
                f"the state has a strategy of its user's own, {shown(state['strategy'])}: give it again, "
                "as in from_state(state, strategy=...)"
            )
        try:
            if state["version"] != STATE_VERSION:
                raise StateError(f"this version reads states of version {STATE_VERSION}, not {shown(state['version'])}")
            opt = cls(
                Space.from_dict(state["space"]),
                constraints=state["constraints"],
                strategy=strategy or state["strategy"],
                surrogate=state["surrogate"],
                direction=state["direction"],
                initial=state["initial"],
                seed=state["seed"],
            )
            for number, record in enumerate(state["trials"]):
                trial = Trial.from_dict(record)
                if trial.id != number:
                    raise ValueError(f"trial {trial.id} stands where trial {number} belongs")
                opt._trials[trial.id] = trial
                opt._rows[trial.id] = opt.space.encode(trial.params)
            opt._asked, opt._designed, opt._revision = (int(state[key]) for key in ("asked", "designed", "revision"))
            opt._learned_at = int(state["learned_at"])
            groups, told = len(opt.space.names), sum(trial.told for trial in opt._trials.values())
            opt._memories = {name: Memory.from_dict(memory, groups, told) for name, memory in state["memories"].items()}
            if min(opt._asked, opt._designed, opt._revision) < 0:
                raise ValueError("a negative count")
        except CbobError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise StateError(f"not a state of an Optimizer: {error!r}") from error
        return opt

    # ---- how it works ----

    def _find(self, trial: Trial | int) -> Trial:
        number = trial.id if isinstance(trial, Trial) else plain(trial)
        known = self._trials.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if known is None:
            raise TrialError(f"tell needs a trial that ask() gave, or its id; no trial here is {shown(trial)}")
        if isinstance(trial, Trial) and trial.params != known.params:
            raise TrialError(f"trial {number} was asked with {dict(known.params)}, not with {dict(trial.params)}; use add()")
        return known

    def _record(self, trial: Trial) -> None:
        if trial.id not in self._rows:
            self._rows[trial.id] = self.space.encode(trial.params)
        self._trials[trial.id] = trial
        self._revision += 1
        self._surrogates = None

    def _ask_one(self) -> Trial:
        number = len(self._trials)
        told = sum(trial.told for trial in self._trials.values())
        starting = number < self.initial or not told
        with one_thread():
            proposal = None if starting or not self.strategy.uses_models else self._propose(number)
            row, forecast = proposal or (self._next_designed(), None)
        trial = Trial(number, self.space.decode(row), forecast=forecast)
        self._asked += 1
        self._trials[number] = trial
        self._rows[number] = self.space.encode(trial.params)
        return trial

    def _next_designed(self) -> Array:
        """The next row of the space-filling sequence that is not taken. Rows may be: a discrete space has few, and a user may
        have added a design of the same seed. Once nothing new has come for long, any row that is left in a finite space will
        do, and where none is, one is repeated."""
        taken = self._taken()
        for _ in range((DESIGN_TRIES if self.space.size is None else DESIGN_TRIES_IF_FINITE) // DESIGN_BLOCK):
            rows = self.space.sobol(DESIGN_BLOCK, seed=self.seed, skip=self._designed)
            for used, row in enumerate(rows, start=1):
                if not is_taken(row, taken):
                    self._designed += used
                    return row  # type: ignore[no-any-return]
            self._designed += len(rows)
        rng = np.random.default_rng([self.seed, self._designed])
        return best_untaken(rows, np.zeros(len(rows)), taken, self.space, lambda left: rng.random(len(left)))

    def _taken(self) -> Taken:
        told = [self._rows[trial.id] for trial in self._trials.values() if trial.told]
        out = [self._rows[trial.id] for trial in self._trials.values() if not trial.told]
        return Taken(*(np.array(rows).reshape(-1, self.space.width) for rows in (told, out)))

    def _dataset(self) -> Dataset:
        return dataset(self._trials.values(), self.space, self.constraints, self.direction, rows=self._rows)

    def _in_readings(self, name: str, limit: HLGP, row: Array) -> tuple[float, float]:
        """A predicted reading and its deviation; NaN where no reading was ever measured, so that there are no units."""
        middle, spread = limit.predict(row)
        if name == RAN:
            return float(middle[0]), float(spread[0])
        if not limit.measured:
            return np.nan, np.nan
        (constraint,) = (c for c in self.constraints if c.name == name)
        return constraint.reading_of(float(middle[0])), float(spread[0])

    def _learn(self, data: Dataset) -> _Surrogates:
        """The surrogates at what was told so far. They are kept until more is told, but only `_propose` puts what they remember
        into the state: looking (`predict`) must not change what is asked."""
        if self._surrogates is not None:
            return self._surrogates
        refit = self._learned_at != self._revision
        focus = self._focus(data)

        def learned(model: AnyHLGP, key: str, margins: Array, signs: NDArray[np.int8]) -> AnyHLGP:
            return model.learn(data.rows, margins, signs, memory=self._memories.get(key), focus=focus, refit=refit)

        nothing = np.zeros(len(data), dtype=np.int8)
        objective = learned(GPR(groups=self.space.groups), OBJECTIVE, data.objective, nothing)
        limits: dict[str, HLGP] = {}
        for j, name in enumerate(data.names):
            hidden = bool(data.signs[:, j].any())
            kind = GPC if hidden and self.surrogate == "gpc" else HLGP
            model = kind(groups=self.space.groups)
            limits[name] = learned(model, LIMIT + name, data.margins[:, j], data.signs[:, j])
        self._surrogates = _Surrogates(objective, limits)
        return self._surrogates

    def _remember(self, surrogates: _Surrogates) -> None:
        limits = {LIMIT + name: limit.memory for name, limit in surrogates.limits.items()}
        self._memories = {OBJECTIVE: surrogates.objective.memory, **limits}
        self._learned_at = self._revision

    def _focus(self, data: Dataset) -> Array | None:
        """The row near which data is kept when there is too much of it: the best one, or the least infeasible."""
        if data.best is not None:
            return data.rows[data.best[0]]  # type: ignore[no-any-return]
        return data.rows[int(np.argmin(_violations(data)))] if len(data) else None

    def _propose(self, number: int) -> tuple[Array, Forecast] | None:
        data = self._dataset()
        surrogates = self._learn(data)
        self._remember(surrogates)
        taken = self._taken()
        pending = taken.out
        objective = surrogates.objective.posterior
        limits = tuple(limit.posterior for limit in surrogates.limits.values())
        best = None if data.best is None else surrogates.objective.latent(data.best[1])
        if best is not None and pending.shape[0]:
            best = min(best, _believed_best(objective, limits, pending))
        beliefs = Beliefs(
            space=self.space,
            objective=objective.believing(pending),
            limits=tuple(limit.believing(pending) for limit in limits),
            best=best,
            centres=_centres(data, limits),
            taken=taken,
            improved=improvements(data.objective, data.feasible, _violations(data))[self.initial :],
            rng=np.random.default_rng([self.seed, number]),
            asked=self._asked,
            hopeful=bool(np.isfinite(data.margins).any() or (data.signs < 0).any()),
            experience=self._experience(data),
        )
        row = search(beliefs) if best is None else self.strategy.propose(beliefs)
        if row is None:
            return None
        # What is promised is what was learned; to believe in trials still out is a device of the search.
        weighed = {} if best is None else self.strategy.weighed(beliefs, data.names)
        promised = {name: _promise(limit, row, 0.0) for name, limit in zip(data.names, limits, strict=True)}
        return row, Forecast(promised, None if best is None else _promise(objective, row, best), weighed)

    def _experience(self, data: Dataset) -> Experience:
        """What was promised of each told trial, in order of id, and what came of it."""
        told = sorted((trial for trial in self._trials.values() if trial.told), key=lambda trial: trial.id)
        promised = np.full((len(told), 1 + len(data.names)), np.nan)
        for n, trial in enumerate(told):
            if trial.forecast is not None:
                own = trial.forecast
                promised[n, 1:] = [own.limits.get(name, np.nan) for name in data.names]
                promised[n, 0] = np.nan if own.improvement is None else own.improvement
        broken, held = (data.margins > 0.0) | (data.signs > 0), (data.margins <= 0.0) | (data.signs < 0)
        kept = np.full_like(promised, np.nan)
        kept[:, 1:] = np.where(broken, 0.0, np.where(held, 1.0, np.nan))
        values = np.where(data.feasible, data.objective, np.inf)
        before = np.minimum.accumulate(np.concatenate([[np.inf], values]))[:-1]
        kept[:, 0] = np.where(data.feasible, values < before, np.nan)
        return Experience(promised, kept)


def _promise(posterior: Posterior, row: Array, threshold: float) -> float:
    """By how many standard deviations a row is expected below the threshold."""
    mean, std = posterior.predict(row[None])
    return float((threshold - mean[0]) / std[0])


def _believed_best(objective: Posterior, limits: Sequence[Posterior], pending: Array) -> float:
    """The best objective that the trials still out are believed to return, where they are believed to be feasible. Without
    this, a pending row with a promising mean would look like a certain improvement, and be asked for again."""
    mean, _ = objective.predict(pending)
    holds = np.ones(mean.size, dtype=bool)
    for limit in limits:
        holds &= limit.predict(pending)[0] <= 0.0
    return float(np.where(holds, mean, np.inf).min())


def _violations(data: Dataset) -> Array:
    """How far each trial is from holding: margins over their own spread, and 1 for a limit that broke unmeasured."""
    violation = np.zeros(len(data))
    for margins, signs in zip(data.margins.T, data.signs.T, strict=True):
        broken = np.nan_to_num(np.maximum(margins, 0.0))
        scale = np.max(broken, initial=0.0)
        violation += broken / scale if scale > 0.0 else broken
        violation += signs > 0
    return violation


def _centres(data: Dataset, limits: Sequence[Posterior], count: int = 3) -> Array:
    """The best few feasible rows; while there is none, the rows that the surrogates find most likely to hold."""
    if data.feasible.any():
        order = np.argsort(np.where(data.feasible, data.objective, np.inf), kind="stable")
        return data.rows[order[: min(count, int(data.feasible.sum()))]]
    score = np.zeros(len(data))
    for limit in limits:
        mean, std = limit.predict(data.rows)
        score += log_ndtr(-mean / std)
    return data.rows[np.argsort(-score, kind="stable")[:count]]


def _initial_size(given: int | str | None, parameters: int) -> int:
    if given is None:
        return 2 * parameters + 2
    if given == "paper":
        return 11 * parameters
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise StrategyError(
            f'initial must be a whole number from 0, "paper" (11 for each parameter) or None, not {shown(given)}'
        )
    return int(given)


def _seed(given: int | None) -> int:
    if given is None:
        return int(np.random.SeedSequence().entropy) % 2**63  # type: ignore[arg-type]
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise StrategyError(f"seed must be a whole number from 0, or None, not {shown(given)}")
    return int(given)
