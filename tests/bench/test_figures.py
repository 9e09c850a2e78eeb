"""Pictures: what they are drawn from is right, and every one of them can be drawn."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import truncnorm

from cbob.acquisition.feasibility import POB
from cbob.bench import illustrations
from cbob.bench.figures import FIGURES, draw
from cbob.bench.plans import PLANS
from cbob.bench.results import save
from cbob.bench.runs import Record


def test_the_reading_that_broke_enters_as_a_truncated_normal() -> None:
    x, values = np.array([0.2, 0.8]), np.array([-0.7, -1.0])
    before, after = illustrations.three_readings(x, values, 0.5)
    mean, std = (float(part[0]) for part in before.predict(np.array([[0.5]])))
    exact = truncnorm(-mean / std, np.inf, loc=mean, scale=std)
    got = [float(part[0]) for part in after.predict(np.array([[0.5]]))]
    assert got == pytest.approx([exact.mean(), exact.std()], rel=1e-6)
    assert after.predict(x[:, None])[0] == pytest.approx(values, abs=1e-6)


def test_balance_weighs_the_undiscovered_region_of_the_toy_more_and_the_more_the_larger_beta_is() -> None:
    """The paper's figure: [2.85, 3.45] is feasible, and nothing was measured there."""
    limit = illustrations.toy_limit().posterior
    hidden = np.linspace(0.285, 0.345, 20)[:, None]
    weights = [illustrations.dpof(limit, hidden, POB(beta)).max() for beta in (0.0, 0.5, 1.0, 1.96)]
    assert weights == sorted(weights)
    assert weights[-1] > 1.5 * weights[0]
    known = illustrations.dpof(limit, np.array([[0.45]]), POB(1.96))
    assert known == pytest.approx([1.0], abs=1e-6)


@pytest.mark.slow
def test_half_of_the_36_points_break() -> None:
    one = illustrations.random_function(0)
    assert (len(one.points), int(one.broken.sum())) == (36, 18)
    assert one.area["HLGP"] == np.mean((one.believed["HLGP"] >= 0.5) != (one.truth <= 0.0))


@pytest.mark.slow
def test_every_picture_of_campaigns_is_drawn_from_records_and_none_from_nothing(tmp_path: Path) -> None:
    names = ["trajectories-s1", "trajectories-s2", "trajectories-s3", "b2", "boxes", "ranks"]
    assert [draw(name, tmp_path / "empty", tmp_path) for name in [*names, "theorem1"]] == [None] * 7
    assert set(names) < set(FIGURES)
    cells = dict.fromkeys(cell for name in ("table1", "table2", "b3", "s3") for cell in PLANS[name].cells)
    rng = np.random.default_rng(0)
    for cell in cells:
        for seed in range(3):
            found = () if seed == 0 and cell.problem == "pressure-vessel" else ((0, 2.0 + rng.random()), (40, 1.0))
            save(tmp_path / "results", [Record(cell.at(seed), found, (True, False) * 50, 1.0, 1.0, 1.0)])
    for name in names:
        path = draw(name, tmp_path / "results", tmp_path / "figures")
        assert path is not None and path.stat().st_size > 10_000
