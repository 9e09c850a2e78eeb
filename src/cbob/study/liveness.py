"""Who runs trials of a study, and whether they still live.

Each driver (a process of `cbob run`) stores a card: its host, its process, and a pulse, a number that grows while it lives. A
driver of the same host is dead once its process is gone. Of any other only the pulse tells: a driver is taken for dead when
its pulse stood still for GRACE seconds during which *we* could read the storage. So no two clocks are compared, and after the
storage was away everybody gets the time to be heard again.
"""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from cbob.study.names import DRIVER

__all__ = ["GRACE", "PULSE", "Card", "Watch"]

PULSE = 5.0  # seconds between two beats
GRACE = 60.0  # seconds without a beat after which a driver of another host is taken for dead
BLIND = 3 * PULSE  # seconds between two looks after which nothing can be said of what lay between


def host() -> str:
    """What the process numbers of this machine mean something in: its name, its boot, and its namespace of processes."""
    boot = namespace = ""
    with suppress(OSError):  # not Linux
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{platform.node()}|{boot}|{namespace}"


def born(pid: int) -> str | None:
    """When the process began, in the machine's own ticks; None if there is none, or only what is left of one that died."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return f"{process.create_time():.2f}"
        return stat.rpartition(")")[2].split()[19]  # field 22 of proc(5), starttime; the name before may hold anything
    except psutil.Error:
        return None


@dataclass
class Card:
    """What a driver says of itself."""

    workers: int
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    host: str = field(default_factory=host)
    pid: int = field(default_factory=os.getpid)
    born: str | None = field(default_factory=lambda: born(os.getpid()))
    pulse: int = 0

    def beat(self, *, ended: bool = False) -> tuple[str, dict[str, Any]]:
        """The key and the content of the card, one beat later."""
        self.pulse += 1
        content = {
            "host": self.host,
            "pid": self.pid,
            "born": self.born,
            "workers": self.workers,
            "pulse": self.pulse,
            "ended": ended,
        }
        return DRIVER + self.id, content


class Watch:
    """Sees from the cards in a storage which drivers have died. Look at least every BLIND seconds."""

    def __init__(self, me: str, *, grace: float = GRACE, clock: Callable[[], float] = time.monotonic) -> None:
        self.me = me
        self.grace = grace
        self.clock = clock
        self._host = host()
        self._heard: dict[str, tuple[int, float]] = {}  # of each driver, its pulse, and since when we see this one
        self._looked = clock()

    def dead(self, attrs: Mapping[str, Any], drivers: set[str]) -> dict[str, str]:
        """Of these drivers those that are dead, and how we know; `attrs` are the system attributes of the study."""
        now = self.clock()
        if now - self._looked > BLIND:  # we slept, or the storage was away: start listening anew
            self._heard.clear()
        self._looked = now
        found: dict[str, str] = {}
        for driver in sorted(drivers - {self.me}):
            if reason := self._death(driver, attrs.get(DRIVER + driver), now):
                found[driver] = reason
        return found

    def _death(self, driver: str, card: Mapping[str, Any] | None, now: float) -> str | None:
        if card is None:
            pulse = -1  # it claimed a trial and was never heard of
        elif card.get("ended"):
            return "its driver ended without it"
        elif card.get("host") == self._host:
            gone = born(int(card["pid"])) != card.get("born")
            return f"its driver (process {card['pid']}) died" if gone else None
        else:
            pulse = int(card["pulse"])
        known, since = self._heard.get(driver, (None, now))
        if known != pulse:
            self._heard[driver] = (pulse, now)
            return None
        name = "its driver" if card is None else f"its driver on {str(card['host']).partition('|')[0]}"
        return f"{name} was silent for {now - since:.0f} s" if now - since >= self.grace else None
