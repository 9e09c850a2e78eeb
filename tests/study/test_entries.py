"""The rules by which claims are judged, on trials made by hand."""

import optuna
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from cbob.study.entries import Entries, Entry, Known, comes_again, is_good, owed, place_of

SPACE = {"x": FloatDistribution(0.0, 1.0)}


def trial(x: float | None, state: TrialState = TrialState.RUNNING, failure: str | None = None, **claim: object) -> FrozenTrial:
    return optuna.create_trial(
        state=state,
        value=1.0 if state == TrialState.COMPLETE else None,
        params={} if x is None else {"x": x},
        distributions={} if x is None else SPACE,
        user_attrs={} if failure is None else {"cbob:failure": {"kind": "lost", "reason": failure}},
        system_attrs={"cbob:claim": {"driver": "a", "token": "t", "attempt": 0, "retry_of": None} | claim},
    )


def entries(*trials: FrozenTrial) -> list[Entry]:
    for number, one in enumerate(trials):
        one.number = number
    return Entries(SPACE).of(trials)


LOST, WITHDRAWN, DONE = (TrialState.FAIL, "it died"), (TrialState.FAIL, "withdrawn"), (TrialState.COMPLETE,)


def test_a_row_of_the_design_belongs_to_a_trial_whatever_becomes_of_those_before_it() -> None:
    """Whether they end, die or are withdrawn while others ask: nobody else gets their row, and a retry takes none."""
    for fate in (DONE, LOST, WITHDRAWN, (TrialState.RUNNING,)):
        assert place_of(2, entries(trial(0.1, *fate), trial(None, *fate), trial(None))) == 2
    assert place_of(3, entries(trial(0.1, *LOST), trial(0.2), trial(0.1, retry_of=0))) == 2
    assert place_of(1, entries(trial(0.1), trial(0.2), trial(0.3))) == 1


def test_a_lost_trial_is_owed_a_retry_until_one_is_claimed_or_another_has_its_point() -> None:
    found = owed(entries(trial(None, *LOST), trial(0.1, *WITHDRAWN), trial(0.2, *LOST), trial(0.3, *LOST)))
    assert found is not None and found.number == 2
    assert owed(entries(trial(0.2, *LOST), trial(0.2, retry_of=0))) is None
    assert owed(entries(trial(0.2, *LOST), trial(0.2, *DONE))) is None
    again = owed(entries(trial(0.2, *LOST), trial(0.2, *WITHDRAWN, retry_of=0)))
    assert again is not None and again.number == 0


def test_who_is_told_to_stop_spends_no_attempt() -> None:
    died, stopped = entries(trial(0.1, *LOST, attempt=1), trial(0.2, TrialState.FAIL, "interrupted", attempt=1))
    assert (died.next_attempt, stopped.next_attempt) == (2, 1)


def test_a_claim_is_good_while_fewer_come_before_it_than_the_budget_allows() -> None:
    found = entries(trial(0.1, *DONE), trial(0.2, *WITHDRAWN), trial(0.3), trial(0.4), trial(0.5))
    assert [is_good(one, found, 2) for one in found[2:]] == [True, False, False]


def test_a_point_comes_again_if_it_was_not_known_when_it_was_chosen() -> None:
    def again(other: FrozenTrial, *more: FrozenTrial, known: bool = False) -> bool:
        found = entries(other, trial(0.1), *more)
        return comes_again(found[1], found, Known.of(found[:1]) if known else Known())

    assert again(trial(0.1)) and again(trial(0.1, *DONE))
    assert not again(trial(0.2)) and not again(trial(0.1, *WITHDRAWN))
    assert not again(trial(0.1, *DONE), known=True)  # nothing else was left to ask for
    assert again(trial(0.1, *LOST), known=True) and again(trial(0.1, failure="it died"), known=True)
    assert again(trial(0.1, *LOST), trial(0.1, *DONE, retry_of=0), known=True)  # its retry has the point


def test_what_was_known_are_the_points_that_were_there() -> None:
    known = Known.of(entries(trial(0.1), trial(None), trial(0.3)))
    assert [number in known for number in range(4)] == [True, False, True, False]
