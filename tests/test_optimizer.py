"""Ask and tell: the front door as it is promised, the first asks, what is refused, and what is predicted."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from landscapes import PLANE, TUNING, TUNING_LIMITS, broken, needle, run, tell, tuning, waves
from numpy.typing import NDArray

import cbob
from cbob import Categorical, Constraint, Float, Int, Kind, Optimizer, Space, Status, Trial
from cbob.constraints import RAN
from cbob.errors import CbobError, ConstraintError, SpaceError, StrategyError, TrialError
from cbob.strategies import STRATEGIES, Beliefs, Strategy

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
every_model = pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "sobol"])
POINT = {"rate": 0.1, "depth": 4, "solver": "sgd"}


def tuner(**options: Any) -> Optimizer:
    options = {"constraints": TUNING_LIMITS, "seed": 7} | options
    return Optimizer(TUNING, **options)


def asked(opt: Optimizer, count: int) -> list[dict[str, Any]]:
    return [dict(trial.params) for trial in opt.ask(count)]


# The front door, as written


def test_the_front_door_opens_as_it_is_written() -> None:
    space = cbob.Space({"rate": Float(1e-5, 1.0, log=True), "depth": Int(1, 15), "solver": Categorical(["sgd", "adam"])})
    opt = cbob.Optimizer(space, constraints=["size <= 50000", "accuracy >= 0.9"], strategy="cbob", seed=7)
    for _ in range(3):
        trial = opt.ask()
        assert (trial.id, set(trial.params)) == (len(opt.trials) - 1, {"rate", "depth", "solver"})
        opt.tell(trial, 0.28, constraints={"size": 41000, "accuracy": 0.93})
        trial = opt.ask()
        opt.tell(trial, constraints={"size": 61000})
        trial = opt.ask()
        opt.tell(trial, violated=["size"], constraints={"accuracy": 0.95})
        trial = opt.ask()
        opt.tell(trial, failed="out of memory")
        opt.add({"rate": 0.1, "depth": 4, "solver": "sgd"}, 0.31, constraints={"size": 39000, "accuracy": 0.91})
    params = opt.ask().params
    assert opt.best is not None
    assert opt.best.value == 0.28
    assert len(opt.trials) == 16
    assert set(opt.predict(params).constraints) == {"size", "accuracy", "it ran"}
    state = opt.state()
    assert cbob.Optimizer.from_state(state).state() == state


def test_each_way_of_telling_is_kept_as_it_was_told() -> None:
    opt = tuner()
    trials = opt.ask(4)
    opt.tell(trials[0], 0.28, constraints={"size": 41000, "accuracy": 0.93})
    opt.tell(trials[1], constraints={"size": 61000})
    opt.tell(trials[2], violated=["size"], constraints={"accuracy": 0.95})
    opt.tell(trials[3], failed="out of memory")
    opt.add(POINT, 0.31, constraints={"size": 39000, "accuracy": 0.91})
    kinds = [[reading.kind.value for reading in trial.readings.values()] for trial in opt.trials]
    statuses = [trial.status for trial in opt.trials]
    assert kinds == [
        ["value", "value"],
        ["value", "unknown"],
        ["violated", "value"],
        ["unknown", "unknown"],
        ["value", "value"],
    ]
    infeasible = Status.INFEASIBLE
    assert statuses == [Status.FEASIBLE, infeasible, infeasible, Status.FAILED, Status.FEASIBLE]
    assert [trial.value for trial in opt.trials] == [0.28, None, None, None, 0.31]
    assert opt.trials[3].failure == "out of memory"
    assert opt.trials[4].params == POINT
    assert opt.trials[2].readings["accuracy"].value == 0.95


def test_ask_gives_one_trial_and_ask_n_a_list() -> None:
    opt = tuner()
    one, several = opt.ask(), opt.ask(3)
    assert isinstance(one, Trial)
    assert [trial.id for trial in (one, *several, *opt.ask(1))] == [0, 1, 2, 3, 4]
    assert all(trial.status is Status.PENDING for trial in opt.trials)
    assert [type(one.params[name]) for name in ("rate", "depth", "solver")] == [float, int, str]
    assert len(opt.ask(np.int64(2))) == 2


def test_a_trial_is_told_by_itself_or_by_its_id_and_comes_back_as_it_stands() -> None:
    opt = tuner()
    first, second = opt.ask(2)
    told = opt.tell(second.id, 0.5, constraints={"size": 1.0, "accuracy": 1.0})
    assert told == opt.trials[1]
    assert told.feasible
    assert not first.told
    assert opt.tell(first, failed=True).failure == "failed"


def test_parameters_may_come_as_a_mapping_and_constraints_as_objects() -> None:
    parameters = {"x": Float(0.0, 1.0)}
    opt = Optimizer(parameters, constraints=[Constraint("g", 1.0), "h >= 2"], seed=1)
    parameters["y"] = Float(0.0, 1.0)
    assert opt.space == Space({"x": Float(0.0, 1.0)})
    assert [str(limit) for limit in opt.constraints] == ["g <= 1.0", "h >= 2.0"]
    assert [limit.name for limit in Optimizer({"x": Float(0.0, 1.0)}, constraints="g <= 1").constraints] == ["g"]


def test_the_best_is_the_best_of_those_known_to_be_feasible_and_the_earliest_of_equals() -> None:
    for direction, sign in (("minimize", 1.0), ("maximize", -1.0)):
        opt = Optimizer(PLANE, constraints=["g <= 0"], direction=direction, seed=1)
        assert opt.best is None
        trials = opt.ask(6)
        opt.tell(trials[5], sign * -9.0)  # g unknown: undecided
        opt.tell(trials[4], sign * -9.0, constraints={"g": 1.0})
        opt.tell(trials[3], sign * 0.0, constraints={"g": 0.0})
        assert opt.best is not None
        assert opt.best.id == 3
        opt.tell(trials[2], sign * -1.0, satisfied=["g"])
        opt.tell(trials[1], sign * -1.0, constraints={"g": -1.0})
        assert opt.best.id == 1
        assert opt.best.value == sign * -1.0


def test_what_is_handed_out_cannot_change_the_optimizer() -> None:
    opt = run(tuner(initial=3), tuning, 4)
    before = opt.state()
    state = opt.state()
    state["trials"][0]["params"]["depth"] = 99
    state["trials"].clear()
    state["memories"].clear()
    state["space"]["parameters"].clear()
    opt.trials.clear()
    with pytest.raises(TypeError):
        opt.trials[0].params["depth"] = 99  # type: ignore[index]
    assert opt.state() == before


# The first asks


@pytest.mark.parametrize(("initial", "size"), [(None, 8), ("paper", 33), (0, 0), (5, 5), (np.int64(4), 4)])
def test_the_size_of_the_initial_design(initial: Any, size: int) -> None:
    assert tuner(initial=initial).state()["initial"] == size


def test_the_initial_design_is_the_sobol_sequence_of_the_seed() -> None:
    rows = TUNING.sobol(40, seed=7)
    expected = [TUNING.decode(row) for row in rows]
    assert asked(tuner(strategy="sobol"), 40) == expected
    opt = tuner(initial=6)
    design = [dict(trial.params) for trial in run(opt, tuning, 6).trials]
    assert design == expected[:6]
    assert dict(opt.ask().params) not in expected


def test_nothing_told_leaves_nothing_to_learn_from() -> None:
    """However many are asked for, the sequence goes on."""
    opt = tuner(initial=0)
    assert asked(opt, 5) == [TUNING.decode(row) for row in TUNING.sobol(5, seed=7)]
    opt.tell(2, 0.5, constraints=HOLDS)
    assert dict(opt.ask().params) not in [TUNING.decode(row) for row in TUNING.sobol(12, seed=7)]


def test_past_results_count_as_the_start() -> None:
    opt = tuner(initial=4)
    for trial in run(tuner(seed=3, strategy="sobol"), tuning, 4).trials:
        value, readings = tuning(trial.params)
        told = dict(value=value, constraints=readings) if trial.feasible else dict(violated=broken(opt, readings))
        opt.add(trial.params, **told)
    sobol = [TUNING.decode(row) for row in TUNING.sobol(20, seed=7)]
    assert dict(opt.ask().params) not in sobol


def test_a_seed_repeats_a_run_and_no_seed_does_not() -> None:
    def asks(seed: int | None) -> list[dict[str, Any]]:
        return [dict(trial.params) for trial in run(tuner(seed=seed, initial=4), tuning, 5).trials]

    assert asks(3) == asks(3)
    assert asks(3) != asks(4)
    assert asks(None) != asks(None)
    assert tuner(seed=2**100).ask().params == tuner(seed=2**100).ask().params


def test_the_global_generators_of_numpy_and_python_have_no_say() -> None:
    import random

    answers = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        answers.append([dict(t.params) for t in run(tuner(strategy="mesc", initial=4), tuning, 5).trials])
        assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert answers[0] == answers[1]


@every_strategy
def test_maximising_f_asks_what_minimising_minus_f_asks(strategy: str) -> None:
    up, down = (
        Optimizer(PLANE, constraints=["g <= 0"], strategy=strategy, direction=way, seed=7, initial=5)
        for way in ("maximize", "minimize")
    )
    for _ in range(6):
        rising, falling = up.ask(), down.ask()
        assert rising == falling
        value, readings = waves(rising.params)
        if broken(up, readings):
            up.tell(rising, violated="g")
            down.tell(falling, violated="g")
        else:
            up.tell(rising, -value, constraints=readings)
            down.tell(falling, value, constraints=readings)
    assert up.best is not None
    assert down.best is not None
    assert (up.best.id, up.best.value) == (down.best.id, -(down.best.value or 0.0))
    point = {"x": 0.4, "y": 0.7}
    above, below = up.predict(point), down.predict(point)
    assert (above.mean, above.std, above.probability) == (-below.mean, below.std, below.probability)
    assert above.constraints == below.constraints


# What is refused changes nothing


def stranger() -> Trial:
    """A trial of another optimizer, whose id exists here too."""
    return tuner(seed=99).ask(2)[1]


HOLDS = {"size": 1.0, "accuracy": 1.0}
# Trial 0 is told, trials 1 and 2 are out.
REFUSED: dict[str, tuple[Callable[[Optimizer], object], type[CbobError], str]] = {
    "an id that does not exist": (lambda o: o.tell(3, 1.0), TrialError, "no trial here is 3"),
    "a negative id": (lambda o: o.tell(-1, 1.0), TrialError, "no trial here is -1"),
    "an id that is a text": (lambda o: o.tell("1", 1.0), TrialError, "'1'"),
    "an id that is a bool": (lambda o: o.tell(True, 1.0), TrialError, "True"),
    "an id that is a float": (lambda o: o.tell(1.0, 1.0), TrialError, "1.0"),
    "no trial at all": (lambda o: o.tell(None, 1.0), TrialError, "None"),
    "parameters for a trial": (lambda o: o.tell(POINT, 1.0), TrialError, "that ask"),
    "another optimizer's trial": (lambda o: o.tell(stranger(), 1.0), TrialError, r"use add\(\)"),
    "a trial told before": (lambda o: o.tell(0, 1.0), TrialError, "trial 0 was told before"),
    "nothing told": (lambda o: o.tell(1), TrialError, "nothing was told about trial 1"),
    "unknown readings only": (
        lambda o: o.tell(1, constraints={"size": None}),
        TrialError,
        "nothing was told",
    ),
    "a constraint nobody declared": (
        lambda o: o.tell(1, 1.0, constraints={"mass": 1.0}),
        TrialError,
        "'mass'.*declared: 'size', 'accuracy'",
    ),
    "an undeclared violation": (lambda o: o.tell(1, violated=["mass"]), TrialError, "'mass' in violated"),
    "the learned constraint": (lambda o: o.tell(1, violated=[RAN]), TrialError, "'it ran' in violated"),
    "violated and satisfied": (
        lambda o: o.tell(1, violated=["size"], satisfied="size"),
        TrialError,
        "both violated and satisfied",
    ),
    "a violation against its reading": (
        lambda o: o.tell(1, violated=["size"], constraints={"size": 41000}),
        TrialError,
        "41000.0 keeps the limit 'size <= 50000.0'",
    ),
    "a text as value": (lambda o: o.tell(1, "0.3", constraints=HOLDS), TrialError, "real number, not '0.3'"),
    "a bool as value": (lambda o: o.tell(1, True, constraints=HOLDS), TrialError, "not True"),
    "a complex value": (lambda o: o.tell(1, 1j, constraints=HOLDS), TrialError, "not 1j"),
    "two values": (lambda o: o.tell(1, np.zeros(2), constraints=HOLDS), TrialError, "ndarray"),
    "a text as reading": (
        lambda o: o.tell(1, 1.0, constraints={"size": "big"}),
        TrialError,
        "'size' of trial 1 must be a number.*'big'",
    ),
    "readings without names": (lambda o: o.tell(1, 1.0, constraints=[1.0, 2.0]), TrialError, "map names"),
    "a number as failure": (lambda o: o.tell(1, failed=3), TrialError, "True, False, a reason or an exception, not 3"),
    "violated as a number": (lambda o: o.tell(1, violated=3), TrialError, "list of the names"),
    "an unknown parameter": (
        lambda o: o.add(POINT | {"width": 3}, 1.0, constraints=HOLDS),
        SpaceError,
        "unknown parameter 'width'.*'rate', 'depth', 'solver'",
    ),
    "a missing parameter": (
        lambda o: o.add({"rate": 0.1, "depth": 4}, 1.0, constraints=HOLDS),
        SpaceError,
        "lack 'solver'",
    ),
    "a value out of bounds": (
        lambda o: o.add(POINT | {"depth": 16}, 1.0, constraints=HOLDS),
        SpaceError,
        r"'depth' must lie in 1 .. 15, not 16",
    ),
    "a rate out of bounds": (
        lambda o: o.add(POINT | {"rate": 0.0}, 1.0, constraints=HOLDS),
        SpaceError,
        r"'rate' must lie in \[1e-05, 1.0\], not 0.0",
    ),
    "a parameter that is NaN": (
        lambda o: o.add(POINT | {"rate": math.nan}, 1.0, constraints=HOLDS),
        SpaceError,
        "nan",
    ),
    "half a layer": (
        lambda o: o.add(POINT | {"depth": 2.5}, 1.0, constraints=HOLDS),
        SpaceError,
        "whole number, not 2.5",
    ),
    "a choice that is none": (
        lambda o: o.add(POINT | {"solver": "lbfgs"}, 1.0, constraints=HOLDS),
        SpaceError,
        "one of 'sgd', 'adam', not 'lbfgs'",
    ),
    "parameters without names": (lambda o: o.add([0.1, 4, "sgd"], 1.0), SpaceError, "must map names"),
    "a past result without result": (lambda o: o.add(POINT), TrialError, "nothing was told"),
    "a past result of an unknown limit": (
        lambda o: o.add(POINT, 1.0, constraints={"mass": 1.0}),
        TrialError,
        "'mass'",
    ),
    "no asks": (lambda o: o.ask(0), TrialError, "whole number of at least 1, not 0"),
    "negative asks": (lambda o: o.ask(-2), TrialError, "not -2"),
    "half an ask": (lambda o: o.ask(1.5), TrialError, "not 1.5"),
    "a bool of asks": (lambda o: o.ask(True), TrialError, "not True"),
    "a prediction elsewhere": (lambda o: o.predict(POINT | {"depth": 0}), SpaceError, "1 .. 15, not 0"),
    "a prediction of nothing": (lambda o: o.predict({}), SpaceError, "lack 'rate', 'depth', 'solver'"),
}


@pytest.mark.parametrize(("act", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_says_why_and_changes_nothing(
    act: Callable[[Optimizer], object], error: type[CbobError], message: str
) -> None:
    opt = tuner()
    first, *_ = opt.ask(3)
    opt.tell(first, 0.3, constraints=HOLDS)
    before = opt.state()
    with pytest.raises(error, match=message):
        act(opt)
    assert opt.state() == before
    assert opt.tell(1, 0.2, constraints=HOLDS).feasible, "the trial can still be told"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"strategy": "eicb"}, StrategyError, "one of auto, cbob, .*'eicb'"),
        ({"strategy": ["cbob"]}, StrategyError, "one of auto, cbob, "),
        ({"surrogate": "gp"}, StrategyError, "one of hlgp, gpc, not 'gp'"),
        ({"surrogate": ["hlgp"]}, StrategyError, "one of hlgp, gpc"),
        ({"direction": "max"}, StrategyError, "'minimize' or 'maximize', not 'max'"),
        ({"direction": ["minimize"]}, StrategyError, "'minimize' or 'maximize'"),
        ({"initial": -1}, StrategyError, "initial must be .*not -1"),
        ({"initial": "all"}, StrategyError, "initial must be .*not 'all'"),
        ({"initial": True}, StrategyError, "not True"),
        ({"initial": 2.5}, StrategyError, "not 2.5"),
        ({"seed": -1}, StrategyError, "seed must be .*not -1"),
        ({"seed": "7"}, StrategyError, "not '7'"),
        ({"seed": 1.5}, StrategyError, "not 1.5"),
        ({"constraints": ["size < 3"]}, ConstraintError, "'<'"),
        ({"constraints": ["size <= 3", "size >= 1"]}, ConstraintError, "'size' comes more than once"),
        ({"constraints": ["it ran <= 3"]}, ConstraintError, "reserved"),
        ({"constraints": 3}, ConstraintError, "must be a list of texts"),
    ],
)
def test_an_optimizer_that_makes_no_sense_is_refused(options: dict[str, Any], error: type[CbobError], message: str) -> None:
    with pytest.raises(error, match=message):
        tuner(**options)
    with pytest.raises(SpaceError, match="at least one parameter"):
        Optimizer({})


# Readings that fail


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan"), 10**400])
def test_an_objective_that_is_no_number_is_a_failure_to_learn_from(value: float) -> None:
    opt = tuner(initial=4)
    for _ in range(3):
        told = opt.tell(opt.ask(), value, constraints={"size": 1e4, "accuracy": 0.95})
        assert (told.status, told.value) == (Status.FAILED, None)
        assert "objective is" in (told.failure or "")
        run(opt, tuning, 1)
    assert opt.best is None or opt.best.value is not None
    assert math.isfinite(opt.predict(POINT).mean)
    assert RAN in opt.predict(POINT).constraints


@pytest.mark.parametrize("reading", [math.nan, math.inf, -math.inf])
def test_a_reading_that_is_no_number_is_unknown_and_never_feasible(reading: float) -> None:
    opt = tuner(initial=3)
    told = opt.tell(opt.ask(), 0.1, constraints={"size": reading, "accuracy": 0.95})
    assert told.status is Status.FAILED
    assert told.readings["size"].kind is Kind.UNKNOWN
    assert told.readings["accuracy"].value == 0.95
    assert told.failure == f"reading 'size' is {reading}"
    run(opt, tuning, 4)
    assert opt.best is None or opt.best.id != told.id
    assert opt.ask().id == 5


# Failures of unknown cause


def test_failures_of_unknown_cause_are_learned_and_avoided() -> None:
    """The right half dies, and nobody says why."""
    opt = Optimizer(PLANE, seed=4, initial=16)
    for _ in range(16):
        trial = opt.ask()
        x, y = trial.params["x"], trial.params["y"]
        opt.tell(trial, None if x > 0.5 else x * y, failed="crash" if x > 0.5 else None)
    good, bad = ([opt.predict({"x": x, "y": y}).probability for y in (0.2, 0.5, 0.8)] for x in (0.2, 0.8))
    assert max(bad) < 0.15 < 0.85 < min(good)
    assert set(opt.predict({"x": 0.2, "y": 0.2}).constraints) == {RAN}
    for trial in opt.trials:
        assert (opt.predict(trial.params).probability > 0.5) is trial.feasible


def test_the_learned_constraint_exists_from_the_first_such_failure_on() -> None:
    opt = tuner(initial=3)
    tell(opt, opt.ask(), tuning)
    assert set(opt.predict(POINT).constraints) == {"size", "accuracy"}
    opt.tell(opt.ask(), failed="killed", violated="size")
    assert set(opt.predict(POINT).constraints) == {"size", "accuracy"}, "this failure has a cause"
    opt.tell(opt.ask(), failed="killed")
    assert set(opt.predict(POINT).constraints) == {"size", "accuracy", RAN}


# What is predicted


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_prediction_is_in_the_users_units_and_right_near_the_data(direction: str) -> None:
    limits = ["weight <= 1200", "margin >= -3"]
    opt = Optimizer(PLANE, constraints=limits, direction=direction, strategy="sobol", seed=1)
    for _ in range(40):
        trial = opt.ask()
        x, y = trial.params["x"], trial.params["y"]
        opt.tell(trial, 5e4 + 100 * (x - y) ** 2, constraints={"weight": 1000 + 400 * x, "margin": -6 + 6 * y})
    for x, y in ((0.2, 0.8), (0.2, 0.2), (0.8, 0.8), (0.4, 0.7)):
        seen = opt.predict({"x": x, "y": y})
        assert seen.mean == pytest.approx(5e4 + 100 * (x - y) ** 2, abs=2.0)
        assert seen.constraints["weight"][0] == pytest.approx(1000 + 400 * x, abs=8.0)
        assert seen.constraints["margin"][0] == pytest.approx(-6 + 6 * y, abs=0.12)
        assert 0.0 < seen.std < 5.0
        assert all(0.0 < std < 0.05 * 400 for _, std in seen.constraints.values())
        holds = 400 * x <= 200 and -6 + 6 * y >= -3
        assert (seen.probability > 0.95) if holds else (seen.probability < 0.6)
    clearly = opt.predict({"x": 0.9, "y": 0.05})
    assert clearly.probability < 1e-3


@pytest.mark.parametrize("surrogate", ["hlgp", "gpc"])
def test_a_prediction_does_not_contradict_what_was_measured(surrogate: str) -> None:
    """Signs have no units: a model that has seen nothing else may answer NaN, but no wrong number."""
    opt = Optimizer({"x": Float(0.0, 1.0)}, constraints=["size <= 50000"], surrogate=surrogate, seed=0)
    for x in np.linspace(0.02, 0.9, 8).tolist():
        told: Any = {"violated": "size"} if x > 0.5 else {"value": x, "constraints": {"size": 1e5 * x}}
        opt.add({"x": x}, **told)
    for trial in opt.trials:
        mean, std = opt.predict(trial.params).constraints["size"]
        if trial.feasible and not math.isnan(mean):
            assert abs(mean - 1e5 * trial.params["x"]) < 4.0 * std + 500.0


def test_before_anything_is_told_a_prediction_knows_the_odds_alone() -> None:
    seen = tuner().predict(POINT)
    assert math.isnan(seen.mean) and math.isnan(seen.std)  # in which units?
    assert seen.probability == pytest.approx(0.25)  # even odds for each limit


def test_looking_does_not_change_what_is_asked() -> None:
    """Or a progress bar would change the run that it shows."""
    looked, blind = (Optimizer(PLANE, constraints=["g <= 0"], seed=2, initial=16) for _ in range(2))
    for opt in (looked, blind):
        for number in range(16):
            tell(opt, opt.ask(), waves)
            if opt is looked and number >= 12:
                opt.predict({"x": 0.4, "y": 0.7})
                _ = opt.best, opt.trials, opt.state()
    assert looked.ask().params == blind.ask().params


# Strategies


class Corner(Strategy):
    """One's own: the corner nearest to the origin that is still free."""

    def propose(self, given: Beliefs) -> NDArray[np.float64]:
        rows = given.space.snap(0.1 * given.rng.random((9, given.space.width)))
        return rows[int(np.argmin(rows.sum(axis=1)))]


