"""Opens the storage of a study, and keeps at it while the storage is away.

SQLite: a write-ahead log, which survives a kill at any moment; finished trials are forced onto the disk (`settle`), so that
they survive a power cut too. Every transaction takes the write lock at once, so that two processes never decide on what they
read before the other wrote. Other databases lock rows, as Optuna asks them to.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cbob.errors import StorageError, StudyError, shown

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage

__all__ = ["Patience", "close_storage", "open_storage", "settle", "shown_url", "trouble_of"]

T = TypeVar("T")

BUSY = 60.0  # seconds that SQLite waits for the lock of another process
CONNECT = 10  # seconds to wait for a database server to answer
OPENING = 5  # tries to open a storage: several processes may create its tables at once
CROWDED = 60  # the same where the server has no connection left: whoever asks for one a little later gets it
FULL = "the server has no connection left"
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)  # seconds between tries while a storage is away; the last one repeats
PATIENCE = 900.0  # seconds that finished results are held while their storage is away

# What a database's own words mean to the people in front of it. "fatal": trying again will not help.
MEANINGS = (
    ("file is not a database", True, "it is not a SQLite database, or its beginning was overwritten"),
    (
        "malformed",
        True,
        "the file is damaged: part of it was cut off or overwritten. Restore a copy, or `sqlite3 FILE .recover`",
    ),
    ("unsupported file format", True, "it is not a SQLite database of this version"),
    ("readonly", True, "the file or its folder cannot be written to"),
    ("unable to open database file", True, "its folder does not exist, or the file cannot be opened or created there"),
    ("database or disk is full", False, "the disk is full"),
    ("disk i/o error", False, "the disk refuses to write (full, over a quota, or broken)"),
    ("database is locked", False, "another process holds its lock"),
    ("password authentication failed", True, "the database refuses the user or password"),
    ("no password supplied", True, "the database wants a password"),
    ("does not exist", True, "the server answers, but has no such database, user or table"),
    ("too many clients", False, FULL),
    ("remaining connection slots", False, FULL),
    ("connection refused", False, "no server answers there"),
    ("could not translate host", True, "there is no host of this name"),
    ("failed to resolve host", True, "there is no host of this name"),
)


def trouble_of(error: BaseException) -> tuple[bool, str]:
    """Whether trying again is hopeless, and what happened in words: from the error that a database driver raised at first."""
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = getattr(step, "orig", None) or step.__cause__ or step.__context__
    first = " ".join(str(chain[-1]).split()) or type(chain[-1]).__name__
    for words, hopeless, meaning in MEANINGS:
        if any(words in str(link).lower() for link in chain):
            return hopeless, f"{meaning} ({first})"
    return False, first


def shown_url(url: str) -> str:
    """A storage URL as a message may show it: without its password."""
    scheme, mark, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}{mark}{user}{colon and ':***'}{at}{place}"


def open_storage(url: str, *, writing: bool = True) -> BaseStorage:
    """The storage at a URL; a StorageError says what is wrong with it. Only a writer creates what is not there."""
    import optuna

    if not isinstance(url, str) or "://" not in url:
        forms = '"sqlite:///study.db", "postgresql://user@host/database" or "journal:///study.log"'
        raise StudyError(f"storage must be a URL like {forms}, not {shown(url)}")
    if url.startswith("journal:///"):
        from optuna.storages.journal import JournalFileBackend

        return optuna.storages.JournalStorage(JournalFileBackend(url.removeprefix("journal:///")))
    if url.startswith("sqlite:///") and url != "sqlite:///:memory:":
        _check_file(Path(url.removeprefix("sqlite:///")), url, writing)
    for attempt in range(CROWDED):
        try:
            return optuna.storages.get_storage(_relational(url, writing))
        except ImportError as error:
            raise StorageError(f"{shown_url(url)} needs a driver: {_driver_hint(url, error)}") from None
        except _database_errors() as error:
            hopeless, words = trouble_of(error)
            if hopeless or attempt >= (CROWDED if FULL in words else OPENING) - 1:
                raise StorageError(f"{shown_url(url)} cannot be opened: {words}") from error
        except RuntimeError as error:  # Optuna's word for the tables of another version
            raise StorageError(f"{shown_url(url)} cannot be opened: {error}") from error
        time.sleep(random.uniform(0.1, 0.5) * min(attempt + 1, OPENING))
    raise AssertionError("the last try returns or raises")


def close_storage(storage: BaseStorage) -> None:
    """Close the connections of a storage that wait to be used again; it opens new ones where it has to."""
    engine = getattr(getattr(storage, "_backend", storage), "engine", None)
    if engine is not None:
        engine.dispose()


def settle(url: str) -> None:
    """Have what was committed to a SQLite file reach the disk; other databases see to that themselves. One wait for a whole
    trial rather than one for each of its commits."""
    if url.startswith("sqlite:///"):
        with suppress(FileNotFoundError):  # no write-ahead log, no need
            log = os.open(url.removeprefix("sqlite:///") + "-wal", os.O_RDWR)
            try:
                os.fsync(log)
            finally:
                os.close(log)


class Patience:
    """Does a piece of work with the storage, again and again while the storage is away.

    The work must be such that doing it twice is as good as once: a commit may have come through whose answer did not.
    """

    def __init__(
        self,
        url: str,
        *,
        seconds: float = PATIENCE,
        say: Callable[[str], None] = lambda words: None,
        stop: threading.Event | None = None,
    ) -> None:
        self.address = url
        self.url = shown_url(url)
        self.seconds = seconds
        self.say = say
        self.stop = stop or threading.Event()
        self.away = False

    def __call__(self, work: Callable[[], T], what: str) -> T:
        start, tries = time.monotonic(), 0
        while True:
            try:
                result = work()
            except _database_errors() as error:
                hopeless, words = trouble_of(error)
                waited = time.monotonic() - start
                if hopeless or waited > self.seconds or self.stop.is_set():
                    raise StorageError(f"{self.url}: could not {what}, after {waited:.0f} s of trying: {words}") from error
                if not self.away:
                    self.away = True
                    self.say(f"storage is away: {words}; holding results and trying again for {self.seconds:.0f} s")
                self.stop.wait(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1
                continue
            if self.away:
                self.away = False
                self.say("storage is back; nothing was lost")
            return result


def _database_errors() -> tuple[type[Exception], ...]:
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    return StorageInternalError, SQLAlchemyError, sqlite3.Error


def _check_file(file: Path, url: str, writing: bool) -> None:
    if not file.exists():
        if not writing:
            raise StorageError(f"{url} does not exist: no study was stored there yet")
        if not file.parent.is_dir():
            raise StorageError(f"{url} cannot be created: there is no folder {file.parent}")
    elif not file.is_file():
        raise StorageError(f"{url} cannot be opened: {file} is not a file")


def _relational(url: str, writing: bool) -> RDBStorage:
    from optuna.storages import RDBStorage
    from sqlalchemy.pool import NullPool

    if url.startswith("sqlite"):
        return _sqlite(url, writing)
    options: dict[str, Any] = {"poolclass": NullPool}
    if writing:
        options = {"pool_pre_ping": True, "pool_size": 1, "max_overflow": 3}  # many drivers share one server
    if url.startswith("postgres"):
        options["connect_args"] = {"connect_timeout": CONNECT}
    return RDBStorage(_with_driver(url), engine_kwargs=options, skip_table_creation=not writing)


def _sqlite(url: str, writing: bool) -> RDBStorage:
    from optuna.storages import RDBStorage
    from sqlalchemy import event
    from sqlalchemy.pool import NullPool

    if not writing:
        file = Path(url.removeprefix("sqlite:///")).resolve()
        options = {"poolclass": NullPool}
        return RDBStorage(f"sqlite:///file:{file}?mode=ro&uri=true", engine_kwargs=options, skip_table_creation=True)
    storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": BUSY}, "pool_size": 2, "max_overflow": 62})

    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver begins no transaction of its own
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")  # where that cannot be had, as on network folders, the old mode stays
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.close()

    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(storage.engine, "connect", connected)
    event.listen(storage.engine, "begin", begun)
    storage.engine.dispose()  # the connections that made the tables
    with storage.engine.begin():  # whoever cannot write learns it now
        pass
    return storage


def _with_driver(url: str) -> str:
    """ "postgresql://" means whichever driver is installed, psycopg 3 before psycopg2."""
    scheme, mark, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        scheme = "postgresql+psycopg" if find_spec("psycopg") else "postgresql"
    return f"{scheme}{mark}{rest}"


def _driver_hint(url: str, error: ImportError) -> str:
    if url.startswith("postgres"):
        return "pip install 'cbob[postgresql]'"
    return str(error.__cause__ or error)
