"""Storages that cannot be used, that are full or that go away: what is said, and that nothing is lost."""

import os
import re
import resource
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from killing import Driver, Study
from optuna.exceptions import StorageInternalError
from postgres import Server
from sqlalchemy.exc import OperationalError

import cbob.study.storage
from cbob.errors import StorageError, StudyError
from cbob.study.reading import read_study
from cbob.study.storage import Patience, close_storage, open_storage, shown_url, trouble_of

NOBODY = 65534


def refused(url: str, words: str, *, writing: bool = True) -> None:
    with pytest.raises(StorageError, match=words):
        close_storage(open_storage(url, writing=writing))


def stored(path: Path) -> bytes:
    """A study file as a finished run leaves it."""
    close_storage(open_storage(f"sqlite:///{path}"))
    return path.read_bytes()


@pytest.mark.parametrize("size", [50, 5000, 60_000])
def test_a_study_file_that_was_cut_off_is_called_damaged_and_left_as_it_is(tmp_path: Path, size: int) -> None:
    whole = stored(tmp_path / "study.db")
    (tmp_path / "study.db").write_bytes(whole[:size])
    refused(f"sqlite:///{tmp_path}/study.db", "the file is damaged: part of it was cut off")
    assert (tmp_path / "study.db").read_bytes() == whole[:size]


def test_a_file_that_is_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "study.db").write_text("my notes, not to be lost\n" * 100)
    refused(f"sqlite:///{tmp_path}/study.db", "it is not a SQLite database")
    assert (tmp_path / "study.db").read_text().startswith("my notes")


def test_an_interrupted_transaction_is_rolled_back_when_the_study_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    stored(file)
    torn = sqlite3.connect(file, isolation_level=None)
    torn.execute("PRAGMA journal_mode = WAL")
    torn.execute("BEGIN IMMEDIATE")
    torn.execute("INSERT INTO studies (study_name) VALUES ('torn')")
    for name in ("study.db", "study.db-wal"):
        shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")  # as a killed process leaves them
    torn.close()
    os.rename(tmp_path / "copy-study.db-wal", tmp_path / "copy-study.db-wal".replace("copy-study.db-wal", "copy.db-wal"))
    os.rename(tmp_path / "copy-study.db", tmp_path / "copy.db")
    storage = open_storage(f"sqlite:///{tmp_path}/copy.db")
    assert storage.get_all_studies() == []
    close_storage(storage)


def test_places_that_do_not_exist_are_named(tmp_path: Path) -> None:
    refused(f"sqlite:///{tmp_path}/no/study.db", f"there is no folder {tmp_path}/no")
    refused(f"sqlite:///{tmp_path}", "is not a file")
    refused(f"sqlite:///{tmp_path}/study.db", "no study was stored there yet", writing=False)


