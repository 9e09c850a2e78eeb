"""What the trials of a study say, and how it is told."""

import math
from datetime import timedelta
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from cbob import Constraint, Kind, Status, TrialError
from cbob.integrations.optuna import CBOBSampler, mark_lost, report
from cbob.integrations.optuna.history import History, Limit, Seen

SPOT = FloatDistribution(0.0, 1.0)
FUEL = Constraint.parse("fuel <= 40")
POWER = Constraint.parse("power >= 5")
LIMITS = (Limit.declared(FUEL), Limit.declared(POWER))


def seen(**options: Any) -> Seen:
    options = {"params": {"x": 0.5}, "distributions": {"x": SPOT}, **options}
    return Seen(create_trial(**options))


def concluded(**options: Any) -> Any:
    return seen(**options).conclude(0, {"x": 0.5}, LIMITS)


def failed(**attrs: Any) -> Any:
    return concluded(state=TrialState.FAIL, user_attrs={f"cbob:{name}": value for name, value in attrs.items()})


def test_margins_of_optuna_and_raw_readings_say_the_same() -> None:
    by_margin = concluded(value=1.0, constraints={"fuel": -1.5, "power": 2.0})
    by_reading = concluded(value=1.0, user_attrs={"cbob:readings": {"fuel": 38.5, "power": 3.0}})
    assert by_margin == by_reading
    assert by_margin.status is Status.INFEASIBLE and by_margin.readings["power"].value == 3.0


def test_a_failure_with_nothing_named_is_unexplained() -> None:
    assert failed().unexplained
    assert failed(failure={"kind": "timeout", "reason": "30 s"}).failure == "30 s"
    assert failed(readings={"fuel": 12.0}).unexplained


def test_readings_set_before_a_failure_count() -> None:
    trial = concluded(state=TrialState.FAIL, constraints={"fuel": 3.0})
    assert trial.status is Status.INFEASIBLE and trial.readings["fuel"].value == 43.0


def test_a_named_limit_is_the_cause() -> None:
    trial = failed(violated=["fuel"], readings={"power": 9.0}, satisfied=["power"])
    assert trial.status is Status.INFEASIBLE
    assert trial.readings["fuel"].kind is Kind.VIOLATED and trial.readings["power"].value == 9.0


def test_what_was_stored_may_contradict_itself() -> None:
    trial = failed(violated=["fuel", "power"], satisfied=["power", "fuel"], readings={"fuel": 10.0, "power": 1.0})
    assert trial.readings["fuel"].kind is Kind.VIOLATED  # named as broken: the reading that held is dropped
    assert trial.readings["power"].value == 1.0


def test_an_infinite_margin_is_no_more_than_a_side() -> None:
    trial = concluded(value=1.0, constraints={"fuel": math.inf, "power": -math.inf})
    assert [trial.readings[name].kind for name in ("fuel", "power")] == [Kind.VIOLATED, Kind.SATISFIED]


def test_a_reading_taken_in_vain_is_a_failure() -> None:
    trial = concluded(value=1.0, user_attrs={"cbob:readings": {"fuel": None, "power": 9.0}})
    assert trial.unexplained and "fuel" in trial.failure


def test_an_infinite_objective_is_a_failure() -> None:
    assert concluded(value=math.inf, constraints={"fuel": -1.0, "power": -1.0}).unexplained


def test_any_name_that_optuna_takes_becomes_a_limit_at_zero() -> None:
    history = History.of([seen(value=1.0, constraints={"0": 1.0, "a/b <= c": -2.0, "it ran": -1.0}).frozen], asking=9)
    limits = history.limits((FUEL,))
    assert [limit.name for limit in limits] == ["fuel", "0", "a/b <= c", "it ran"]
    assert len({limit.constraint.name for limit in limits}) == 4
    trial = history.told[0].conclude(0, {"x": 0.5}, limits)
    assert [reading.value for reading in trial.readings.values()] == [None, 1.0, -2.0, -1.0]


