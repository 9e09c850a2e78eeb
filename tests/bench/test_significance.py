"""The paired test, against SciPy's and against every assignment of signs; Holm's rule; average ranks."""

import itertools
from math import inf

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from cbob.bench.significance import average_ranks, compare, holm, signed_rank


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_it_is_scipys_exact_wilcoxon_test(seed: int) -> None:
    d = np.random.default_rng(seed).normal(0.3, 1.0, size=20)
    assert signed_rank(d)[0] == pytest.approx(wilcoxon(d, method="exact").pvalue, rel=1e-12)


@pytest.mark.parametrize("d", [[1, 1, 2, -3, 0, 0, 5], [2, 2, 2, 2, 2, 2], [0.5, -0.5, 1, 1, -2, 3, 3, 0]])
def test_with_ties_and_zeros_it_is_the_share_of_all_signs(d: list[float]) -> None:
    """Pratt: zeros take part in the ranking, and then leave."""
    ranks, signs = rankdata(np.abs(d)), np.sign(d)
    ranks, signs = ranks[signs != 0], signs[signs != 0]
    observed = abs((ranks * signs).sum())
    every = [abs((ranks * other).sum()) for other in itertools.product([-1, 1], repeat=len(ranks))]
    share = np.mean([balance >= observed - 1e-9 for balance in every])
    assert signed_rank(d)[0] == pytest.approx(share, rel=1e-12)


def test_no_difference_at_all_is_no_evidence() -> None:
    assert signed_rank([0.0, 0.0, 0.0]) == (1.0, 0.0)
    assert signed_rank([])[0] == 1.0


def test_holm_multiplies_by_the_hypotheses_left_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_run_that_found_nothing_ranks_behind_every_other() -> None:
    seeds = range(10)
    reference = {seed: float(seed) for seed in seeds}
    lost = {seed: inf for seed in seeds}
    better = {seed: seed - 1.0 for seed in seeds}
    found = compare({"reference": reference, "lost": lost, "better": better, "same": reference}, "reference")
    assert {name: one.verdict for name, one in found.items()} == {"lost": "worse", "better": "better", "same": "tie"}
    assert found["lost"].corrected == pytest.approx(3 * 2 / 2**10)
    assert found["lost"].pairs == 10


def test_two_runs_that_both_found_nothing_are_equal() -> None:
    a = {0: inf, 1: inf, 2: 1.0}
    assert compare({"a": a, "b": dict(a)}, "a")["b"].verdict == "tie"


def test_only_seeds_that_both_have_are_compared() -> None:
    assert compare({"a": {0: 1.0, 1: 1.0}, "b": {1: 2.0, 2: 2.0}}, "a")["b"].pairs == 1
    assert compare({"a": {0: 1.0}, "b": {1: 2.0}}, "a") == {}


def test_average_ranks_are_over_seeds_then_problems_that_all_have() -> None:
    one = {"a": {0: 1.0, 1: 2.0}, "b": {0: 2.0, 1: 1.0}, "c": {0: 2.0, 1: 3.0}}
    two = {"a": {0: 5.0}, "b": {0: 6.0}, "c": {0: inf}}
    assert average_ranks({"one": one, "two": two}) == pytest.approx({"a": 1.25, "b": 1.875, "c": 2.875})
    assert average_ranks({"two": two, "part": {"a": {0: 1.0}}}) == {"a": 1.0, "b": 2.0, "c": 3.0}
