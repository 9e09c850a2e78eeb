"""state() and from_state(): plain JSON, and an optimizer that goes on bit for bit."""

import functools
import json
from typing import Any

import pytest
from landscapes import PLANE, TUNING, TUNING_LIMITS, needle, run, tell, tuning, waves
from numpy.typing import NDArray

from cbob import Categorical, Float, Int, Optimizer, StateError, Trial
from cbob.errors import CbobError, StrategyError
from cbob.strategies import STRATEGIES, Beliefs, Climb, Strategy

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def reloaded(opt: Optimizer, **options: Any) -> Optimizer:
    """Through the text of a file, which knows no NaN."""
    state = opt.state()
    again = json.loads(json.dumps(state, allow_nan=False, sort_keys=True))
    assert again == state, "plain JSON comes back as it was"
    return Optimizer.from_state(again, **options)


def ask_both(opt: Optimizer, **options: Any) -> Trial:
    """The next trial, which a reloaded optimizer has to ask as well, ending in the same state."""
    copy = reloaded(opt, **options)
    assert copy.state() == opt.state()
    trial = opt.ask()
    assert copy.ask() == trial
    assert copy.state() == opt.state()
    return trial


@every_strategy
@pytest.mark.parametrize("surrogate", ["hlgp", "gpc"])
def test_a_reloaded_optimizer_asks_bit_for_bit_the_same(strategy: str, surrogate: str) -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=strategy, surrogate=surrogate, seed=3, initial=5)
    tell(opt, ask_both(opt), waves)  # at the very start
    run(opt, waves, 3)
    waiting = ask_both(opt)  # the last of the design
    first = ask_both(opt)  # a trial is out; nothing was learned before
    second = ask_both(opt)  # right after an ask; two are out
    tell(opt, first, waves)
    tell(opt, waiting, waves)
    third = ask_both(opt)  # after tells, in another order, and one is out
    for trial in (third, second):
        tell(opt, trial, waves)
    copy, params = reloaded(opt), {"x": 0.3, "y": 0.4}
    assert copy.predict(params) == opt.predict(params)
    assert reloaded(opt).predict(params) == opt.predict(params)
    ask_both(opt)  # after a prediction


@pytest.mark.parametrize("strategy", ["cbob", "tsc"])
def test_it_does_so_while_nothing_feasible_is_known(strategy: str) -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=strategy, seed=2, initial=3)
    for _ in range(7):
        trial = ask_both(opt)
        opt.tell(trial, violated="g")


def test_it_does_so_with_every_kind_of_parameter_and_telling() -> None:
    opt = Optimizer(TUNING, constraints=TUNING_LIMITS, seed=11, initial=4, direction="maximize")
    opt.add({"rate": 0.1, "depth": 4, "solver": "sgd"}, -0.3, constraints={"size": 39000, "accuracy": 0.91})
    for number in range(8):
        trial = ask_both(opt)
        if number == 2:
            opt.tell(trial, failed="out of memory")
        elif number == 5:
            opt.tell(trial, float("nan"), satisfied=TUNING_LIMITS[0].split()[0])
        else:
            tell(opt, trial, tuning)


def test_it_does_so_after_many_moves_of_the_run_between_machines() -> None:
    """A run that is reloaded before each ask is the run that never was."""
    land = needle(0.4, 0.55)
    steady = run(Optimizer(PLANE, constraints=["g <= 0"], seed=6, initial=4), land, 8)
    moved = Optimizer(PLANE, constraints=["g <= 0"], seed=6, initial=4)
    for _ in range(8):
        moved = reloaded(moved)
        trial = moved.ask()
        moved = reloaded(moved)
        tell(moved, trial, land)
    assert moved.state() == steady.state()


def test_choices_and_numbers_keep_their_types_and_their_last_bit() -> None:
    space = {
        "kind": Categorical([1, 1.0, True, "1", None]),
        "x": Float(1e-300, 1e300, log=True),
        "n": Int(-(2**62), 2**62),
    }
    opt = Optimizer(space, constraints=[f"g >= {0.1 + 0.2!r}"], strategy="sobol", seed=2**70)
    opt.ask(20)
    copy = reloaded(opt)
    assert copy.trials == opt.trials
    for mine, theirs in zip(opt.trials, copy.trials, strict=True):
        assert {name: type(mine.params[name]) for name in space} == {name: type(theirs.params[name]) for name in space}
    assert copy.space == opt.space
    assert copy.constraints == opt.constraints
    assert (copy.seed, copy.ask()) == (2**70, opt.ask())


