"""CBOBSampler in studies: it learns from failures, and what it asks depends on its seed and the storage alone."""

import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from cbob import Constraint
from cbob.errors import CbobError, StrategyError
from cbob.integrations.optuna import CBOBSampler, mark_lost, report
from cbob.integrations.optuna.history import FORECAST, Seen
from cbob.integrations.optuna.sampler import checkpoint
from cbob.integrations.optuna.spaces import Codec
from cbob.optimizer import Optimizer
from cbob.strategies import STRATEGIES, Beliefs, Strategy
from cbob.study.records import record_of

SPOTS: dict[str, BaseDistribution] = {
    "x": FloatDistribution(-2.0, 2.0),
    "k": IntDistribution(1, 9, step=2),
    "c": CategoricalDistribution(["a", None]),
}


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def finish(study: optuna.Study, trial: optuna.Trial) -> None:
    """A bowl that fails beyond x = 1, breaks "heat" for k > 6, and measures it elsewhere."""
    x, k, c = (trial.params[name] for name in SPOTS)
    if x > 1.0:
        report(trial, kind="crash", reason="diverged")
        study.tell(trial, state=TrialState.FAIL)
    elif k > 6:
        report(trial, violated=["heat"])
        study.tell(trial, state=TrialState.FAIL)
    else:
        report(trial, readings={"heat": 10.0 * k})
        study.tell(trial, (x - 0.9) ** 2 + 0.1 * k + (c is None))


def sampler(**options: Any) -> CBOBSampler:
    return CBOBSampler(**{"constraints": ["heat <= 65"], "seed": 5, **options})


def asked(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials if trial.user_attrs.get("cbob:failure", {}).get("kind") != "lost"]


def uninterrupted(n: int, **options: Any) -> list[dict[str, Any]]:
    study = optuna.create_study(sampler=sampler(**options))
    for _ in range(n):
        finish(study, study.ask(SPOTS))
    return asked(study)


@pytest.mark.parametrize(
    "strategy", ["cbob", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tsc", "mesc", "sobol"))]
)
def test_a_new_sampler_in_a_new_study_object_after_every_trial_asks_bit_for_bit_the_same(tmp_path: Path, strategy: str) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=url, study_name="s")
    for _ in range(20):
        study = optuna.load_study(storage=url, study_name="s", sampler=sampler(strategy=strategy, initial=5))
        finish(study, study.ask(SPOTS))
    assert asked(study) == uninterrupted(20, strategy=strategy, initial=5)


