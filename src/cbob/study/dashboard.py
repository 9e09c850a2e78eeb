"""Optuna's dashboard on the storage of a study, in one command. Kinds of failure are among the user attributes of each trial
there, and a note on the study's page sums them up."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import optuna

from cbob.constraints import as_constraints
from cbob.study.names import BUDGET, DEFINITION
from cbob.study.storage import open_storage, shown_url
from cbob.study.tally import Standing, Tally
from cbob.study.views import shown_number

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

__all__ = ["annotate", "note", "serve"]


def serve(url: str, host: str, port: int) -> int:
    """Serve the dashboard until Ctrl-C."""
    if find_spec("optuna_dashboard") is None:
        raise ImportError("the dashboard needs optuna-dashboard: pip install 'cbob[dashboard]'")
    from wsgiref.simple_server import WSGIServer, make_server

    from optuna_dashboard import wsgi

    open_storage(url, writing=False)  # a clear error where there is no study to look at
    storage = open_storage(url)
    annotate(storage)
    server: WSGIServer
    with make_server(host, port, wsgi(storage)) as server:
        print(f"{shown_url(url)} at http://{host}:{server.server_port}/dashboard/ (Ctrl-C ends it)", flush=True)
        server.serve_forever()
    return 0


def annotate(storage: BaseStorage) -> None:
    """Give every study of cbob's a note on how its trials failed."""
    from optuna_dashboard import save_note

    for name in optuna.get_all_study_names(storage):
        study = optuna.load_study(study_name=name, storage=storage)
        definition = study.user_attrs.get(DEFINITION)
        if definition is not None:
            tally = Tally(as_constraints(definition["constraints"]), definition["direction"])
            standing = tally.standing(tally.records(study.get_trials(deepcopy=False)))
            save_note(study, note(standing, study.user_attrs.get(BUDGET)))


def note(standing: Standing, budget: int | None) -> str:
    """The failures of a study in Markdown."""
    best = "none yet" if standing.best is None else f"{shown_number(standing.best.value)}, trial {standing.best.number}"
    rows = [("finished", f"{standing.finished} of {budget or '?'}"), ("feasible", standing.feasible), ("best feasible", best)]
    rows += [(f"broke {name}", number) for name, number in standing.broke.items()]
    rows += [(f"failed: {kind}", number) for kind, number in standing.failed.items()]
    rows += [("lost with their workers, and tried again", standing.lost)] if standing.lost else []
    return "\n".join(["| trials | |", "|---|---|", *(f"| {what} | {number} |" for what, number in rows)])
