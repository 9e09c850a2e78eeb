"""The climber against SciPy's L-BFGS-B, against closed forms, and against itself one start at a time."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from cbob.ascent import ascend

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Counted:
    """A function of rows with a slope, which counts the evaluations of each climb."""

    def __init__(self, climbs: int) -> None:
        self.counts = np.zeros(climbs, dtype=int)

    def __call__(self, which: Index, rows: Array) -> tuple[Array, Array]:
        self.counts[which] += 1
        return self.value(rows), self.slope(rows)

    def value(self, rows: Array) -> Array: ...
    def slope(self, rows: Array) -> Array: ...


class Hill(Counted):
    """A concave parabola with its summit at c, perhaps outside the box."""

    def __init__(self, climbs: int, c: Array, A: Array) -> None:
        super().__init__(climbs)
        self.c, self.A = c, A

    def value(self, rows: Array) -> Array:
        return -0.5 * np.einsum("ki,ij,kj->k", rows - self.c, self.A, rows - self.c)

    def slope(self, rows: Array) -> Array:
        return -(rows - self.c) @ self.A


class Banana(Counted):
    """Minus Rosenbrock's valley, mapped from [-2, 2]^2 to the unit square: a bent ridge, its summit at (3/4, 3/4)."""

    def value(self, rows: Array) -> Array:
        x, y = 4.0 * rows.T - 2.0
        return np.asarray(-((1.0 - x) ** 2) - 100.0 * (y - x**2) ** 2)

    def slope(self, rows: Array) -> Array:
        x, y = 4.0 * rows.T - 2.0
        return 4.0 * np.stack([2.0 * (1.0 - x) + 400.0 * x * (y - x**2), -200.0 * (y - x**2)], axis=1)


def hill(rng: np.random.Generator, climbs: int, width: int) -> Hill:
    Q = np.linalg.qr(rng.standard_normal((width, width)))[0]
    A = (Q * 10.0 ** rng.uniform(-1.0, 2.0, width)) @ Q.T
    return Hill(climbs, rng.uniform(-0.5, 1.5, width), A)