def test_another_process_asks_bit_for_bit_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=url, study_name="s", sampler=sampler())
    for _ in range(9):
        finish(study, study.ask(SPOTS))
    script = """
        import sys, optuna
        from test_optuna_sampler import SPOTS, finish, sampler
        study = optuna.load_study(storage=sys.argv[1], study_name="s", sampler=sampler())
        finish(study, study.ask(SPOTS))
        finish(study, study.ask(SPOTS))
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), url],
        check=True,
        cwd=Path(__file__).parent,
        timeout=120,
        capture_output=True,
    )
    assert asked(optuna.load_study(storage=url, study_name="s")) == uninterrupted(11)


@pytest.mark.parametrize("at", [12, *(pytest.param(number, marks=pytest.mark.slow) for number in (0, 3, 13))])
def test_a_trial_that_was_lost_leaves_no_trace_in_what_is_asked(at: int) -> None:
    study = optuna.create_study(sampler=sampler())
    for number in range(14):
        if number == at:
            lost = study.ask(SPOTS)
            report(lost, readings={"heat": 1e9})
            study.sampler = sampler()  # the process that asked for it is gone
            mark_lost(study, lost.number)
            silent = study.ask()  # and one that never asked for a parameter
            mark_lost(study, silent.number)
        finish(study, study.ask(SPOTS))
    assert asked(study) == uninterrupted(14)


def test_it_finds_the_edge_beyond_which_trials_fail_for_no_known_reason() -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x + y > 0.8:
            raise RuntimeError("diverged")
        return -x - 2 * y

    study = optuna.create_study(sampler=CBOBSampler(seed=1))
    study.optimize(objective, n_trials=30, catch=RuntimeError)
    assert study.best_value < -1.57  # the best that does not fail is -1.6


def test_directions_mirror_each_other() -> None:
    def ask(direction: str, sign: float) -> list[float]:
        study = optuna.create_study(direction=direction, sampler=CBOBSampler(seed=3))
        study.optimize(lambda trial: sign * (trial.suggest_float("x", -1, 1) - 0.3) ** 2, n_trials=9)
        return [trial.params["x"] for trial in study.trials]

    assert ask("minimize", 1.0) == ask("maximize", -1.0)


def test_constraints_are_discovered_from_set_constraint() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("g", 0.6 - x)
        return x

    study = optuna.create_study(sampler=CBOBSampler(seed=0))
    study.optimize(objective, n_trials=15)
    assert 0.6 <= study.best_value < 0.601


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_of_the_engine_can_be_named(strategy: str) -> None:
    study = optuna.create_study(sampler=sampler(strategy=strategy, initial=3))
    for _ in range(6):
        finish(study, study.ask(SPOTS))
    assert len(study.trials) == 6


class Middle(Strategy):
    def propose(self, beliefs: Beliefs) -> NDArray[np.float64]:
        return beliefs.space.snap(np.full((1, beliefs.space.width), 0.5))[0]  # type: ignore[no-any-return]


def test_a_strategy_of_ones_own_is_asked() -> None:
    study = optuna.create_study(sampler=CBOBSampler(strategy=Middle(), initial=2, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 10), n_trials=5)
    assert [trial.params["x"] for trial in study.trials[-2:]] == [5.0, 5.0]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"strategy": "best"}, StrategyError),
        ({"surrogate": "forest"}, StrategyError),
        ({"initial": -1}, StrategyError),
        ({"seed": 0.5}, StrategyError),
        ({"constraints": ["fuel < 3"]}, CbobError),
    ],
)
def test_a_wrong_option_is_refused_at_once(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        CBOBSampler(**options)


def test_several_objectives_are_refused_with_a_reason() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=CBOBSampler(seed=0))
    with pytest.raises(StrategyError, match="one objective, not for 2"):
        study.ask({"x": FloatDistribution(0, 1)})


def test_without_a_seed_two_samplers_differ() -> None:
    def first(sampler: CBOBSampler) -> Any:
        return optuna.create_study(sampler=sampler).ask({"x": FloatDistribution(0, 1)}).params

    assert first(CBOBSampler()) != first(CBOBSampler())


def test_a_pickled_sampler_goes_on() -> None:
    study = optuna.create_study(sampler=sampler())
    for number in range(11):
        if number == 9:
            study.sampler = pickle.loads(pickle.dumps(study.sampler))
        finish(study, study.ask(SPOTS))
    assert asked(study) == uninterrupted(11)


@pytest.mark.parametrize("initial", [2, 30])
def test_workers_that_ask_at_the_same_time_get_different_points(initial: int) -> None:
    """Nobody has told what he asks for when the next one asks: the trials are there, their parameters are not."""
    spots: dict[str, BaseDistribution] = {"x": FloatDistribution(-1, 1), "y": FloatDistribution(-1, 1)}
    study = optuna.create_study(sampler=CBOBSampler(seed=0, initial=initial))
    for _ in range(5):
        trial = study.ask(spots)
        study.tell(trial, trial.params["x"] ** 2 + trial.params["y"])
    trials = [study._storage.get_trial(study._storage.create_new_trial(study._study_id)) for _ in range(6)]
    points = []
    for trial in trials:
        points.append(CBOBSampler(seed=0, initial=initial).sample_relative(study, trial, spots))
        study._storage.set_trial_system_attr(trial._trial_id, "cbob:proposed", {})  # unseen by the others
    rows = np.array([list(point.values()) for point in points])
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)[np.triu_indices(6, 1)]
    assert apart.min() > 0.01


def test_a_point_that_still_runs_is_not_asked_again() -> None:
    study = optuna.create_study(sampler=sampler())
    for _ in range(14):
        finish(study, study.ask(SPOTS))
    out = [study.ask(SPOTS).params for _ in range(4)]
    assert len({tuple(params.values()) for params in out}) == 4


def test_a_pruned_point_is_not_asked_again() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_int("x", 0, 9)
        if x in (2, 3, 4):
            raise optuna.TrialPruned
        return float((x - 3) ** 2)

    study = optuna.create_study(sampler=CBOBSampler(seed=0, initial=3))
    study.optimize(objective, n_trials=10)
    assert sorted(trial.params["x"] for trial in study.trials) == list(range(10))


def test_enqueued_points_are_run_and_learned_from() -> None:
    study = optuna.create_study(sampler=CBOBSampler(seed=0, initial=2))
    for x in (0.1, 0.2, 0.9):
        study.enqueue_trial({"x": x})
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.5) ** 2 + trial.suggest_float("y", 0, 1), n_trials=12)
    assert [trial.params["x"] for trial in study.trials[:3]] == [0.1, 0.2, 0.9]
    assert study.best_value < 0.02


def test_threads_share_a_study() -> None:
    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x > 0.8:
            raise ValueError("too hot")
        return y - x

    study = optuna.create_study(sampler=CBOBSampler(seed=0))
    study.optimize(objective, n_trials=16, n_jobs=4, catch=ValueError)
    assert len(study.trials) == 16
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 16


@pytest.mark.slow
def test_processes_share_a_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=url, study_name="s")
    script = """
        import sys, optuna
        from test_optuna_sampler import SPOTS, finish, sampler
        study = optuna.load_study(storage=sys.argv[1], study_name="s", sampler=sampler())
        for _ in range(8):
            finish(study, study.ask(SPOTS))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), url]
    workers = [subprocess.Popen(command, cwd=Path(__file__).parent, stderr=subprocess.PIPE) for _ in range(3)]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors.decode()
    study = optuna.load_study(storage=url, study_name="s")
    assert len(study.trials) == 24 and all(trial.state.is_finished() for trial in study.trials)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 24


