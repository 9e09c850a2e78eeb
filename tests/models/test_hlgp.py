"""The surrogates as a user meets them: what they say of readings, failures and the gaps between."""

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.textbook_ep import textbook_ep
from reference.textbook_gp import conditional, main_effects, matern52
from reference.textbook_warp import formula, knee_of
from scipy.optimize import brentq
from scipy.stats import norm

import cbob.models.hlgp as module
from cbob.errors import CbobError
from cbob.models import GPC, GPR, HLGP, Settings
from cbob.models.fit import OTHERS
from cbob.models.hlgp import Memory
from cbob.trials import SATISFIED, UNKNOWN, VIOLATED, Kind, Reading

Array = NDArray[np.float64]

UNWARPED = Settings(warp=False)


def limit(X: Array) -> Array:
    """Positive, so broken, in the middle third of the square."""
    return np.sin(5.0 * X[:, 0]) + X[:, 1] - 0.8


def rows(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((count, 2))


def hidden(g: Array) -> list[float | str]:
    """What is known where a failure returns no reading."""
    return [float(one) if one <= 0.0 else "violated" for one in g]


def misjudged(model: HLGP, truth: Array, Q: Array) -> float:
    return float(np.mean((model.probability(Q) < 0.5) != (truth > 0.0)))


X, Q = rows(20), rows(400, seed=1)
G = limit(X)


# What it says


@pytest.mark.parametrize("settings", [Settings(), UNWARPED], ids=["warped", "unwarped"])
def test_measured_readings_are_interpolated_in_their_own_units(settings: Settings) -> None:
    model = HLGP(settings).fit(X, 40.0 * G)
    mean, std = model.predict(X)
    assert mean == pytest.approx(40.0 * G, abs=0.01)
    assert (std < 0.05).all()
    between, uncertain = model.predict(Q)
    assert np.sqrt(np.mean((between - 40.0 * limit(Q)) ** 2)) < 1.0
    assert np.mean(np.abs(between - 40.0 * limit(Q)) < 3.0 * uncertain + 0.01) > 0.95


@pytest.mark.parametrize("settings", [Settings(), UNWARPED], ids=["warped", "unwarped"])
def test_prediction_equals_the_dense_formula_unwarped_by_root_finding(settings: Settings) -> None:
    model = HLGP(settings).fit(X, G)
    theta, shape = model.memory.theta, model.memory.shape
    knee = knee_of(theta[-1], G, shape)
    w = formula(G, shape, knee)
    y = w / np.std(w)
    mean, cov = conditional(*covariances(theta, float(y.mean()), X, Q[:5]), y, np.exp(theta[-2]))
    std = np.sqrt(np.diagonal(cov))

    def reading(latent: float) -> float:
        return float(brentq(lambda g: formula(np.array([g]), shape, knee)[0] / np.std(w) - latent, -20.0, 20.0))

    found_mean, found_width = model.predict(Q[:5])
    assert found_mean == pytest.approx([reading(one) for one in mean], rel=1e-4)
    widths = [(reading(m + s) - reading(m - s)) / 2.0 for m, s in zip(mean, std, strict=True)]
    assert found_width == pytest.approx(widths, rel=1e-3)
    assert model.probability(Q[:5]) == pytest.approx(norm.cdf(-mean / std), rel=1e-3, abs=1e-12)


def covariances(theta: Array, offset: float, rows: Array, queries: Array) -> tuple[Array, Array, Array]:
    lengthscales, bias = np.exp(theta[:-OTHERS]), 1.0 + offset**2
    amplitude, effects, ratio = np.exp(theta[-OTHERS:-2]).tolist()
    pairs = ((rows, rows), (rows, queries), (queries, queries))
    K_xx, K_xq, K_qq = (
        matern52(a, b, lengthscales, amplitude, bias) + main_effects(a, b, lengthscales, effects, ratio, count=16)
        for a, b in pairs
    )
    return K_xx, K_xq, K_qq


def test_values_and_signs_together_have_the_posterior_of_one_textbook_ep_over_both() -> None:
    few = rows(9, seed=2)
    g = limit(few)
    model = HLGP().fit(few, hidden(g))
    theta, shape = model.memory.theta, model.memory.shape
    known = g <= 0.0
    w = formula(g[known], shape, knee_of(theta[-1], g[known], shape))
    y = w / np.std(w)
    order = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    K, k, K_qq = covariances(theta, float(y.mean()), few[order], Q[:6])
    noise, n_v = float(np.exp(theta[-2])), y.size
    extra = np.diag(np.where(np.arange(9) < n_v, 0.0, noise))
    book = textbook_ep(np.zeros(9), K + extra, np.ones(9 - n_v), values=y, noise=np.full(n_v, noise))
    gain = np.linalg.solve(K + extra + np.diag(book.site_var), k).T
    mean, std = model.posterior.predict(Q[:6])
    exact = np.sqrt(np.diagonal(K_qq - gain @ k))
    assert (mean - gain @ book.site_mean) / exact == pytest.approx(np.zeros(6), abs=1e-3)
    assert std == pytest.approx(exact, rel=1e-3)


def test_a_broken_reading_lifts_the_prediction_above_the_limit_there_and_a_kept_one_below() -> None:
    broken, kept = np.array([[0.31, 0.9]]), np.array([[0.9, 0.05]])
    readings = [*G, "violated", "satisfied"]
    mean, _ = HLGP().fit(np.vstack([X, broken, kept]), readings).predict(np.vstack([broken, kept]))
    assert mean[0] > 0.0 > mean[1]
    model = HLGP().fit(X, hidden(G))
    mean, _ = model.predict(X)
    assert np.array_equal(mean > 0.0, G > 0.0)
    assert np.array_equal(model.probability(X) < 0.5, G > 0.0)


def test_an_unknown_reading_is_no_reading() -> None:
    with_unknown = HLGP().fit(X, [*hidden(G)[:15], None, math.nan, "unknown", UNKNOWN, Kind.UNKNOWN])
    without = HLGP().fit(X[:15], hidden(G)[:15])
    assert np.array_equal(with_unknown.predict(Q), without.predict(Q))


def test_every_way_to_write_a_reading_means_the_same() -> None:
    plain = HLGP().fit(X[:6], [-1.0, -2.5, "violated", "satisfied", None, -0.5])
    objects = [Reading.measured(-1.0), np.float32(-2.5), VIOLATED, SATISFIED, UNKNOWN, -0.5]
    kinds: list[Any] = [-1, -2.5, Kind.VIOLATED, Kind.SATISFIED, Kind.UNKNOWN, np.float64(-0.5)]
    for readings in (objects, kinds):
        assert np.array_equal(HLGP().fit(X[:6].tolist(), readings).predict(Q), plain.predict(Q))


def test_hlgp_misjudges_less_area_than_a_classifier_on_36_points_half_hidden() -> None:
    """The paper's picture: a 6 x 6 grid, readings only where the limit holds."""
    side = (np.arange(6) + 0.5) / 6.0
    grid = np.array([[a, b] for a in side for b in side])
    fine = rows(2000, seed=3)
    lost = {"hlgp": 0.0, "gpc": 0.0}
    for turn in (0.0, 0.7, 1.4):

        def g(at: Array, turn: float = turn) -> Array:
            u, v = at[:, 0] - 0.5, at[:, 1] - 0.5
            a, b = u * np.cos(turn) + v * np.sin(turn), v * np.cos(turn) - u * np.sin(turn)
            return np.sin(4.0 * a) + 2.0 * b**2 - 0.1 + 0.3 * np.sin(9.0 * b)

        assert 0.3 < np.mean(g(grid) > 0.0) < 0.7
        readings = hidden(g(grid))
        lost["hlgp"] += misjudged(HLGP().fit(grid, readings), g(fine), fine) / 3.0
        lost["gpc"] += misjudged(GPC().fit(grid, readings), g(fine), fine) / 3.0
    assert lost["hlgp"] < 0.6 * lost["gpc"]
    assert lost["hlgp"] < 0.03


@pytest.mark.parametrize(
    "settings",
    [Settings(objective="virtual"), Settings(scale=0.05), UNWARPED],
    ids=["virtual", "probit", "unwarped"],
)
def test_every_setting_learns_the_limit(settings: Settings) -> None:
    many = rows(40, seed=4)
    assert misjudged(HLGP(settings).fit(many, hidden(limit(many))), limit(Q), Q) < 0.1


# The awkward data: finite, sensible and without a warning (every warning is an error here)


def finite(model: HLGP, at: Array = Q) -> tuple[Array, Array, Array]:
    (mean, std), probability = model.predict(at), model.probability(at)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0.0).all()
    assert (probability >= 0.0).all() and (probability <= 1.0).all()
    return mean, std, probability


