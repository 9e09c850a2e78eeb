"""Functions under evaluation that do what evaluations do: all of it but one goes wrong."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from cbob.errors import Infeasible

Params = dict[str, Any]
FOREVER = 3600.0


def act(params: Params) -> Any:
    """One target for all cases, so that one warm evaluator goes through them."""
    return globals()[params["how"]](params)


def well(params: Params) -> float:
    return 1.0


def measured(params: Params) -> dict[str, Any]:
    return {"value": 0.5, "fuel": 30, "mass": 7.5}


def numpy_scalars(params: Params) -> dict[str, Any]:
    import numpy as np

    return {"value": np.float32(0.5), "fuel": np.int64(30)}


def only_broken_reading(params: Params) -> dict[str, Any]:
    return {"fuel": 61.0}


def reading_by_word(params: Params) -> dict[str, Any]:
    return {"fuel": "violated", "mass": "satisfied"}


# Raising -------------------------------------------------------------------------------------------------------------


def raises(params: Params) -> NoReturn:
    print("before the end")
    raise RuntimeError("the solver diverged\nat step 7")


def raises_unpicklable(params: Params) -> NoReturn:
    class LocalError(Exception):
        def __init__(self, a: object, b: object) -> None:
            super().__init__(lambda: a)
            self.lock = threading.Lock()

    raise LocalError(1, 2)


def raises_unprintable(params: Params) -> NoReturn:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    raise MuteError


def raises_surrogate(params: Params) -> NoReturn:
    raise RuntimeError("\udcff\x00")


def infeasible_one(params: Params) -> NoReturn:
    raise Infeasible("fuel")


def infeasible_two(params: Params) -> NoReturn:
    raise Infeasible("fuel", "mass")


def infeasible_with_reading(params: Params) -> NoReturn:
    raise Infeasible("fuel", readings={"mass": 7.5})


def infeasible_unknown(params: Params) -> NoReturn:
    raise Infeasible("feul")


def infeasible_unnamed(params: Params) -> NoReturn:
    raise Infeasible


def interrupts(params: Params) -> NoReturn:
    raise KeyboardInterrupt


def recursion(params: Params) -> Any:
    return recursion(params)


# Returning what cannot be read ---------------------------------------------------------------------------------------


def nan(params: Params) -> float:
    return float("nan")


def infinite(params: Params) -> dict[str, float]:
    return {"value": float("-inf"), "fuel": 30.0}


def nan_reading(params: Params) -> dict[str, float]:
    return {"value": 1.0, "fuel": float("nan")}


def text(params: Params) -> str:
    return "0.3"


def none(params: Params) -> None:
    return None


def empty(params: Params) -> dict[str, float]:
    return {}


def no_value(params: Params) -> dict[str, float]:
    return {"fuel": 30.0}


def wrong_reading(params: Params) -> dict[str, Any]:
    return {"value": 1.0, "fuel": [30.0]}


def unknown_reading(params: Params) -> dict[str, Any]:
    return {"value": 1.0, "feul": 30.0}


def contradiction(params: Params) -> dict[str, Any]:
    return {"fuel": 30.0, "violated": ["fuel"]}


def says_failed(params: Params) -> dict[str, Any]:
    return {"failed": "diverged"}


def unpicklable_result(params: Params) -> dict[str, Any]:
    return {"value": 1.0, "fuel": lambda: 30.0}


def big_result(params: Params) -> dict[str, Any]:
    return {"value": 1.0, "fuel": "x" * 10**8}


def many_keys(params: Params) -> dict[str, Any]:
    return {"value": 1.0} | {f"k{i}": i for i in range(10**5)}


def hostile_result(params: Params) -> Any:
    class Hostile(dict[str, float]):
        def __iter__(self) -> Any:
            raise OSError("not today")

        keys = items = get = __getitem__ = __contains__ = __iter__  # type: ignore[assignment]

    return Hostile(value=1.0)


# Ending --------------------------------------------------------------------------------------------------------------


def exits_0(params: Params) -> NoReturn:
    sys.exit(0)


def exits_3(params: Params) -> NoReturn:
    sys.exit(3)


def leaves_0(params: Params) -> NoReturn:
    os._exit(0)


def leaves_1(params: Params) -> NoReturn:
    print("nearly there")
    os._exit(1)


def segfault(params: Params) -> None:
    print("before the fault")
    ctypes.string_at(0)


def aborts(params: Params) -> None:
    os.abort()


def killed(params: Params) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terminated(params: Params) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def stack_overflow(params: Params) -> Any:
    sys.setrecursionlimit(10**9)

    class Deep:
        def __repr__(self) -> str:
            return repr(self)

    return repr(Deep())


# Not ending ----------------------------------------------------------------------------------------------------------


def endless(params: Params) -> NoReturn:
    print("round and round")
    while True:
        pass


def ignores_sigterm(params: Params) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass


def sleeps_in_c(params: Params) -> None:
    ctypes.CDLL(None).sleep(int(FOREVER))


def stops_itself(params: Params) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def tree_ignores_sigterm(params: Params) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _note(params, _fork_sleeper())
    time.sleep(FOREVER)


def floods_for_ever(params: Params) -> NoReturn:
    while True:
        os.write(1, b"spam and eggs\n" * 5000)


# Memory --------------------------------------------------------------------------------------------------------------


def eats_lists(params: Params) -> NoReturn:
    eaten = []
    while True:
        eaten.append([0.0] * 10**6)


def eats_numpy(params: Params) -> NoReturn:
    import numpy as np

    eaten = []
    while True:
        eaten.append(np.ones(4 * 10**6))


def eats_in_grandchild(params: Params) -> int:
    code = "x = []\nwhile True: x.append(bytearray(b'x' * 10**7))"
    shell = f'"{sys.executable}" -c "{code}"; true'
    return subprocess.run(["sh", "-c", shell], check=False).returncode


def eats_in_many(params: Params) -> None:
    code = "import time; x = b'x' * 10**8; time.sleep(3600)"
    for _ in range(4):
        subprocess.Popen([sys.executable, "-c", code])
    time.sleep(FOREVER)


def asks_for_too_much(params: Params) -> int:
    return len(bytearray(50 * 2**30))


def reserves_address_space(params: Params) -> float:
    import mmap

    with mmap.mmap(-1, 2**36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ):
        return 1.0


# Leaving things behind -----------------------------------------------------------------------------------------------


def leaves_child(params: Params) -> float:
    _note(params, subprocess.Popen(["sleep", "3600"]).pid)
    return 1.0


def leaves_daemon(params: Params) -> float:
    """Forked twice, in a session of its own, with all pipes of its parent open."""
    if os.fork() == 0:
        os.setsid()
        _note(params, _fork_sleeper())
        os._exit(0)
    os.wait()
    return 1.0


def leaves_stubborn_daemon(params: Params) -> float:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return leaves_daemon(params)


def leaves_thread(params: Params) -> float:
    threading.Thread(target=time.sleep, args=(FOREVER,)).start()
    return 1.0


def returns_twice(params: Params) -> float:
    if os.fork() == 0:
        return 2.0
    time.sleep(0.1)
    return 1.0


def _fork_sleeper() -> int:
    pid = os.fork()
    if pid == 0:
        time.sleep(FOREVER)
        os._exit(0)
    return pid


def _note(params: Params, pid: int) -> None:
    Path(params["note"]).write_text(str(pid))


# Spoiling things -----------------------------------------------------------------------------------------------------


def prints_gigabyte(params: Params) -> float:
    block = b"spam and eggs and spam\n" * 45000
    for _ in range(10**9 // len(block) + 1):
        os.write(1, block)
    print("the end")
    return 1.0


def prints_bytes(params: Params) -> NoReturn:
    os.write(1, b"\xff\xfe\x00 caf\xe9\n")
    print("\udcff")
    raise RuntimeError("after bytes")


def deletes_its_folder(params: Params) -> float:
    import shutil

    shutil.rmtree(os.getcwd())
    return 1.0


def deletes_its_folder_and_fails(params: Params) -> NoReturn:
    deletes_its_folder(params)
    os.getcwd()
    raise AssertionError("unreachable")


def closes_output(params: Params) -> float:
    for stream in (sys.stdout, sys.stderr):
        stream.close()
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    return 1.0


def closes_everything(params: Params) -> float:
    os.closerange(0, 4096)
    return 1.0


def closes_everything_and_raises(params: Params) -> NoReturn:
    os.closerange(0, 4096)
    raise RuntimeError("all is closed")


def replaces_output(params: Params) -> float:
    sys.stdout = sys.stderr = None
    return 1.0


def changes_place(params: Params) -> float:
    os.chdir("/")
    os.environ["SPOILT"] = "yes"
    sys.path.clear()
    globals()["well"] = None
    return 1.0


def sees_change(params: Params) -> dict[str, Any]:
    return {"value": float("SPOILT" in os.environ or os.getcwd() == "/" or well is None)}


def draws(params: Params) -> float:
    import random

    return random.random()


def draws_numpy(params: Params) -> float:
    import numpy as np

    return float(np.random.random())  # noqa: NPY002  the shared state is the point


def kills_its_keeper(params: Params) -> None:
    _note(params, _fork_sleeper())
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(FOREVER)


def waits(params: Params) -> float:
    _note(params, os.getpid())
    time.sleep(params.get("seconds", FOREVER))
    return 1.0


def waits_with_daemon(params: Params) -> None:
    leaves_daemon(params)
    time.sleep(FOREVER)
