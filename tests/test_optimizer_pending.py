"""Trials that are out: they shape the next ones, come back in any order, and no point is asked for twice."""

import itertools

import numpy as np
import pytest
from landscapes import PLANE, run, tell, waves
from numpy.typing import NDArray

from cbob import Categorical, Float, Int, Optimizer, Space, Trial
from cbob.strategies import STRATEGIES

Array = NDArray[np.float64]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
every_model = pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "sobol"])


def started(strategy: str, seed: int = 0, told: int = 12) -> Optimizer:
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=strategy, seed=seed, initial=told)
    return run(opt, waves, told)


def places(trials: list[Trial]) -> Array:
    return np.array([[trial.params["x"], trial.params["y"]] for trial in trials])


def closest(points: Array) -> float:
    return min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(points, 2))


def apart_without_knowing(strategy: str, count: int = 3) -> float:
    """How far apart the points are that optimizers ask for which know the same, but not of each other."""
    state = started(strategy).state()
    return closest(places([Optimizer.from_state(state | {"seed": seed}).ask() for seed in range(count)]))


@every_model
def test_eight_asked_together_are_no_clump(strategy: str) -> None:
    """Two optimizers that know the same, and not of each other, would ask for one point, up to 1e-4 of the
    cube's side (EIC, whose maximum is smooth, shows it). Of eight asked together no two are within a fiftieth."""
    assert min(closest(places(started(strategy, seed).ask(8))) for seed in (0, 2, 5, 6)) >= 0.02
    if strategy == "eic":
        assert apart_without_knowing("eic") < 1e-4


@pytest.mark.parametrize("strategy", ["cbob", "cbob-mub", "eic"])
def test_what_is_out_keeps_the_next_away_by_what_it_is_believed_to_return(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only because points beside it are forbidden."""
    monkeypatch.setattr("cbob.candidates.CLUMP", 0.0)
    assert min(closest(places(started(strategy, seed).ask(8))) for seed in (0, 2, 5, 6)) > 0.01


@every_strategy
def test_what_is_out_is_not_asked_for_again(strategy: str) -> None:
    opt = started(strategy, seed=1, told=6)
    opt.ask(6)
    points = places(opt.trials)
    assert len(np.unique(points, axis=0)) == 12
    assert closest(points) > 1e-9


def test_one_by_one_is_the_same_as_all_at_once() -> None:
    together = started("cbob", told=6).ask(4)
    opt = started("cbob", told=6)
    assert [opt.ask() for _ in range(4)] == together


@every_strategy
def test_tells_in_any_order_give_the_same_next_ask(strategy: str) -> None:
    answers = []
    for order in ((0, 1, 2), (2, 0, 1)):
        opt = started(strategy, told=5)
        trials = opt.ask(3)
        for number in order:
            tell(opt, trials[number], waves)
        answers.append((opt.ask(), opt.best, opt.predict({"x": 0.3, "y": 0.6})))
    assert answers[0] == answers[1]


def test_a_design_told_in_any_order_gives_the_same_next_ask() -> None:
    answers = []
    for order in (range(8), reversed(range(8))):
        opt = Optimizer(PLANE, constraints=["g <= 0"], seed=4, initial=8)
        trials = opt.ask(8)
        for number in order:
            tell(opt, trials[number], waves)
        answers.append((opt.ask(), opt.state()["memories"]))
    assert answers[0] == answers[1]


def test_one_worker_that_never_comes_back_stops_nobody() -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], seed=4, initial=4)
    lost = [opt.ask() for _ in range(2)]
    run(opt, waves, 12)
    assert [trial.id for trial in opt.trials if not trial.told] == [trial.id for trial in lost]
    assert opt.best is not None


def test_all_may_be_out_at_once_before_anything_is_told() -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], seed=4, initial=3)
    points = places(opt.ask(40))
    assert closest(points) > 1e-3
    tell(opt, opt.trials[17], waves)
    assert opt.ask().id == 40


# Small finite spaces


SIX = Space({"n": Int(1, 3), "kind": Categorical(["a", "b"])})


@every_strategy
def test_a_small_space_does_not_repeat_until_it_is_exhausted(strategy: str) -> None:
    opt = Optimizer(SIX, constraints=["g <= 2"], strategy=strategy, seed=1, initial=2)
    for number in range(8):
        trial = opt.ask()
        assert SIX.check(trial.params) == trial.params
        if number < 6:
            assert trial.params not in [other.params for other in opt.trials[:number]]
        if number % 3 < 2:  # the others stay out
            n = trial.params["n"]
            opt.tell(trial, float(n), constraints={"g": n - (trial.params["kind"] == "a")})


@pytest.mark.parametrize("strategy", ["cbob", "tsc", "sobol"])
def test_a_small_space_can_be_asked_for_whole_at_once(strategy: str) -> None:
    for seed in range(3):
        opt = Optimizer(SIX, constraints=["g <= 2"], strategy=strategy, seed=seed, initial=1)
        opt.tell(opt.ask(), 1.0, constraints={"g": 1.0})
        opt.ask(5)
        assert len({tuple(trial.params.values()) for trial in opt.trials}) == 6
        assert SIX.check(opt.ask().params)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "space",
    [
        Space({"a": Int(1, 10), "b": Int(1, 10)}),
        Space({"a": Int(1, 100, log=True)}),
        Space({"a": Int(1, 30, log=True), "b": Categorical(list("abcdefgh"))}),
    ],
    ids=["10 x 10", "log 100", "log 30 x 8"],
)
def test_the_design_does_not_repeat_until_a_finite_space_is_exhausted(space: Space, seed: int) -> None:
    assert space.size is not None
    opt = Optimizer(space, strategy="sobol", seed=seed)
    seen = [tuple(trial.params.values()) for trial in opt.ask(space.size)]
    assert len(set(seen)) == space.size


def test_the_best_of_a_finite_space_is_found_before_it_is_exhausted() -> None:
    space = Space({"a": Int(0, 9), "b": Int(0, 9)})
    opt = Optimizer(space, constraints=["sum <= 12"], seed=3, initial=8)
    for _ in range(22):
        trial = opt.ask()
        a, b = trial.params["a"], trial.params["b"]
        opt.tell(trial, -a - 0.5 * b, constraints={"sum": a + b}) if a + b <= 12 else opt.tell(trial, violated=["sum"])
    assert opt.best is not None
    assert opt.best.value == -10.5


def test_a_space_of_one_point_is_asked_for_again_and_again() -> None:
    opt = Optimizer(Space({"only": Categorical(["this"])}), seed=1, initial=1)
    for value in (0.3, 0.2, 0.4):
        trial = opt.ask()
        assert trial.params == {"only": "this"}
        opt.tell(trial, value)
    assert opt.best is not None
    assert opt.best.value == 0.2


def test_a_continuum_of_few_numbers_is_no_trap() -> None:
    opt = Optimizer(Space({"x": Float(1e16, 1e16 + 4.0)}), seed=1, initial=2)
    for _ in range(6):
        trial = opt.ask()
        assert trial.params["x"] in (1e16, 1e16 + 2.0, 1e16 + 4.0)
        opt.tell(trial, trial.params["x"] - 1e16)