def test_a_seed_that_was_drawn_is_kept() -> None:
    opt = Optimizer(PLANE, strategy="sobol")
    assert reloaded(opt).ask(3) == opt.ask(3)


# A strategy of one's own


class Middle(Strategy):
    def propose(self, given: Beliefs) -> NDArray[Any]:
        return given.space.snap(0.5 + 0.1 * given.rng.random((1, given.space.width)))[0]


def test_a_strategy_of_ones_own_has_to_be_given_again() -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], strategy=Middle(), seed=1, initial=4)
    run(opt, waves, 5)
    tell(opt, ask_both(opt, strategy=Middle()), waves)
    with pytest.raises(StrategyError, match="Middle"):
        Optimizer.from_state(opt.state())
    mine = Optimizer(PLANE, strategy=Climb(), seed=1)
    assert reloaded(mine, strategy=Climb()).state() == mine.state()


# What is no state


@pytest.mark.parametrize("wrong", [None, 3, [], {}, {"version": 1}, "state", {"version": None}])
def test_what_is_no_state_is_refused(wrong: Any) -> None:
    with pytest.raises(StateError):
        Optimizer.from_state(wrong)


def test_a_state_of_another_version_is_refused_with_both_versions() -> None:
    state = Optimizer(PLANE, seed=1).state()
    with pytest.raises(StateError, match=r"version 1, not 99"):
        Optimizer.from_state(state | {"version": 99})


@functools.cache
def whole_state() -> dict[str, Any]:
    opt = run(Optimizer(PLANE, constraints=["g <= 0"], seed=1, initial=5), waves, 7)
    opt.predict({"x": 0.5, "y": 0.5})
    return opt.state()


@pytest.mark.parametrize("key", sorted(Optimizer(PLANE, seed=1).state()))
@pytest.mark.parametrize("wrong", [None, "x", [[]], {"a": 1}, -1.5])
def test_a_damaged_state_is_an_error_of_cbobs_own(key: str, wrong: Any) -> None:
    """Whatever part is lost or overwritten: an error that can be caught, or a state that can be used."""
    state = whole_state()
    missing = {name: part for name, part in state.items() if name != key}
    with pytest.raises(StateError):
        Optimizer.from_state(missing)
    try:
        again = Optimizer.from_state(state | {key: wrong})
    except CbobError:
        return
    again.ask()


def damages() -> dict[str, dict[str, Any]]:
    state = whole_state()
    memory = state["memories"]["objective"]

    def with_memory(**changes: Any) -> dict[str, Any]:
        return state | {"memories": state["memories"] | {"objective": memory | changes}}

    return {
        "a trial is missing": state | {"trials": state["trials"][:1] + state["trials"][2:]},
        "trials in another order": state | {"trials": state["trials"][::-1]},
        "theta too short": with_memory(theta=memory["theta"][:-1]),
        "theta of NaN": with_memory(theta=[float("nan")] * len(memory["theta"])),
        "metric too small": with_memory(metric=memory["metric"][:-1]),
        "more sites than readings": with_memory(precision=[0.0] * 99, shift=[0.0] * 99),
    }


@pytest.mark.parametrize("name", damages())
def test_a_state_whose_parts_do_not_fit_together_is_refused_at_once(name: str) -> None:
    """Loaded, it would overwrite a result that was told, or break an ask later on."""
    Optimizer.from_state(whole_state()).ask()
    with pytest.raises(StateError, match="not a state"):
        Optimizer.from_state(damages()[name])


def test_what_is_no_mapping_or_lacks_a_part_is_refused_with_what_to_do() -> None:
    with pytest.raises(StateError, match=r"json\.loads"):
        Optimizer.from_state(json.dumps(whole_state()))  # type: ignore[arg-type]
    with pytest.raises(StateError, match="lacks 'seed', 'memories'"):
        Optimizer.from_state({key: part for key, part in whole_state().items() if key not in ("seed", "memories")})


def test_results_added_between_asks_do_not_stop_the_turns_of_the_search() -> None:
    opt = Optimizer(PLANE, constraints=["g <= 0"], seed=1, initial=2)
    designed = []
    for i in range(11):
        before = opt.state()["designed"]
        trial = opt.ask()
        designed.append(opt.state()["designed"] > before)
        opt.tell(trial, constraints={"g": 1.0 + i})
        for j in range(2):
            opt.add({"x": 0.01 + 0.03 * i, "y": 0.01 + 0.3 * j}, violated=["g"])
    assert sum(designed[2:]) == 3, designed