def test_without_a_reading_a_limit_holds_or_breaks_alike() -> None:
    for model in (HLGP(), GPC()):
        for at, readings in ((np.empty((0, 2)), []), (X[:2], [None, "unknown"])):
            mean, _, probability = finite(model.fit(at, readings))
            assert not mean.any() and np.array_equal(probability, np.full(400, 0.5))
    assert not finite(GPR().fit(np.empty((0, 2)), []))[0].any()


@pytest.mark.parametrize("value", [-3.0, 1e-9, 2.0])
def test_one_reading_is_known_where_it_was_taken_and_leans_the_rest_its_way(value: float) -> None:
    model = HLGP().fit(X[:1], [value])
    mean, _, probability = finite(model)
    assert model.predict(X[:1])[0] == pytest.approx([value], rel=1e-3)
    assert (np.sign(mean) == np.sign(value)).all()
    leaning = probability if value < 0.0 else 1.0 - probability
    assert (leaning > 0.5).all() and leaning.min() < 0.95  # one reading does not settle the far corner


@pytest.mark.parametrize(("reading", "side"), [("violated", 1.0), ("satisfied", -1.0)])
def test_one_sign_leans_everything_its_way_and_its_own_row_most(reading: str, side: float) -> None:
    for model in (HLGP(), GPC()):
        mean, _, probability = finite(model.fit(X[:1], [reading]))
        leaning = 0.5 - side * (probability - 0.5)
        assert (side * mean > 0.0).all() and (leaning > 0.5).all()
        assert abs(model.probability(X[:1])[0] - 0.5) >= np.abs(probability - 0.5).max() - 1e-9


