"""Drivers and workers killed at random times: nothing finished is lost or run twice, and the study always goes on."""

import random
import signal
from pathlib import Path

import psutil
import pytest
from killing import Study, soak


@pytest.mark.parametrize("drivers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_nothing_is_lost_or_run_twice_when_drivers_and_workers_are_killed(
    storage_url: str, tmp_path: Path, drivers: int
) -> None:
    study = Study(tmp_path, storage_url, name=f"killed {drivers} {tmp_path.name}".replace(" ", "_"), budget=24)
    killed = soak(study, 4, seed=drivers, drivers=drivers)
    assert study.problems == []
    assert sum(killed.values()) >= 1
    assert study.read().standing.finished == 24


@pytest.mark.slow
def test_nothing_is_lost_or_run_twice_in_a_hundred_kills(storage_url: str, tmp_path: Path) -> None:
    study = Study(tmp_path, storage_url, name="hundred", budget=400)
    killed = soak(study, 100, seed=100)
    assert study.problems == []
    assert sum(killed.values()) == 100
    assert study.read().standing.finished == 400


def test_one_worker_asks_the_same_points_with_and_without_kills(tmp_path: Path) -> None:
    def points(study: Study) -> list[tuple[float, float]]:
        return [(r.params["x"], r.params["y"]) for r in study.read().records if r.finished]

    plain = Study(tmp_path / "plain", f"sqlite:///{tmp_path}/plain.db", budget=14, workers=1, strategy="cbob")
    assert plain.start().wait() == 0
    killed = Study(tmp_path / "killed", f"sqlite:///{tmp_path}/killed.db", budget=14, workers=1, strategy="cbob")
    rng = random.Random(1)
    for _ in range(3):
        driver = killed.start()
        if driver.lived_for(rng.randint(1, 4), rng.uniform(0.0, 0.15)):
            driver.kill()
        else:
            driver.wait()
    assert killed.start().wait() == 0
    killed.check()
    assert killed.problems == []
    assert points(killed) == points(plain)


def test_what_a_killed_driver_evaluated_dies_with_it(tmp_path: Path) -> None:
    study = Study(tmp_path, f"sqlite:///{tmp_path}/study.db", budget=4, workers=1, seconds=60.0)
    driver = study.start()
    while not study.log.exists():
        assert driver.lived_for(0, 0.05)
    below = psutil.Process(driver.process.pid).children(recursive=True)
    assert below
    driver.process.send_signal(signal.SIGKILL)
    driver.wait()
    _, alive = psutil.wait_procs(below, timeout=20)
    assert alive == []
