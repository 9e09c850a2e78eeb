"""Spaces whose parameters depend on each other."""

from collections import Counter

import numpy as np
import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from cbob.integrations.optuna import CBOBSampler
from cbob.integrations.optuna.branches import branches, deciding, next_branch
from cbob.integrations.optuna.history import History

SPOTS: dict[str, BaseDistribution] = {
    "kind": CategoricalDistribution(["svm", "tree", "knn"]),
    "shared": CategoricalDistribution(["u", "v"]),
    "C": FloatDistribution(0, 1),
    "depth": FloatDistribution(0, 1),
}


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def history(*trials: tuple[dict[str, object], float | None]) -> History:
    def frozen(params: dict[str, object], value: float | None) -> FrozenTrial:
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        return create_trial(params=params, distributions={name: SPOTS[name] for name in params}, value=value, state=state)

    made = [frozen(*trial) for trial in trials]
    for number, trial in enumerate(made):
        trial.number = number
    return History.of(made, asking=len(made))


SVM = {"kind": "svm", "shared": "u", "C": 0.5}
TREE = {"kind": "tree", "shared": "u", "depth": 0.5}


def test_trials_of_the_same_parameters_make_a_branch() -> None:
    found = branches(history((SVM, 1.0), (TREE, 2.0), (SVM, None), ({"kind": "svm"}, None)))
    assert [sorted(branch.names) for branch in found] == [["C", "kind", "shared"], ["depth", "kind", "shared"]]
    assert [len(branch.told) for branch in found] == [2, 1]


def test_what_failed_early_makes_a_branch_only_while_nothing_went_further() -> None:
    assert [sorted(branch.names) for branch in branches(history(({"kind": "svm"}, None)))] == [["kind"]]
    nested = branches(history(({"kind": "svm"}, 0.0), (SVM, 1.0)))
    assert [sorted(branch.names) for branch in nested] == [["kind"], ["C", "kind", "shared"]]


def test_a_choice_that_leads_elsewhere_is_left_out_and_one_never_seen_stays_open() -> None:
    svm, tree = branches(history((SVM, 1.0), (TREE, 2.0)))
    assert deciding(svm, [tree], SPOTS) == {"kind": (0.0, 2.0)}
    assert deciding(tree, [svm], SPOTS) == {"kind": (1.0, 2.0)}


def test_the_best_branch_gets_most_turns_and_none_starves() -> None:
    trials: list[tuple[dict[str, object], float | None]] = []
    for _ in range(60):
        past = history(*trials) if trials else history((SVM, 1.0), (TREE, 2.0))
        branch = next_branch(branches(past), 1.0, ())
        assert branch is not None
        trials = trials or [(SVM, 1.0), (TREE, 2.0)]
        trials.append((SVM, 1.0) if "C" in branch.names else (TREE, 2.0))
    turns = Counter(str(params["kind"]) for params, _ in trials)
    assert 11 <= turns["tree"] <= 14  # a fifth: 1/4 to 1


def machine_learning(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("kind", ["svm", "tree"]) == "svm":
        C, gamma = trial.suggest_float("C", 1e-3, 1e3, log=True), trial.suggest_float("gamma", 0, 1)
        return float((np.log10(C) - 1) ** 2 + (gamma - 0.3) ** 2 + 0.5)
    depth, leaf = trial.suggest_int("depth", 1, 20), trial.suggest_float("leaf", 0, 1)
    if depth > 12:
        raise MemoryError
    return float(0.01 * (depth - 12) ** 2 + (leaf - 0.8) ** 2)


def test_a_conditional_space_is_searched_in_its_better_branch() -> None:
    study = optuna.create_study(sampler=CBOBSampler(seed=0))
    study.optimize(machine_learning, n_trials=50, catch=MemoryError)
    assert study.best_value < 0.01
    assert study.best_params["kind"] == "tree"
    late = Counter(trial.params["kind"] for trial in study.trials[20:])
    assert late["tree"] > 2 * late["svm"] > 0


def test_the_number_of_layers_may_decide_how_many_widths_there_are() -> None:
    def objective(trial: optuna.Trial) -> float:
        layers = trial.suggest_int("layers", 1, 3)
        return layers + sum((trial.suggest_float(f"width{i}", 0, 1) - 0.5) ** 2 for i in range(layers))

    study = optuna.create_study(sampler=CBOBSampler(seed=0))
    study.optimize(objective, n_trials=40)
    assert {trial.params["layers"] for trial in study.trials} == {1, 2, 3}
    assert study.best_value < 1.001


def test_a_range_may_move_between_trials() -> None:
    study = optuna.create_study(sampler=CBOBSampler(seed=0))
    for low in (0, 5, 20, 3):
        study.optimize(lambda trial, low=low: trial.suggest_float("x", low, low + 10), n_trials=8)  # type: ignore[misc]
    assert all(low <= trial.params["x"] <= low + 10 for low, trial in zip([3] * 8, study.trials[24:], strict=True))
    assert study.best_value < 0.1


def test_a_parameter_may_be_fixed_from_outside() -> None:
    study = optuna.create_study(sampler=CBOBSampler(seed=0, initial=3))
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.4) ** 2 + trial.suggest_float("y", 0, 1), n_trials=5)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.sampler = optuna.samplers.PartialFixedSampler({"y": 0.5}, study.sampler)
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.4) ** 2 + trial.suggest_float("y", 0, 1), n_trials=8)
    assert {trial.params["y"] for trial in study.trials[5:]} == {0.5}
    assert min(abs(trial.params["x"] - 0.4) for trial in study.trials[5:]) < 0.05