@pytest.mark.parametrize(("reading", "side"), [("violated", 1.0), ("satisfied", -1.0)])
def test_signs_that_all_agree_leave_no_place_in_doubt(reading: str, side: float) -> None:
    for model in (HLGP(), GPC()):
        mean, _, probability = finite(model.fit(X, [reading] * 20))
        assert (side * mean > 0.0).all()
        assert (np.abs(probability - 0.5) > 0.3).all()


@pytest.mark.parametrize("value", [2.5, -7.0, 1e-200, -1e200])
def test_constant_readings_are_predicted_everywhere(value: float) -> None:
    mean, std, probability = finite(HLGP().fit(X, [value] * 20))
    assert mean == pytest.approx(np.full(400, value), rel=1e-6)
    assert (std < 1e-3 * abs(value)).all()
    assert np.array_equal(probability, np.full(400, float(value < 0.0)))


def test_readings_constant_at_the_limit_are_predicted_at_the_limit() -> None:
    mean, _, probability = finite(HLGP().fit(X, [0.0] * 20))
    assert np.abs(mean).max() < 1e-6
    assert probability == pytest.approx(np.full(400, 0.5))


def test_a_constant_reading_beside_failures_still_shows_where_they_are() -> None:
    """A sensor that saturates: one number wherever the limit holds. The failures are no isolated spikes."""
    broken = X[:, 0] > 0.5
    model = HLGP().fit(X, ["violated" if one else -7.0 for one in broken])
    finite(model)
    assert np.array_equal(model.probability(X) < 0.5, broken)
    assert misjudged(model, Q[:, 0] - 0.5, Q) < 0.1


@pytest.mark.parametrize("count", [20, 40])
def test_smooth_readings_that_end_in_sudden_failures_still_show_where_they_are(count: int) -> None:
    """Nothing in the readings leads up to the failures: the search starts at contradictions."""
    many = rows(count, seed=7)
    broken = many[:, 0] > 0.5
    for depth in (1.0, 7.0):
        readings = ["violated" if one else -depth - x for one, x in zip(broken, many[:, 0], strict=True)]
        model = HLGP().fit(many, readings)
        assert np.array_equal(model.probability(many) < 0.5, broken)
        assert misjudged(model, Q[:, 0] - 0.5, Q) < 0.1