@contextmanager
def as_nobody() -> Iterator[None]:
    """With no more rights than anybody, even where the tests are run by root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_is_read_only_is_named() -> None:
    folder = Path(tempfile.mkdtemp(prefix="cbob-test-"))
    try:
        stored(folder / "there.db")
        (folder / "there.db").chmod(0o444)
        folder.chmod(0o555)
        with as_nobody():
            refused(f"sqlite:///{folder}/new.db", "cannot be opened or created there")
            refused(f"sqlite:///{folder}/there.db", "the file or its folder cannot be written to")
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_server_that_does_not_answer_and_a_url_that_is_none() -> None:
    refused("postgresql://me:secret@127.0.0.1:1/base", r"postgresql://me:\*\*\*@127.0.0.1:1/base .* no server answers there")
    with pytest.raises(StudyError, match="storage must be a URL like"):
        open_storage("lander.db")


def test_a_password_is_never_shown() -> None:
    assert shown_url("postgresql://me:secret@host/base") == "postgresql://me:***@host/base"
    assert shown_url("sqlite:///study.db") == "sqlite:///study.db"


def test_a_server_without_the_database_says_so(server: Server) -> None:
    refused(server.url.replace("/postgres", "/nothing"), "has no such database")


# ---- patience ----


def test_work_is_tried_again_until_the_storage_is_back() -> None:
    said, tries = list[str](), list[int]()

    def work() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise StorageInternalError("gone") from ConnectionError("connection refused")
        return "done"

    assert Patience("sqlite:///x.db", say=said.append)(work, "store it") == "done"
    assert len(tries) == 3
    assert [words.split(";")[0] for words in said] == [
        "storage is away: no server answers there (connection refused)",
        "storage is back",
    ]


def test_patience_ends_and_says_what_could_not_be_done() -> None:
    def work() -> None:
        raise StorageInternalError("gone") from sqlite3.OperationalError("database or disk is full")

    with pytest.raises(StorageError, match=r"sqlite:///x.db: could not store trial 3, after \d+ s of trying: the disk is full"):
        Patience("sqlite:///x.db", seconds=0.5)(work, "store trial 3")


def test_what_cannot_get_better_is_not_tried_again() -> None:
    tries = []

    def work() -> None:
        tries.append(1)
        raise StorageInternalError("x") from sqlite3.DatabaseError("database disk image is malformed")

    with pytest.raises(StorageError, match="damaged"):
        Patience("sqlite:///x.db")(work, "store it")
    assert len(tries) == 1


def test_a_stop_ends_the_waiting() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()

    def work() -> None:
        raise StorageInternalError("gone")

    start = time.monotonic()
    with pytest.raises(StorageError):
        Patience("x://y", stop=stop)(work, "store it")
    assert time.monotonic() - start < 5


def test_our_own_mistakes_are_not_taken_for_trouble_with_the_storage() -> None:
    with pytest.raises(ZeroDivisionError):
        Patience("x://y")(lambda: 1 / 0, "divide")  # type: ignore[arg-type, return-value]


def test_trouble_is_told_in_words_with_the_database_own_words_behind() -> None:
    assert trouble_of(sqlite3.OperationalError("unable to open database file")) == (
        True,
        "its folder does not exist, or the file cannot be opened or created there (unable to open database file)",
    )
    assert trouble_of(RuntimeError("something new")) == (False, "something new")


# ---- whole studies ----


def said(study: Study) -> str:
    return (study.folder / "errors.txt").read_text()


def wait_for(study: Study, words: str, driver: Driver) -> None:
    deadline = time.monotonic() + 60
    while not re.search(words, said(study)):
        assert driver.process.poll() is None and time.monotonic() < deadline, said(study)
        time.sleep(0.05)


def test_a_full_disk_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    study = Study(tmp_path, f"sqlite:///{tmp_path}/study.db", budget=12, workers=1, seconds=0.05)
    driver = study.start()
    assert driver.lived_for(3, 0.0)
    _, hard = resource.prlimit(driver.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    wait_for(study, "storage is away: the disk", driver)
    resource.prlimit(driver.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    assert driver.wait() == 0
    assert "storage is back; nothing was lost" in said(study)
    study.check()
    assert study.problems == []
    assert study.read().standing.finished == 12


def away(tmp_path: Path, seconds: float) -> None:
    with Server() as own:
        study = Study(tmp_path, own.url, name="away", budget=14, workers=2, seconds=0.2)
        driver = study.start()
        assert driver.lived_for(3, 0.0)
        own.stop()
        wait_for(study, "storage is away: .*; holding results and trying again for 900 s", driver)
        time.sleep(seconds)
        own.start()
        assert driver.wait() == 0, said(study)
        assert "storage is back; nothing was lost" in said(study)
        found = study.check()
        assert study.problems == []
        assert sum(found.values()) == 14  # none was lost, and none was run twice
        lines = study.log.read_text().splitlines()
        assert len(lines) == len({line.split(" ", 2)[2] for line in lines}) == 14


def test_a_database_that_goes_away_is_waited_for_and_nothing_is_lost(tmp_path: Path) -> None:
    away(tmp_path, 2.0)


@pytest.mark.slow
def test_a_database_that_is_away_for_half_a_minute(tmp_path: Path) -> None:
    away(tmp_path, 30.0)


@pytest.mark.slow
def test_a_database_that_stays_away_ends_the_run_with_a_clear_word(tmp_path: Path) -> None:
    with Server() as own:
        study = Study(tmp_path, own.url, name="gone", budget=30, workers=1, seconds=0.1)
        driver = study.start("--patience", "1")
        assert driver.lived_for(2, 0.0)
        own.stop()
        assert driver.wait() == 1
        assert re.search(r"postgresql://cbob@127.0.0.1:\d+/postgres: could not .*, after \d+ s of trying: ", said(study))
        own.start()
        study.check()
        assert study.problems == []
        assert study.start().wait() == 0  # and the same command goes on


def test_a_driver_that_is_stopped_from_outside_gives_its_trials_back(tmp_path: Path) -> None:
    study = Study(tmp_path, f"sqlite:///{tmp_path}/study.db", budget=6, workers=2, seconds=20.0)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        driver = study.start()
        deadline = time.monotonic() + 30
        while not study.log.exists() or len(study.log.read_text().splitlines()) < 2:
            assert time.monotonic() < deadline, said(study)
            time.sleep(0.05)
        driver.process.send_signal(number)
        assert driver.wait(20) == code
        study.log.unlink()
    stored = read_study(study.storage, "soak")
    assert (stored.standing.running, stored.standing.finished, stored.drivers) == (0, 0, 0)
    assert {record.reason for record in stored.records} == {"interrupted"}
    assert "the same command goes on from here" in said(study)


@pytest.mark.parametrize(
    ("words", "patient"), [("FATAL: sorry, too many clients already", True), ("connection refused", False)]
)
def test_a_full_server_is_waited_for_and_one_that_is_not_there_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, patient: bool
) -> None:
    tries = []
    real = cbob.study.storage._relational

    def crowded(url: str, writing: bool) -> Any:
        tries.append(url)
        if len(tries) <= 20:
            raise OperationalError("connect", {}, Exception(words))
        return real(url, writing)

    monkeypatch.setattr(cbob.study.storage, "_relational", crowded)
    monkeypatch.setattr(cbob.study.storage.time, "sleep", lambda seconds: None)
    if patient:
        close_storage(open_storage(f"sqlite:///{tmp_path}/new.db"))
        assert len(tries) == 21
    else:
        with pytest.raises(StorageError, match="no server answers there"):
            open_storage(f"sqlite:///{tmp_path}/new.db")
        assert len(tries) == 5