def test_trials_come_in_order_of_completion_and_the_lost_not_at_all() -> None:
    study = optuna.create_study()
    for number in range(6):
        study.ask({"x": SPOT}) if number != 4 else study.ask()
    study.tell(2, 0.0)
    study.tell(0, 0.0)
    mark_lost(study, 1)
    study.tell(3, state=TrialState.FAIL)
    study.enqueue_trial({"x": 0.2})
    history = History.of(study.get_trials(), asking=5)
    assert [one.number for one in history.told] == [2, 0, 3]
    assert [one.number for one in history.out] == [4] and history.silent == 1
    assert history.count == 4
    assert study.trials[1].user_attrs["cbob:failure"]["kind"] == "lost"


def test_a_worker_that_takes_long_to_choose_has_died() -> None:
    study = optuna.create_study()
    study.ask()
    began = study.trials[0].datetime_start
    assert began is not None
    soon, late = (History.of(study.trials, 1, started=began + timedelta(minutes=wait)) for wait in (1, 6))
    assert soon.silent == 1 and late.silent == 0


def test_a_trial_that_optuna_ran_again_was_lost() -> None:
    again = seen(value=1.0, system_attrs={"failed_trial": 0, "retry_history": [0]}).frozen
    stale = seen(state=TrialState.FAIL).frozen
    again.number, stale.number = 1, 0
    assert [one.number for one in History.of([stale, again], asking=2).told] == [1]


def test_a_pruned_trial_counts_only_by_the_limits_that_it_broke() -> None:
    def pruned(margin: float) -> FrozenTrial:
        return seen(state=TrialState.PRUNED, value=3.0, constraints={"fuel": margin}).frozen

    broken, held = Seen(pruned(1.0)), Seen(pruned(-1.0))
    assert broken.counts(LIMITS) and not held.counts(LIMITS)
    assert broken.value is None
    trial = broken.conclude(0, {"x": 0.5}, LIMITS)
    assert trial.status is Status.INFEASIBLE and trial.value is None and trial.failure is None


def test_what_was_proposed_stands_in_for_what_a_trial_had_no_time_to_ask() -> None:
    proposed = {"cbob:proposed": {"x": 0.3, "y": 2.0}}
    assert seen(state=TrialState.FAIL, system_attrs=proposed).stored == {"x": 0.5, "y": 2.0}
    assert seen(value=1.0, system_attrs=proposed).stored == {"x": 0.5}
    assert seen(state=TrialState.FAIL, system_attrs={"cbob:proposed": {"y": 2.0}}).stored == {"x": 0.5}


def test_report_adds_up_and_writes_plain_json() -> None:
    trial = optuna.create_study().ask({"x": SPOT})
    report(trial, readings={"fuel": 38}, violated="power")
    report(trial, readings={"noise": math.nan}, violated=["size"], satisfied=["heat"], reason="it melted")
    assert trial.user_attrs == {
        "cbob:readings": {"fuel": 38, "noise": None},
        "cbob:violated": ["power", "size"],
        "cbob:satisfied": ["heat"],
        "cbob:failure": {"kind": "failed", "reason": "it melted"},
    }


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"readings": {"fuel": "much"}}, "reading 'fuel'"),
        ({"readings": [1.0]}, "must map names"),
        ({"violated": [3]}, "name of a constraint"),
        ({"violated": 3}, "violated must be a list"),
        ({"violated": ["a"], "satisfied": ["a"]}, "both violated and satisfied"),
        ({"kind": 7}, "kind of a failure"),
    ],
)
def test_a_wrong_report_says_what_is_wrong_and_writes_nothing(options: dict[str, Any], complaint: str) -> None:
    trial = optuna.create_study().ask({"x": SPOT})
    with pytest.raises(TrialError, match=complaint):
        report(trial, **options)
    assert trial.user_attrs == {}


def test_optuna_learns_what_is_feasible_from_reports() -> None:
    study = optuna.create_study(sampler=CBOBSampler(constraints=["fuel <= 40", "power >= 5"], seed=0))
    for value, reading in ((1.0, {"fuel": 41.0}), (2.0, {"fuel": 39.0, "power": 6.0}), (0.0, {})):
        trial = study.ask({"x": SPOT})
        report(trial, readings=reading, violated=() if reading else ["power"])
        study.tell(trial, value)
    assert [trial.constraints.get("fuel") for trial in study.trials] == [1.0, -1.0, None]
    assert study.trials[2].constraints["power"] > 1e300
    assert study.best_trial.number == 1
