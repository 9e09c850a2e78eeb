"""A real PostgreSQL server of the tests' own: in a folder of its own, on a free port of this machine, and gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

HELP = "these tests start a PostgreSQL server of their own and need its programs: apt-get install postgresql"


def programs() -> Path:
    """The folder of initdb, postgres and pg_ctl; a RuntimeError says what to install."""
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if (found := shutil.which("initdb")) is not None:
        candidates.append(Path(found).resolve().parent)
    for folder in candidates:
        if all((folder / name).exists() for name in ("initdb", "postgres", "pg_ctl")):
            return folder
    raise RuntimeError(HELP)


class Server:
    """`url` is a database on a running server. Use it in a with statement."""

    def __init__(self) -> None:
        self._bin = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="cbob-postgres-"))
        self._data = self._folder / "data"
        self._as: list[str] = []
        if os.geteuid() == 0:  # which the server refuses to run as
            owner = pwd.getpwnam("postgres")
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            self._as = ["runuser", "-u", "postgres", "--"]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"postgresql://cbob@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self._call("initdb", "-D", self._data, "-U", "cbob", "-A", "trust", "--no-sync")
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder}"
        self._call("pg_ctl", "start", "-w", "-D", self._data, "-l", self._folder / "log", "-o", options)

    def stop(self) -> None:
        self._call("pg_ctl", "stop", "-w", "-m", "fast", "-D", self._data)

    def _call(self, program: str, *arguments: str | Path) -> None:
        command = [*self._as, str(self._bin / program), *map(str, arguments)]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", timeout=60
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed:\n{done.stdout.decode(errors='replace')}")


if __name__ == "__main__":
    with Server() as server:
        print(server.url, flush=True)
        while True:
            time.sleep(60)