def test_zero_readings_beside_failures_stay_below_them() -> None:
    model = HLGP().fit(X, ["violated" if one > 0.0 else 0.0 for one in G])
    finite(model)
    probability = model.probability(X)
    assert probability[G > 0.0].max() < 0.5
    assert probability[G > 0.0].mean() < probability[G <= 0.0].mean()


@pytest.mark.parametrize("kind", ["measured", "hidden"])
def test_ten_decades_of_readings_are_followed_where_the_limit_is(kind: str) -> None:
    wide = np.sign(G) * 10.0 ** (-5.0 + 10.0 * np.abs(G) / np.abs(G).max())
    readings = wide if kind == "measured" else hidden(wide)
    model = HLGP().fit(X, readings)
    finite(model)
    assert misjudged(model, limit(Q), Q) < 0.1
    mean, _ = model.predict(X)
    known = np.isfinite(wide) if kind == "measured" else wide <= 0.0
    assert mean[known] == pytest.approx(wide[known], rel=0.01)
    assert np.array_equal(mean > 0.0, wide > 0.0)


@pytest.mark.parametrize("kind", ["measured", "hidden"])
@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e9, 1e300])
def test_units_do_not_matter(kind: str, unit: float) -> None:
    """Rounding may end the search for hyperparameters a little elsewhere."""
    plain, scaled = ((G * u if kind == "measured" else hidden(G * u)) for u in (1.0, unit))
    expected, _ = HLGP().fit(X, plain).predict(Q)
    mean, _, _ = finite(HLGP().fit(X, scaled))
    assert mean / unit == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("kind", ["measured", "hidden"])
def test_duplicates_that_agree_change_little(kind: str) -> None:
    readings = list(G) if kind == "measured" else hidden(G)
    once, twice = HLGP().fit(X, readings), HLGP().fit(np.vstack([X, X]), [*readings, *readings])
    finite(twice)
    assert np.mean((once.probability(Q) < 0.5) != (twice.probability(Q) < 0.5)) < 0.04
    assert np.median(np.abs(once.predict(Q)[0] - twice.predict(Q)[0])) < 0.02


def test_duplicates_that_contradict_each_other_are_taken_for_noise() -> None:
    up, down = G + 0.2, G - 0.2
    model = HLGP(UNWARPED).fit(np.vstack([X, X]), [*up, *down])
    finite(model)
    mean, _ = model.predict(X)
    assert mean == pytest.approx(G, abs=0.2)
    assert np.exp(model.memory.theta[-2]) > 1e-3  # of the readings' variance


def test_every_told_reading_is_predicted_however_often_it_was_told() -> None:
    """The largest reading told twice, at one point, is no instrument at its stop."""
    readings = G.copy()
    readings[3] = 8.0
    model = HLGP().fit(np.vstack([X, X]), [*readings, *readings])
    assert model.predict(X)[0] == pytest.approx(readings, abs=0.02)


def test_whole_numbers_that_repeat_are_values_and_a_reading_at_its_stop_is_a_sign() -> None:
    numbers = np.round(3.0 * G)
    assert HLGP().fit(X, numbers).posterior.y.size == HLGP().fit(X, G).posterior.y.size
    assert (HLGP().fit(X, numbers).memory.precision == 0.0).all()  # no signs
    stop = 0.5 * G.max()
    clipped = np.minimum(G, stop)
    assert (clipped == stop).sum() >= 2
    told = ["violated" if one == stop else one for one in clipped]
    for seen, said in zip(HLGP().fit(X, clipped).predict(Q), HLGP().fit(X, told).predict(Q), strict=True):
        assert np.array_equal(seen, said)


def test_a_question_that_does_not_fit_says_so() -> None:
    with pytest.raises(ValueError, match="fit"):
        HLGP().predict(X)
    with pytest.raises(ValueError, match="rows of 2 columns"):
        HLGP().fit(X, G).predict(np.zeros((1, 3)))