def hyperband() -> optuna.pruners.BasePruner:
    return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)


@pytest.mark.parametrize("pruner", [hyperband, optuna.pruners.MedianPruner])
def test_pruners_work_with_it(pruner: Callable[[], optuna.pruners.BasePruner]) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -3, 3)
        for step in range(1, 10):
            trial.report((x - 1) ** 2 + 9 / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return (x - 1) ** 2

    study = optuna.create_study(study_name="s", sampler=CBOBSampler(seed=0), pruner=pruner())  # Hyperband reads the name
    study.optimize(objective, n_trials=25)
    assert study.best_value < 0.1


def test_checkpoints_lag_behind_by_an_eighth_at_most() -> None:
    sizes = [checkpoint(told) for told in range(1, 3000)]
    assert sizes[:15] == list(range(1, 16))
    assert all(7 / 8 * told < size <= told for told, size in enumerate(sizes, 1))
    assert len(set(sizes)) < 90


def test_a_constraint_object_serves_as_well_as_its_text() -> None:
    by_text, by_object = sampler(), sampler(constraints=[Constraint("heat", 65.0)])
    assert by_text._constraints == by_object._constraints


def test_a_row_of_the_design_is_what_the_engine_asks_in_its_place() -> None:
    mine = sampler(strategy="sobol")
    engine = Optimizer(Codec(SPOTS).space or {}, strategy="sobol", seed=5)
    assert mine.only_designs and not sampler().only_designs
    for place in range(70):
        trial = engine.ask()
        assert mine.design(SPOTS, place) == Codec(SPOTS).decode(trial.params)
        engine.tell(trial, 0.0)


@pytest.mark.parametrize("told", [4, 12])
def test_what_is_proposed_for_a_trial_to_be_is_what_it_would_ask_itself(told: int) -> None:
    study = optuna.create_study(sampler=sampler(initial=8))
    for _ in range(told):
        finish(study, study.ask(SPOTS))
    proposed = sampler(initial=8).propose(study, SPOTS, study.get_trials(), number=told)
    trial = study.ask(SPOTS)
    assert proposed.params == trial.params
    assert (proposed.forecast is None) == (told < 8)
    stored = study.get_trials()[-1].system_attrs
    assert stored.get(FORECAST) == (proposed.forecast and proposed.forecast.to_dict())


def test_what_was_promised_of_a_trial_is_kept_with_it_and_counts_at_later_asks() -> None:
    study = optuna.create_study(sampler=sampler(initial=8))
    for _ in range(14):
        finish(study, study.ask(SPOTS))
    promised = [Seen(trial).forecast for trial in study.trials]
    assert promised[:8] == [None] * 8 and None not in promised[8:]
    assert promised[-1] is not None and promised[-1].limits.keys() >= {"heat", "it ran"}
    mine, before = sampler(initial=8), study.get_trials()
    shift = mine.propose(study, SPOTS, before, number=14).forecast
    for trial in before:
        if FORECAST in trial.system_attrs:  # that all of it had been held for certain
            limits = dict.fromkeys(trial.system_attrs[FORECAST]["limits"], 3.0)
            trial.system_attrs[FORECAST] = {"limits": limits, "improvement": None, "weighed": {}}
    other = sampler(initial=8).propose(study, SPOTS, before, number=14).forecast
    assert shift is not None and other is not None
    assert other.weighed["balance"] == shift.weighed["balance"]
    assert other.weighed["shift of it ran"] > shift.weighed["shift of it ran"]


def test_an_enqueued_trial_is_not_held_to_what_was_promised_of_another_point() -> None:
    study = optuna.create_study(sampler=CBOBSampler(seed=0, initial=2))
    square: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    for _ in range(4):
        study.tell(study.ask(square), 0.5)
    study.enqueue_trial({"x": 0.125})
    trial = study.ask(square)
    study.tell(trial, 0.25)
    assert trial.params["x"] == 0.125 and FORECAST in study.get_trials()[-1].system_attrs
    assert record_of(study.get_trials()[-1], ()).forecast is None
    assert [Seen(one).forecast is None for one in study.trials] == [True, True, False, False, True]
