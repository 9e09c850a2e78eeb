"""Output without end in bounded space: its tail in memory and, if asked for, its beginning in a file."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Log", "Tail"]

KEPT = 16 * 2**10  # bytes of the tail that a report shows
FILED = 8 * 2**20  # bytes of the beginning that go to a file; the tail follows
SEARCHED = 2**18  # bytes of a command's stdout among which its result must be


class Tail:
    """The last `size` bytes of what was added."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.total = 0
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._bytes += data
        if len(self._bytes) > 8 * self.size:  # seldom, so that moving bytes costs little for each
            del self._bytes[: -self.size]

    @property
    def text(self) -> str:
        """Whatever the bytes were. A line that was cut is marked as such."""
        text = bytes(self._bytes[-self.size :]).decode("utf-8", "replace")
        return f"[... {self.total - self.size} bytes before]\n{text}" if self.total > self.size else text

    @property
    def raw(self) -> bytes:
        return bytes(self._bytes[-self.size :])


class Log:
    """What an evaluation prints. A file that cannot be written to is done without."""

    def __init__(self, path: Path | None = None) -> None:
        self.tail = Tail(KEPT)
        self.path = path
        self._filed = 0
        self._file = None
        if path is not None:
            try:
                self._file = path.open("wb", buffering=0)
            except OSError as error:
                self._without(error)

    def add(self, data: bytes) -> None:
        self.tail.add(data)
        if self._file is not None and self._filed < FILED:
            part = data[: FILED - self._filed]
            self._filed += len(part)
            self._write(part)

    def close(self) -> None:
        """Complete the file with the tail that did not fit."""
        missing = self.tail.total - self._filed
        if self._file is not None and missing:
            if missing > KEPT:
                self._write(f"\n[... {missing - KEPT} bytes left out ...]\n".encode())
            self._write(self.tail.raw[-missing:])
        if self._file is not None:
            self._file.close()

    def _write(self, data: bytes) -> None:
        if self._file is not None:
            try:
                self._file.write(data)
            except OSError as error:
                self._file.close()
                self._without(error)

    def _without(self, error: OSError) -> None:
        self.tail.add(f"[no log file: {error}]\n".encode())
        self._file = self.path = None
