"""The default strategy: what it promises, what it learns of its promises, and that it says so."""

import copy
import json
import pickle

import numpy as np
import pytest
from scipy.stats import norm

from cbob import Float, Optimizer
from cbob.acquisition.calibration import feasible_share
from cbob.trials import Forecast, Trial

PLANE = {"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}


def started(count: int = 12, **options: object) -> Optimizer:
    """Minimises x + y where x y >= 0.2; readings are hidden where the limit broke."""
    opt = Optimizer(PLANE, constraints=["g <= 0"], seed=3, initial=8, **options)  # type: ignore[arg-type]
    for _ in range(count):
        tell(opt, opt.ask())
    return opt


def tell(opt: Optimizer, trial: Trial) -> None:
    x, y = trial.params["x"], trial.params["y"]
    g = 0.2 - x * y
    if g > 0:
        opt.tell(trial, violated=["g"])
    else:
        opt.tell(trial, x + y, constraints={"g": g})


def test_it_is_the_default() -> None:
    assert Optimizer(PLANE).strategy_name == "auto"


def test_a_proposal_carries_the_numbers_that_led_to_it() -> None:
    opt = started()
    trial = opt.ask()
    assert trial.forecast is not None
    assert norm.cdf(trial.forecast.limits["g"]) == pytest.approx(opt.predict(trial.params).probability, rel=1e-6)
    assert trial.forecast.improvement is not None
    assert trial.forecast.weighed.keys() == {"balance", "shift of g"}
    assert 0.0 < trial.forecast.weighed["balance"] < 1.0


def test_what_is_promised_beside_trials_still_out_is_what_was_learned() -> None:
    opt = started()
    for trial in opt.ask(4):
        assert trial.forecast is not None
        assert norm.cdf(trial.forecast.limits["g"]) == pytest.approx(opt.predict(trial.params).probability, rel=1e-6)


def test_a_forecast_can_be_copied_and_sent_to_another_process() -> None:
    forecast = started().ask().forecast
    assert pickle.loads(pickle.dumps(forecast)) == forecast and hash(forecast) == hash(copy.deepcopy(forecast))


def test_a_trial_of_the_design_promises_nothing() -> None:
    assert all(trial.forecast is None for trial in started().trials[:8])
    assert all(trial.forecast is None for trial in started(strategy="sobol").trials)


def test_forecasts_survive_in_the_state_and_when_told() -> None:
    opt = started(15)
    again = Optimizer.from_state(json.loads(json.dumps(opt.state())))
    assert [trial.forecast for trial in again.trials] == [trial.forecast for trial in opt.trials]
    assert again.trials[-1].forecast is not None
    assert again.ask() == opt.ask()


def test_a_state_from_before_there_were_forecasts_can_be_read() -> None:
    state = started().state()
    for trial in state["trials"]:
        del trial["forecast"]
    assert Optimizer.from_state(state).ask().forecast is not None


@pytest.mark.parametrize("wrong", [{"limits": {"g": float("nan")}}, {"limits": {}, "improvement": float("inf")}])
def test_a_forecast_is_finite(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="forecast"):
        Forecast(**wrong)  # type: ignore[arg-type]


def test_broken_promises_make_it_cautious_and_kept_ones_bold() -> None:
    """The same data twice, but for what had been promised of the last trials."""
    state = started(20).state()

    def margins(promise: float) -> float:
        for trial in state["trials"][8:]:
            trial["forecast"] = {"limits": {"g": promise}, "improvement": None, "weighed": {}}
        forecast = Optimizer.from_state(state).ask().forecast
        assert forecast is not None
        return forecast.weighed["shift of g"]

    assert margins(2.5) > 0.5 > -0.3 > margins(-2.5)


def test_the_feasible_share_is_of_proposals_and_forgets() -> None:
    promised = np.array([[np.nan, np.nan]] * 3 + [[0.0, 0.5]] * 60)
    kept = np.array([[np.nan, 0.0]] * 3 + [[1.0, 1.0]] * 30 + [[np.nan, 0.0]] * 30)
    assert feasible_share(promised[:3], kept[:3]) == 0.5  # nothing was proposed yet
    assert feasible_share(promised[:33], kept[:33]) > 0.9
    assert 0.1 < feasible_share(promised, kept) < 0.3
    assert feasible_share(promised[::-1], kept[::-1]) > 0.5