def test_a_row_that_both_broke_and_held_is_a_toss_up() -> None:
    for model in (HLGP(), GPC()):
        model.fit(np.vstack([X[:1], X[:1]]), ["violated", "satisfied"])
        finite(model)
        assert model.probability(X[:1]) == pytest.approx([0.5], abs=0.01)
    both = HLGP().fit(np.vstack([X, X[:1], X[:1]]), [*G, "violated", "satisfied"])
    finite(both)
    assert misjudged(both, limit(Q), Q) < 0.15


# What it keeps in mind


def test_a_memory_that_went_through_json_predicts_bit_for_bit_the_same() -> None:
    for kind in (HLGP, GPC):
        margins = np.where(G <= 0.0, G, np.nan)
        signs = np.where(G <= 0.0, 0, 1).astype(np.int8)
        model = kind().learn(X, margins, signs)
        memory = Memory.from_dict(json.loads(json.dumps(model.memory.to_dict())), groups=2, readings=len(X))
        again = kind().learn(X, margins, signs, memory=memory, refit=False)
        assert np.array_equal(again.predict(Q), model.predict(Q))
        assert np.array_equal(again.probability(Q), model.probability(Q))


def test_equal_data_is_learned_bit_for_bit_equally() -> None:
    first, second = (HLGP().fit(X, hidden(G)).predict(Q) for _ in range(2))
    assert np.array_equal(first, second)


def test_a_warm_start_with_one_more_reading_ends_near_a_cold_one() -> None:
    margins, signs = np.where(G <= 0.0, G, np.nan), np.where(G <= 0.0, 0, 1).astype(np.int8)
    before = HLGP().learn(X[:19], margins[:19], signs[:19])
    warm = HLGP().learn(X, margins, signs, memory=before.memory)
    assert warm.memory.searched_at == before.memory.searched_at == 19
    cold = HLGP().learn(X, margins, signs)
    assert np.mean((warm.probability(Q) < 0.5) != (cold.probability(Q) < 0.5)) < 0.04


def test_the_posterior_rests_on_no_more_than_the_data_limit_and_keeps_what_is_near_the_focus() -> None:
    many = rows(60, seed=5)
    g = limit(many)
    focus = np.array([0.3, 0.7])
    model = HLGP(Settings(data_limit=24)).learn(many, g, np.zeros(60, dtype=np.int8), focus=focus)
    assert model.posterior.X.shape[0] == 24
    nearest = many[np.argsort(((many - focus) ** 2).sum(axis=1))[:12]]
    kept = {tuple(row) for row in model.posterior.X}
    assert all(tuple(row) in kept for row in nearest)
    assert len(kept) == 24


def test_hyperparameters_are_learned_from_no_more_than_the_fit_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spying(problem: Any, *args: Any, **options: Any) -> Any:
        seen.append(problem.margins.size + problem.signs.size)
        return climb(problem, *args, **options)

    climb = module.climb
    monkeypatch.setattr(module, "climb", spying)
    many = rows(60, seed=5)
    model = HLGP(Settings(fit_limit=16)).fit(many, hidden(limit(many)))
    assert seen and max(seen) == 16
    assert model.posterior.X.shape[0] == 60
    assert misjudged(model, limit(Q), Q) < 0.2


def test_tied_columns_share_a_lengthscale() -> None:
    model = HLGP(groups=np.array([0, 0])).fit(X, hidden(G))
    lengthscales = model.posterior.kernel.lengthscales
    assert lengthscales[0] == lengthscales[1] and model.memory.theta.size == 1 + OTHERS


def test_learning_and_predicting_leave_their_arguments_as_they_were() -> None:
    margins, signs = np.where(G <= 0.0, G, np.nan), np.where(G <= 0.0, 0, 1).astype(np.int8)
    given: list[NDArray[Any]] = [X.copy(), margins, signs, Q.copy(), np.array([0.5, 0.5])]
    kept = [part.copy() for part in given]
    for kind in (HLGP, GPC, GPR):
        model = kind(Settings(data_limit=12)).learn(given[0], given[1], given[2], focus=given[4])
        memory = json.dumps(model.memory.to_dict())
        model.predict(given[3]), model.probability(given[3])
        kind().learn(given[0], given[1], given[2], memory=model.memory)
        assert json.dumps(model.memory.to_dict()) == memory
    assert all(np.array_equal(was, now, equal_nan=True) for was, now in zip(kept, given, strict=True))


