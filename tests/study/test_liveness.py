"""Which drivers live and which are dead, seen from another one."""

import os
import subprocess
import sys

from cbob.study.liveness import BLIND, Card, Watch, born, host
from cbob.study.names import DRIVER


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def elsewhere(pulse: int, **more: object) -> dict[str, object]:
    return {"host": "another machine|boot|pid", "pid": 1, "born": "1", "pulse": pulse, "ended": False, **more}


def look(watch: Watch, clock: Clock, seconds: float, card: dict[str, object] | None) -> dict[str, str]:
    """What is seen after so long, looking all the time."""
    end = clock.now + seconds
    while clock.now < end:
        clock.now = min(clock.now + BLIND / 3, end)
        dead = watch.dead({} if card is None else {DRIVER + "other": card}, {"other"})
    return dead


def test_a_process_is_known_by_its_number_and_its_birth() -> None:
    assert born(os.getpid()) == born(os.getpid()) is not None
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert born(sleeper.pid) not in (None, born(os.getpid()))
    sleeper.kill()
    while sleeper.poll() is None:
        pass
    assert born(sleeper.pid) is None


def test_what_is_left_of_a_dead_process_whose_parent_does_not_care_is_dead() -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now, and stays one
    assert born(sleeper.pid) is None
    sleeper.wait()


def test_a_driver_of_this_host_is_dead_as_soon_as_its_process_is_gone() -> None:
    card = Card(2)
    key, mine = card.beat()
    watch = Watch("me")
    assert watch.dead({key: mine}, {card.id}) == {}
    assert "died" in watch.dead({key: mine | {"pid": 2**22 + 1}}, {card.id})[card.id]
    reused = mine | {"born": "12"}  # the same number, another process
    assert "died" in watch.dead({key: reused}, {card.id})[card.id]


def test_a_driver_of_another_host_is_dead_after_a_while_without_a_pulse() -> None:
    clock = Clock()
    watch = Watch("me", grace=60.0, clock=clock)
    assert look(watch, clock, 59.0, elsewhere(7)) == {}
    assert look(watch, clock, 5.0, elsewhere(8)) == {}  # it was heard of
    assert look(watch, clock, 59.0, elsewhere(8)) == {}
    assert "silent" in look(watch, clock, 6.0, elsewhere(8))["other"]


def test_silence_that_nobody_could_have_broken_does_not_count() -> None:
    clock = Clock()
    watch = Watch("me", grace=60.0, clock=clock)
    look(watch, clock, 50.0, elsewhere(7))
    clock.now += 3600.0  # the storage was away, or we slept
    assert watch.dead({DRIVER + "other": elsewhere(7)}, {"other"}) == {}
    assert look(watch, clock, 55.0, elsewhere(7)) == {}
    assert "silent" in look(watch, clock, 10.0, elsewhere(7))["other"]


def test_a_driver_that_said_goodbye_runs_nothing_any_more() -> None:
    watch = Watch("me")
    assert watch.dead({DRIVER + "other": elsewhere(3, ended=True)}, {"other"}) == {"other": "its driver ended without it"}


def test_a_driver_that_was_never_heard_of_gets_the_same_time() -> None:
    clock = Clock()
    watch = Watch("me", grace=60.0, clock=clock)
    assert look(watch, clock, 58.0, None) == {}
    assert "silent" in look(watch, clock, 10.0, None)["other"]


def test_i_am_never_dead() -> None:
    assert Watch("me").dead({}, {"me"}) == {}
    assert host() == host()
