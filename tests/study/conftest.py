"""Storages to test with, real ones: SQLite files, and a PostgreSQL server that the tests start by themselves."""

from collections.abc import Callable, Iterator
from pathlib import Path

import optuna
import pytest
from optuna.storages import BaseStorage
from postgres import Server

from cbob.study.storage import close_storage, open_storage


@pytest.fixture(autouse=True)
def quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def storage_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("server").url)
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def open_url() -> Iterator[Callable[[str], BaseStorage]]:
    """Opens storages, and closes them after the test."""
    opened: list[BaseStorage] = []

    def open_it(url: str) -> BaseStorage:
        opened.append(open_storage(url))
        return opened[-1]

    yield open_it
    for storage in opened:
        close_storage(storage)