def test_a_strategy_of_ones_own_is_asked_once_something_feasible_is_known() -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=Corner(), seed=1, initial=6)
    run(opt, waves, 6)
    assert opt.best is not None
    assert all(value < 0.1 for params in asked(opt, 3) for value in params.values())


def probabilities(surrogate: str, size: float, *, hidden: bool) -> list[float]:
    """Of a limit at 0.5 whose readings are `size` times the distance beyond, broken ones perhaps hidden."""
    opt = Optimizer({"x": Float(0.0, 1.0)}, constraints=["g <= 0"], surrogate=surrogate, seed=1)
    for x in (0.05, 0.2, 0.35, 0.45, 0.6, 0.75, 0.95):
        g = size * (x - 0.5) * (3.0 if x < 0.3 else 1.0)
        told: dict[str, Any] = {"value": x, "constraints": {"g": g}} if g <= 0.0 else {"constraints": {"g": g}}
        opt.add({"x": x}, **({"violated": "g"} if hidden and g > 0.0 else told))
    return [opt.predict({"x": x}).probability for x in (0.1, 0.4, 0.52, 0.8)]


def test_gpc_learns_from_signs_alone_where_readings_are_partly_hidden() -> None:
    def shape(surrogate: str, bend: float) -> float:
        """The probability at 0.5 when the nearest reading that held did so by little, or by much."""
        opt = Optimizer({"x": Float(0.0, 1.0)}, constraints=["g <= 0"], surrogate=surrogate, seed=1)
        for x, g in ((0.1, -1.0), (0.25, -0.8), (0.4, bend)):
            opt.add({"x": x}, x, constraints={"g": g})
        opt.add({"x": 0.9}, violated="g")
        return opt.predict({"x": 0.5}).probability

    assert shape("gpc", -0.01) == shape("gpc", -0.7)
    assert shape("hlgp", -0.01) < shape("hlgp", -0.7) - 0.05