@pytest.mark.parametrize("seed", range(8))
def test_it_finds_the_top_of_a_hill_cut_off_by_the_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 7))
    f = hill(rng, 4, width)
    starts = rng.random((4, width))
    found = ascend(f, starts, np.zeros(width), np.ones(width), evaluations=200, tolerance=1e-12)
    peer = minimize(
        lambda x: (-f.value(x[None])[0], -f.slope(x[None])[0]), starts[0], jac=True, method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * width, options={"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000},
    )  # fmt: skip
    np.testing.assert_allclose(found.values, -peer.fun, atol=1e-8)
    np.testing.assert_allclose(found.rows, np.broadcast_to(peer.x, found.rows.shape), atol=1e-4)


def test_it_follows_a_bent_ridge() -> None:
    f = Banana(6)
    starts = np.random.default_rng(0).random((6, 2))
    found = ascend(f, starts, np.zeros(2), np.ones(2), evaluations=150, tolerance=1e-12)
    np.testing.assert_allclose(found.rows, 0.75, atol=1e-4)
    assert f.counts.max() < 100


@pytest.mark.parametrize("evaluations", [1, 2, 3, 5, 8, 13, 40])
def test_no_climb_ends_lower_than_it_began_or_takes_more_evaluations(evaluations: int) -> None:
    rng = np.random.default_rng(evaluations)
    f = Banana(50)
    starts = rng.random((50, 2))
    found = ascend(f, starts, np.zeros(2), np.ones(2), evaluations=evaluations, tolerance=1e-9)
    assert f.counts.max() <= evaluations
    assert (found.values >= f.value(starts)).all()
    np.testing.assert_array_equal(found.values, f.value(found.rows))


def test_many_climbs_at_once_are_the_climbs_one_by_one() -> None:
    rng = np.random.default_rng(1)
    f = hill(rng, 7, 3)
    starts = rng.random((7, 3))
    box = (np.zeros(3), np.ones(3))
    together = ascend(f, starts, *box, evaluations=30, tolerance=1e-6)
    for i in range(7):
        alone = ascend(f, starts[i : i + 1], *box, evaluations=30, tolerance=1e-6)
        np.testing.assert_allclose(together.rows[i], alone.rows[0], atol=1e-9)


def test_it_turns_back_where_the_function_is_minus_infinite_or_not_a_number() -> None:
    def cliff(_: Index, rows: Array) -> tuple[Array, Array]:  # its summit lies at 0.8, just short of the cliff
        beyond = rows[:, 0] > 0.81
        return np.where(beyond, [-np.inf], -((rows[:, 0] - 0.8) ** 2)), np.where(beyond[:, None], np.nan, 1.6 - 2.0 * rows)

    found = ascend(cliff, np.array([[0.1], [0.5]]), np.zeros(1), np.ones(1), evaluations=60, tolerance=1e-14)
    np.testing.assert_allclose(found.rows, 0.8, atol=1e-5)


def test_a_column_that_cannot_move_stays_and_does_not_disturb_the_others() -> None:
    f = Hill(2, np.array([0.3, 0.9, 0.6]), np.diag([1.0, 50.0, 3.0]))
    low, high = np.array([0.0, 0.25, 0.0]), np.array([1.0, 0.25, 1.0])
    found = ascend(f, np.full((2, 3), 0.5), low, high, evaluations=50, tolerance=1e-12)
    np.testing.assert_allclose(found.rows, [[0.3, 0.25, 0.6]] * 2, atol=1e-5)


def test_a_start_outside_the_box_is_moved_onto_its_edge() -> None:
    f = Hill(1, np.array([2.0]), np.eye(1))
    found = ascend(f, np.array([[7.0]]), np.zeros(1), np.ones(1), evaluations=5, tolerance=1e-9)
    assert found.rows.item() == 1.0


def test_flat_ground_costs_one_evaluation() -> None:
    f = Hill(3, np.zeros(2), np.zeros((2, 2)))
    ascend(f, np.full((3, 2), 0.5), np.zeros(2), np.ones(2), evaluations=50, tolerance=1e-9)
    assert (f.counts == 1).all()


def test_a_metric_carried_over_saves_the_next_climb_most_of_its_work() -> None:
    f = hill(np.random.default_rng(5), 1, 6)
    f.c = np.full(6, 0.5)
    box = (np.zeros(6), np.ones(6))
    first = ascend(f, np.full((1, 6), 0.2), *box, evaluations=200, tolerance=1e-10)
    cold = int(f.counts[0])
    f.counts[:], f.c = 0, np.full(6, 0.55)  # the hill has moved a little
    second = ascend(f, first.rows, *box, evaluations=200, tolerance=1e-10, metric=first.metric)
    np.testing.assert_allclose(second.rows, 0.55, atol=1e-4)
    assert f.counts[0] <= cold / 3


def test_rivals_that_fall_far_behind_are_given_up_and_the_highest_end_stays_the_same() -> None:
    class Two(Counted):
        """A high hill at 0.25 and, beyond the saddle, a low but long and gentle one."""

        def value(self, rows: Array) -> Array:
            x = rows[:, 0]
            return np.where(x < 0.5, 5.0 - 100.0 * (x - 0.25) ** 2, -1e-3 * (x - 0.9) ** 4)

        def slope(self, rows: Array) -> Array:
            x = rows
            return np.where(x < 0.5, -200.0 * (x - 0.25), -4e-3 * (x - 0.9) ** 3)

    starts, box = np.array([[0.1], [0.55], [0.6]]), (np.zeros(1), np.ones(1))
    alone, together = Two(3), Two(3)
    apart = ascend(alone, starts, *box, evaluations=60, tolerance=1e-12)
    found = ascend(together, starts, *box, evaluations=60, tolerance=1e-12, rivals=True)
    assert found.values.max() == apart.values.max() == pytest.approx(5.0)
    assert together.counts[1:].max() < alone.counts[1:].min() / 3
