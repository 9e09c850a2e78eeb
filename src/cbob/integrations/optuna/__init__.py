"""For Optuna users: a sampler that learns from trials which failed, and the way to say what broke.

    sampler.py   CBOBSampler: what Optuna calls
    reports.py   report(): what broke, what was read, and why a trial failed, as user attributes of the trial; mark_lost()
    history.py   the trials of a study as they count
    branches.py  spaces whose parameters depend on each other: the branches, and whose turn it is
    spaces.py    Optuna's distributions as parameters of cbob, and back

Install it with `pip install 'cbob[optuna]'`.
"""

from cbob.integrations.optuna.reports import LOST, mark_lost, report
from cbob.integrations.optuna.sampler import CBOBSampler

__all__ = ["LOST", "CBOBSampler", "mark_lost", "report"]