def test_fully_measured_readings_make_the_two_surrogates_one() -> None:
    assert probabilities("gpc", 7.0, hidden=False) == probabilities("hlgp", 7.0, hidden=False)
    assert probabilities("gpc", 7.0, hidden=True) != probabilities("hlgp", 7.0, hidden=True)


class Dice(Strategy):
    """What the generator says, which a strategy of one's own may use as it likes."""

    def propose(self, given: Beliefs) -> NDArray[np.float64]:
        return given.space.snap(given.rng.random((1, given.space.width)))[0]


def test_chance_is_new_for_each_ask_and_each_seed() -> None:
    def asks(seed: int) -> list[dict[str, Any]]:
        opt = Optimizer(PLANE, strategy=Dice(), seed=seed, initial=0)
        opt.add({"x": 0.5, "y": 0.5}, 1.0)
        return asked(opt, 3)

    first, second = asks(1), asks(2)
    assert asks(1) == first
    assert len({tuple(params.values()) for params in first + second}) == 6


EVERYTHING = {
    "f": Float(-3.0, 5.0),
    "scale": Float(1e-6, 1e3, log=True),
    "few": Int(-2, 2),
    "many": Int(0, 5000),
    "units": Int(1, 1024, log=True),
    "kind": Categorical(["a", "b", None, 1.5]),
    "flag": Categorical([False, True]),
    "fixed": Categorical(["only"]),
}


