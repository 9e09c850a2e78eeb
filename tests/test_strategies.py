"""The recipes: each is the acquisition that its name promises, and proposes a row that can be tried."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import acquisitions as exact
from reference.acquisitions import textbook_marginals

from cbob.acquisition.base import Acquisition
from cbob.acquisition.entropy import MinValueEntropy
from cbob.acquisition.feasibility import EMUB, Exploration
from cbob.candidates import Effort, Taken, is_taken, maximise
from cbob.errors import StrategyError
from cbob.models.gp import Posterior
from cbob.models.kernels import Kernel
from cbob.space import Categorical, Float, Int, Space
from cbob.strategies import STRATEGIES, Beliefs, Climb, Entropy, Experience, Strategy, Thompson, as_strategy, search

Array = NDArray[np.float64]

SPACE = Space({"x": Float(0.0, 1.0), "n": Int(1, 9), "kind": Categorical(["a", "b"])})
MODELS = [name for name, strategy in STRATEGIES.items() if strategy.uses_models]
every_model = pytest.mark.parametrize("name", MODELS)


def posterior(rows: Array, y: Array) -> Posterior:
    kernel = Kernel(np.full(rows.shape[1], 0.7), 1.0, effects=0.0, ratio=1.0, bias=0.5, portions=np.zeros(rows.shape[1]))
    return Posterior(kernel, rows, y, np.full(len(y), 1e-6))


def beliefs(*, space: Space = SPACE, best: float | None = -0.5, seed: int = 0, asked: int = 12) -> Beliefs:
    rng = np.random.default_rng(seed)
    rows = space.spread(rng.random((10, len(space.names))))
    values, fuel, heat = rng.standard_normal((3, 10))
    return Beliefs(
        space=space,
        objective=posterior(rows, values),
        limits=(posterior(rows, fuel - 0.5), posterior(rows, heat)),
        best=best,
        centres=rows[:2],
        taken=Taken(told=rows, out=rows[:0]),
        improved=np.zeros(0, dtype=bool),
        rng=np.random.default_rng(seed + 1),
        asked=asked,
        hopeful=True,
        experience=Experience(np.zeros((0, 3)), np.zeros((0, 3))),
    )


def test_the_table_has_the_recipes_of_the_paper() -> None:
    assert list(STRATEGIES) == ["auto", "cbob", "cbob-mub", "eic", "pi-cb", "mesc", "tsc", "sobol"]
    with pytest.raises(TypeError):
        STRATEGIES["mine"] = Climb()  # type: ignore[index]


def emub_of_adaptive_scale(given: Beliefs, limit: int) -> float:
    """B.7 over the very grid that the recipe saw, which its generator gives again."""
    (name, recipe) = as_strategy("cbob-mub")
    assert name == "cbob-mub"
    assert isinstance(recipe, Climb)
    found = recipe.acquisition(replace(given, rng=np.random.default_rng(1)))
    explore = found.factors[limit].exploration  # type: ignore[attr-defined]
    assert isinstance(explore, EMUB)
    return explore.gamma


@pytest.mark.parametrize("name", ["cbob", "cbob-mub", "eic", "pi-cb"])
def test_a_climb_maximises_the_product_that_its_name_stands_for(name: str) -> None:
    """Against integrals at rows of which the surrogates are unsure, where a boundary may run."""
    given, recipe = beliefs(), STRATEGIES[name]
    assert isinstance(recipe, Climb)
    rows = SPACE.spread(np.random.default_rng(3).random((6, 3)))
    value = np.exp(recipe.acquisition(given)(rows))
    marginals = [textbook_marginals(one, rows) for one in (given.objective, *given.limits)]
    for i in range(len(rows)):
        (mean, std), *limits = [(float(m[i]), float(s[i])) for m, s in marginals]
        assert min(s for _, s in limits) > 0.05
        if name == "pi-cb":
            expected = exact.probability_below(mean, std, -0.5)
        else:
            expected = exact.expected_improvement(mean, std, -0.5)
        for number, (m, s) in enumerate(limits, start=1):
            rho = {"eic": 0.0, "cbob-mub": exact.emub(m, s)}.get(name, exact.pob(m, s))
            rho /= emub_of_adaptive_scale(given, number) if name == "cbob-mub" else 1.0
            expected *= exact.dpof(rho, m, s)
        assert value[i] == pytest.approx(expected, rel=1e-7)


def test_auto_is_the_product_of_improvement_and_shifted_limits_explored_as_the_experience_allows() -> None:
    """Promises kept on one limit and broken on the other; against integrals, each mean moved by its own shift."""
    promised = np.column_stack([np.zeros(30), np.full(30, 0.3), np.full(30, 0.3)])
    kept = np.column_stack([np.zeros(30), np.zeros(30), np.ones(30)])
    given, recipe = replace(beliefs(), experience=Experience(promised, kept)), STRATEGIES["auto"]
    assert isinstance(recipe, Climb)
    shifts, balance = given.experience.shifts, given.experience.balance
    assert shifts[0] > 1.0 and shifts[1] < -0.5 and balance < 0.1
    rows = SPACE.spread(np.random.default_rng(3).random((6, 3)))
    value = np.exp(recipe.acquisition(given)(rows))
    marginals = [textbook_marginals(one, rows) for one in (given.objective, *given.limits)]
    for i in range(len(rows)):
        (mean, std), *limits = [(float(m[i]), float(s[i])) for m, s in marginals]
        expected = exact.expected_improvement(mean, std, -0.5)
        for by, (m, s) in zip(shifts, limits, strict=True):
            expected *= exact.dpof(balance * exact.pob(m + by * s, s), m + by * s, s)
        assert value[i] == pytest.approx(expected, rel=1e-6)


def test_the_adaptive_scale_is_near_the_largest_product_in_the_cube() -> None:
    given = beliefs()
    rows = SPACE.spread(np.random.default_rng(4).random((800, 3)))
    for number, limit in enumerate(given.limits, start=1):
        mean, std = limit.predict(rows)
        at = zip(mean.tolist(), std.tolist(), strict=True)
        largest = max(exact.emub(m, s) * exact.probability_below(m, s) for m, s in at)
        assert emub_of_adaptive_scale(given, number) == pytest.approx(largest, rel=0.15)


@every_model
@pytest.mark.parametrize("limits", [0, 1, 2])
def test_it_proposes_a_row_that_a_trial_can_have_and_that_is_not_taken(name: str, limits: int) -> None:
    for seed in range(3):
        given = beliefs(seed=seed)
        nothing = np.zeros((0, 1 + limits))
        given = replace(given, limits=given.limits[:limits], experience=Experience(nothing, nothing))
        row = STRATEGIES[name].propose(given)
        np.testing.assert_array_equal(row, SPACE.snap(row[None])[0])
        assert not is_taken(row, given.taken)


@every_model
def test_it_writes_to_nothing_and_repeats_itself_with_the_same_generator(name: str) -> None:
    rows = []
    for _ in range(2):
        given = beliefs()
        arrays = [given.centres, given.taken.told, given.improved, given.objective.y, given.objective.X]
        for array in arrays:
            array.flags.writeable = False
        rows.append(STRATEGIES[name].propose(given))
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("name", ["auto", "cbob", "cbob-mub", "eic", "pi-cb", "mesc"])
def test_it_proposes_a_row_hardly_worse_than_the_best_of_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Acquisition] = []

    def watched(acquisition: Acquisition, *rest: Any, **options: Any) -> Array:
        seen.append(acquisition)
        return maximise(acquisition, *rest, **options)

    monkeypatch.setattr("cbob.strategies.maximise", watched)
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    rows = space.spread(np.random.default_rng(7).random((5000, 2)))
    for seed in range(3):
        row = STRATEGIES[name].propose(beliefs(space=space, seed=seed))
        assert seen[-1](row[None])[0] >= seen[-1](rows).max() - 0.01


def test_what_was_seen_bounds_the_sampled_minima(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Array] = []

    def watched(objective: Posterior, limits: Sequence[Posterior], minima: Array) -> MinValueEntropy:
        seen.append(minima)
        return MinValueEntropy(objective, limits, minima)

    monkeypatch.setattr("cbob.strategies.MinValueEntropy", watched)
    Entropy().propose(beliefs(best=-5.0))  # better than any draw
    Entropy(samples=7).propose(beliefs(best=50.0))  # worse than any
    assert seen[0].tolist() == [-5.0] * 20
    assert seen[1].size == 7
    assert (seen[1] < 5.0).all()


# Thompson sampling


def test_tsc_stays_in_its_region_around_the_best() -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    for failures, side in ((0, 0.8), (4, 0.4), (12, 0.1), (20, 0.025)):
        given = replace(beliefs(space=space), improved=np.zeros(failures, dtype=bool))
        moves = [
            np.abs(Thompson(grid=200).propose(replace(given, rng=np.random.default_rng(seed))) - given.centres[0])
            for seed in range(6)
        ]
        assert np.max(moves) <= 0.5 * side + 1e-12
        assert np.max(moves) > 0.02 * side


def test_tsc_goes_where_a_draw_is_best() -> None:
    """With much data a draw is nearly the truth: low near 0.3, and allowed up to 0.6."""
    space = Space({"x": Float(0.0, 1.0)})
    rows = np.linspace(0.0, 1.0, 40)[:, None]
    given = replace(
        beliefs(space=space),
        objective=posterior(rows, (rows[:, 0] - 0.3) ** 2 * 9.0),
        limits=(posterior(rows, rows[:, 0] - 0.6),),
        centres=np.array([[0.5]]),
        taken=Taken(told=np.array([[0.5]]), out=np.empty((0, 1))),
    )
    found = [float(Thompson(grid=200).propose(replace(given, rng=np.random.default_rng(s)))[0]) for s in range(4)]
    assert found == pytest.approx([0.3] * 4, abs=0.03)
    beyond = replace(given, limits=(posterior(rows, 0.45 - rows[:, 0]),))
    found = [float(Thompson(grid=200).propose(replace(beyond, rng=np.random.default_rng(s)))[0]) for s in range(4)]
    assert found == pytest.approx([0.45] * 4, abs=0.03)


# While nothing feasible is known


def test_the_search_takes_turns_and_comes_back_to_the_design() -> None:
    turns = [search(beliefs(best=None, asked=asked)) is None for asked in range(12)]
    assert sum(turns) == 4, "a third of the search is plain design"
    assert all(any(turns[i : i + 3]) for i in range(10))


def test_the_search_proposes_rows_that_a_trial_can_have_and_that_are_not_taken() -> None:
    for asked in range(9):
        given = beliefs(best=None, asked=asked)
        row = search(given)
        if row is not None:
            np.testing.assert_array_equal(row, SPACE.snap(row[None])[0])
            assert not is_taken(row, given.taken)


def test_without_limits_there_is_nothing_to_search_but_the_design() -> None:
    given = replace(beliefs(best=None), limits=())
    assert [search(replace(given, asked=asked)) for asked in range(6)] == [None] * 6


# Names, and strategies of one's own


def test_a_strategy_is_found_by_its_name() -> None:
    for name, recipe in STRATEGIES.items():
        assert as_strategy(name) == (name, recipe)


@pytest.mark.parametrize("wrong", ["eicb", "", "CBOB", None, 3, ["cbob"], {"cbob": 1}])
def test_an_unknown_strategy_is_refused_with_the_names(wrong: Any) -> None:
    with pytest.raises(StrategyError, match=r"one of auto, cbob, cbob-mub, eic, pi-cb, mesc, tsc, sobol"):
        as_strategy(wrong)


class Corner(Strategy):
    """The smallest strategy of one's own."""

    def propose(self, given: Beliefs) -> Array:
        return given.space.snap(np.zeros((1, given.space.width)))[0]


def test_a_strategy_of_ones_own_is_taken_as_it_is() -> None:
    mine = Corner()
    assert as_strategy(mine) == ("Corner", mine)
    assert mine.uses_models


class Timid(Exploration):
    def rho(self, mean: Array, std: Array) -> Array:
        return 0.1 * std / (1.0 + std)


def test_a_climb_takes_an_exploration_of_ones_own() -> None:
    given, rows = beliefs(), SPACE.spread(np.random.default_rng(3).random((4, 3)))
    value = np.exp(Climb(explore=Timid()).acquisition(given)(rows))
    for i in range(4):
        (mean, std), *limits = [
            tuple(float(part[i]) for part in textbook_marginals(one, rows)) for one in (given.objective, *given.limits)
        ]
        expected = exact.expected_improvement(mean, std, -0.5)
        expected *= math.prod(exact.dpof(0.1 * s / (1.0 + s), m, s) for m, s in limits)
        assert value[i] == pytest.approx(expected, rel=1e-7)
    row = Climb(explore=Timid(), effort=Effort(spread=32, scattered=16)).propose(given)
    np.testing.assert_array_equal(row, SPACE.snap(row[None])[0])