# The classifier and the regression


def test_a_classifier_sees_signs_alone() -> None:
    told = np.where(G > 0.0, "violated", "satisfied").tolist()
    from_values, from_signs = GPC().fit(X, 1e3 * G), GPC().fit(X, told)
    assert np.array_equal(from_values.probability(Q), from_signs.probability(Q))


def test_a_classifier_judges_most_of_the_square_rightly() -> None:
    many = rows(60, seed=6)
    assert misjudged(GPC().fit(many, limit(many)), limit(Q), Q) < 0.06


def test_a_regression_leaves_out_what_was_not_measured() -> None:
    told = [*G[:15], "violated", "satisfied", None, "violated", "violated"]
    assert np.array_equal(GPR().fit(X, told).predict(Q), GPR().fit(X[:15], G[:15]).predict(Q))


@pytest.mark.parametrize("settings", [None, UNWARPED], ids=["default", "unwarped"])
def test_a_regression_interpolates_and_its_deviation_covers_the_truth(settings: Settings | None) -> None:
    model = GPR(settings).fit(X, G)
    mean, std = model.predict(X)
    assert mean == pytest.approx(G, abs=1e-3) and (std < 1e-2).all()
    between, uncertain = model.predict(Q)
    assert np.mean(np.abs(between - limit(Q)) < 3.0 * uncertain + 1e-3) > 0.95


@pytest.mark.parametrize("shift", [-1e6, 50.0])
def test_a_regression_does_not_care_where_zero_is(shift: float) -> None:
    plain, shifted = GPR().fit(X, G).predict(Q), GPR().fit(X, G + shift).predict(Q)
    assert shifted[0] - shift == pytest.approx(plain[0], abs=0.02)
    assert np.median(np.abs(shifted[1] - plain[1])) < 0.01


def test_latent_is_where_the_posterior_puts_a_value() -> None:
    model = GPR().fit(X, G)
    latent = np.array([model.latent(float(one)) for one in G])
    assert latent == pytest.approx(model.posterior.y, rel=1e-9, abs=1e-12)
    assert model.latent(0.1) < model.latent(0.2)


def test_a_constant_objective_is_predicted_everywhere() -> None:
    for value in (5.0, 0.0, -1e250):
        mean, std, _ = finite(GPR().fit(X, [value] * 20))
        assert mean == pytest.approx(np.full(400, value), abs=1e-6)
        assert (std <= 1e-3 * (abs(value) or 1.0)).all()  # readings that are all 0 have no size: their unit is 1


@pytest.mark.parametrize("kind", [HLGP, GPC, GPR])
def test_the_largest_and_the_smallest_floats_stay_finite(kind: type[HLGP]) -> None:
    largest = float(np.finfo(float).max) / (4.0 if kind is GPR else 1.0)
    for readings in (
        [largest] * 20,
        np.sign(G) * largest,
        [*[1e-300] * 10, *[-1e300] * 9, 1.0],
        [5e-324] * 20,
    ):
        finite(kind().fit(X, readings))


# Bad arguments


@pytest.mark.parametrize(
    ("at", "readings", "expected"),
    [
        (X, [1.0], "expected one row of X for each of 1 readings"),
        (X[0], [1.0, 2.0], r"an X of shape \(2,\)"),
        ([[0.5, math.nan]], [1.0], "X must lie in the unit cube"),
        ([[0.5, 1.01]], [1.0], "X must lie in the unit cube"),
    ],
)
def test_rows_that_do_not_fit_are_told_what_was_expected(at: Any, readings: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        HLGP().fit(at, readings)


@pytest.mark.parametrize("reading", ["broken", [1.0, 2.0], {}])
def test_a_reading_of_no_known_kind_is_refused(reading: Any) -> None:
    with pytest.raises(CbobError):
        HLGP().fit(X[:1], [reading])
