"""Trees of processes: who belongs to one, what it uses, and how to end it.

On Linux the keeper is the *subreaper* of all that it starts: a process whose parent dies becomes its child, even after
setsid. So nothing gets away, and no children means no descendants. Elsewhere whatever got away is found by a mark in its
environment.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

__all__ = ["LINUX", "MARK", "become_subreaper", "descendants", "die_with", "end", "marked", "signal_all", "used"]

LINUX = sys.platform == "linux"
MARK = "CBOB_KEEPER"  # an environment variable with the keeper's own token
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>
POLITE = 0.2  # seconds between SIGTERM and SIGKILL for what was left behind
PATIENCE = 5.0  # seconds to wait for what was killed: a process may be stuck in the kernel

_prctl = ctypes.CDLL(None, use_errno=True).prctl if LINUX else None  # looked up once, not in each forked child


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    if _prctl is not None:
        _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with(parent: int) -> None:
    """This process is killed when `parent`, its parent and of one thread, dies in whatever way."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before
            os._exit(1)


def marked(token: str) -> list[psutil.Process]:
    """All processes that inherited the token, but this one."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(MARK) == token:
                found.append(process)
    return found


def descendants(token: str | None) -> list[psutil.Process]:
    """All processes below this one."""
    found = []
    with suppress(psutil.Error):
        found = psutil.Process().children(recursive=True)
    if token is not None and not LINUX:
        known = {process.pid for process in found}
        found += [process for process in marked(token) if process.pid not in known]
    return found


def signal_all(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with suppress(psutil.Error, OSError):
            process.send_signal(number)


def used(processes: Iterable[psutil.Process], limit: int) -> int:
    """Bytes of memory in use. Shared pages are counted once, which takes longer, only where the limit is near."""
    processes = list(processes)
    total = sum(_measured(process, lambda p: p.memory_info().rss) for process in processes)
    return total if total <= limit else sum(_measured(process, _proportional) for process in processes)


def end(find: Callable[[], list[psutil.Process]], *, polite: float = POLITE, patience: float = PATIENCE) -> bool:
    """End all that `find` finds, again and again, until it finds nothing. False if something would not die."""
    start = time.monotonic()
    asked: set[int] = set()
    while found := find():
        passed = time.monotonic() - start
        if passed > polite + patience:
            return False
        if passed < polite:
            signal_all((process for process in found if process.pid not in asked), signal.SIGTERM)
            asked |= {process.pid for process in found}
        else:
            signal_all(found, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        time.sleep(0.005)
    return True


def _measured(process: psutil.Process, measure: Callable[[psutil.Process], int]) -> int:
    with suppress(psutil.Error, OSError):
        return measure(process)
    return 0  # it has ended


def _proportional(process: psutil.Process) -> int:
    try:
        memory = process.memory_full_info()
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
    return int(getattr(memory, "pss", memory.uss))