@every_strategy
@pytest.mark.parametrize("surrogate", ["hlgp", "gpc"])
def test_every_strategy_works_on_every_kind_of_parameter(strategy: str, surrogate: str) -> None:
    space = Space(EVERYTHING)
    opt = Optimizer(space, constraints=["g <= 1", "h >= 0"], strategy=strategy, surrogate=surrogate, seed=2, initial=8)
    for number in range(10):
        trial = opt.ask()
        p = trial.params
        assert space.check(p) == p
        g = math.log10(p["scale"]) + p["few"]
        h = 1.0 if p["kind"] is None else p["many"] / 2500 - 1.0
        if number % 4 == 3:
            opt.tell(trial, failed="now and then")
        elif g > 1.0:
            opt.tell(trial, violated="g", constraints={"h": h})
        elif h < 0.0:
            opt.tell(trial, constraints={"g": g, "h": h})
        else:
            opt.tell(trial, p["f"] ** 2 + math.log(p["units"]) + p["flag"], constraints={"g": g}, satisfied="h")
    assert 0.0 <= opt.predict(trial.params).probability <= 1.0


def best_of_run(strategy: str, seed: int) -> float:
    """8 points of the design and 16 of the strategy, on a rugged objective in a disc."""
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=strategy, seed=seed, initial=8)
    best = run(opt, waves, 24).best
    return math.inf if best is None or best.value is None else best.value


