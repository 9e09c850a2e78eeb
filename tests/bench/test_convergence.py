"""Theorem 1: with constraints fully observed the largest EICB falls towards 0, and the best value reaches the optimum."""

from pathlib import Path

import numpy as np
import pytest

from cbob.bench.convergence import RHOS, load_watches, watch, watch_all
from cbob.bench.problems import get


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize(("form", "evaluations"), [("theorem", 20), ("shipped", 30)])
def test_on_the_toy_the_largest_eicb_falls_and_the_optimum_is_reached(rho: str, form: str, evaluations: int) -> None:
    one = watch(get("toy"), rho, form, seed=0, evaluations=evaluations)
    assert len(one.largest) == evaluations
    assert len(one.gap) == evaluations + 1
    assert min(one.largest[-4:]) < 1e-3 * one.largest[0]
    assert one.gap[0] > 1e-3
    assert abs(one.gap[-1]) < 1e-6
    assert (np.diff(one.gap) <= 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("seed", range(3))
def test_on_two_dimensions_too(rho: str, seed: int) -> None:
    one = watch(get("mishra-bird"), rho, "theorem", seed, evaluations=200)
    assert max(one.largest[-20:]) < 1e-4 * one.largest[0]
    assert abs(one.gap[-1]) < 1e-4


def test_what_was_watched_is_saved_and_not_watched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cbob.bench.convergence.PROBLEMS", ("toy",))
    said: list[str] = []
    path = watch_all(tmp_path, [0], 2, said.append)
    before = path.read_bytes()
    assert len(load_watches(tmp_path)) == len(said) == 6
    watch_all(tmp_path, [0], 2, said.append)
    assert (path.read_bytes(), len(said)) == (before, 6)
