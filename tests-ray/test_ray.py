"""Evaluations on a real Ray cluster of this machine's own. `make test-ray` runs this: Ray is too heavy for `make test`."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

import cbob

SPACE = cbob.Space({"x": cbob.Float(0.0, 1.0)})


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()


def test_a_study_runs_on_the_cluster_with_every_kind_of_failure() -> None:
    def land(params: dict[str, Any]) -> float:
        if params["x"] < 0.2:
            os._exit(3)
        if params["x"] > 0.8:
            raise ValueError("diverged")
        return float(params["x"])

    result = cbob.minimize(land, SPACE, budget=10, workers=2, strategy="sobol", ray="local")
    assert result.standing.finished == 10
    for record in result.trials:
        kind = "exit" if record.params["x"] < 0.2 else "exception" if record.params["x"] > 0.8 else None
        assert record.kind == kind


def test_a_worker_that_dies_costs_its_trial_which_is_tried_again(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def land(params: dict[str, Any]) -> float:
        first = not note.exists()
        keeper = os.getppid()
        worker = int(Path(f"/proc/{keeper}/stat").read_text().rpartition(")")[2].split()[1])
        if first:
            note.write_text(str(worker))
            time.sleep(60)
        return float(params["x"])

    def kill() -> None:
        while not note.exists() or not note.read_text():
            time.sleep(0.05)
        os.kill(int(note.read_text()), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    result = cbob.minimize(land, SPACE, budget=3, workers=1, strategy="sobol", ray="local")
    lost, retry, *_ = result.trials
    assert (lost.status, retry.status, retry.retry_of, retry.params) == ("lost", "feasible", 0, lost.params)
    assert result.standing.finished == 3