def test_the_first_recipe_beats_the_design_where_the_design_is_unlucky() -> None:
    assert best_of_run("cbob", 3) < best_of_run("sobol", 3)


@pytest.mark.slow
@every_model
def test_every_strategy_beats_the_design_in_the_median(strategy: str) -> None:
    seeds = range(7)
    found, plain = ([best_of_run(name, seed) for seed in seeds] for name in (strategy, "sobol"))
    assert np.median(found) < np.median(plain)


# Without a feasible point


SPOTS = [(0.17, 0.71), (0.64, 0.26), (0.88, 0.88), (0.41, 0.55), (0.13, 0.13), (0.5, 0.9)]


def first_hit(strategy: str, seed: int, hide: str, budget: int = 100) -> int:
    """After how many evaluations something feasible was found; budget + 1 for never."""
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=strategy, seed=seed)
    land = needle(*SPOTS[seed % len(SPOTS)])
    for number in range(1, budget + 1):
        if tell(opt, opt.ask(), land, hide=hide).feasible:
            return number
    return budget + 1


@pytest.mark.parametrize(
    ("strategy", "hide"),
    [("cbob", "S1"), ("cbob", "S2"), ("cbob", "S3"), ("tsc", "S2"), ("sobol", "S2")],
)
def test_a_small_feasible_disc_is_found(strategy: str, hide: str) -> None:
    assert first_hit(strategy, 1, hide) <= 100


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("hide", ["S1", "S2", "S3"])
def test_a_small_feasible_disc_is_found_as_often_as_by_the_design_alone(strategy: str, hide: str) -> None:
    seeds = range(12)
    found = [first_hit(strategy, seed, hide) for seed in seeds]
    plain = [first_hit("sobol", seed, hide) for seed in seeds]
    assert sum(number <= 100 for number in found) >= sum(number <= 100 for number in plain)
    if hide == "S1":
        assert np.median(found) <= np.median(plain), "readings should help"


def test_learning_now_is_what_the_next_ask_would_have_learned() -> None:
    """The second of two equal optimizers looks at the same data before it is asked."""
    first, second = (
        Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, constraints=["g <= 0"], initial=2, seed=4) for _ in range(2)
    )
    for opt in (first, second):
        for x in (0.1, 0.5, 0.9):
            opt.add({"x": x, "y": 1 - x * x}, x, constraints={"g": 0.4 - x})
    assert second.state()["memories"] == {}
    second.learn()
    assert set(second.state()["memories"]) == {"objective", "constraint g"}
    assert first.ask() == second.ask()
    assert first.state() == second.state()
