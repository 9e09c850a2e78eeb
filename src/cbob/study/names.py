"""The attributes under which a study keeps what Optuna has no column for, and the kinds of failure that are no evidence."""

from __future__ import annotations

# user attributes of a trial, shown by the dashboard
READINGS, VIOLATED, SATISFIED, FAILURE = "cbob:readings", "cbob:violated", "cbob:satisfied", "cbob:failure"
SECONDS, LOG = "cbob:seconds", "cbob:log"

CLAIM = "cbob:claim"  # system attribute of a trial: {"driver", "token", "attempt", "retry_of"}
DEFINITION = "cbob:definition"  # user attribute of a study: what all its trials have in common
BUDGET = "cbob:budget"  # user attribute of a study: the budget of the latest run, for `cbob status`
DRIVER = "cbob:driver:"  # system attributes of a study, one for each driver: its host, process and pulse

PROPOSED = "cbob:proposed"  # system attribute of a trial, written by the sampler: what it proposed, as Optuna stores values
FORECAST = "cbob:forecast"  # and what was expected of it, if surrogates had a say

LOST = "lost"  # a kind of failure: its worker died; not held against the point, and tried again
ABANDONED = "abandoned"  # lost once more than may be retried: held against the point, so that every study ends
# Reasons of a loss that nobody's death caused:
INTERRUPTED = "interrupted"  # its driver was told to stop; tried again, and no attempt is spent
WITHDRAWN = "withdrawn"  # it was claimed when the budget had just been given out, and never ran
