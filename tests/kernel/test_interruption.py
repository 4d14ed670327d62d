"""SIGINT, SIGTERM and SIGHUP, wherever the main thread is."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

import pytest

from rebalance_lab.kernel import interruption
from rebalance_lab.kernel.interruption import (
    SIGNALS,
    Interrupted,
    Interruption,
    breaking_off,
    interruptible,
    undisturbed,
)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_raises_and_later_ones_do_not(number: signal.Signals) -> None:
    with interruptible() as interruption:
        with pytest.raises(Interrupted, match=number.name):
            signal.raise_signal(number)
        for each in SIGNALS:
            signal.raise_signal(each)
    assert interruption.number == number


def test_handlers_are_as_before_afterwards() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with interruptible(), undisturbed():
        pass
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_signal_waits_for_the_end_of_undisturbed_work() -> None:
    done = []

    def work() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGTERM)
            done.append("all")

    with interruptible(), pytest.raises(Interrupted):
        work()
    assert done == ["all"]


def test_undisturbed_work_may_replace_handlers_also_of_what_is_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with undisturbed():
            signal.raise_signal(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_an_interrupted_block_waits_for_is_ended_if_it_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "STANDSTILL_S", 0.1)
    ended = threading.Event()

    def work() -> None:
        with breaking_off(ended.set):
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                assert ended.wait(10)

    with interruptible(), pytest.raises(Interrupted):
        work()


def test_what_waits_longer_is_ended_by_the_last_resort() -> None:
    """Each function has its own time, and one that fails does not keep the next one from its turn."""
    called: list[str] = []
    ended = threading.Event()

    def work() -> None:
        with (
            breaking_off(ended.set, 0.2),
            breaking_off(lambda: called.append("much later"), 1000.0),
            breaking_off(lambda: called.append(f"first {1 / 0}"), 0.0),
        ):
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                assert ended.wait(10)

    with interruptible(), pytest.raises(Interrupted):
        work()
    assert called == []


def test_what_ends_soon_after_a_signal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "STANDSTILL_S", 1000.0)
    ended: list[str] = []

    def work() -> None:
        with breaking_off(lambda: ended.append("all")):
            signal.raise_signal(signal.SIGTERM)

    with interruptible(), pytest.raises(Interrupted):
        work()
    assert ended == []


def test_nothing_is_ended_without_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "STANDSTILL_S", 0.0)
    ended: list[str] = []
    with interruptible(), breaking_off(lambda: ended.append("all")):
        time.sleep(0.1)
    with breaking_off(lambda: ended.append("outside")):
        pass
    assert ended == []


class Finalized:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def finalize_and_wait() -> None:
    Finalized()
    gc.collect()
    threading.Event().wait(60)


def test_a_signal_whose_exception_was_lost_is_sent_again() -> None:
    """Python drops what a finalizer raises."""
    with interruptible() as interruption, pytest.raises(Interrupted):
        finalize_and_wait()
    assert interruption.number == signal.SIGTERM


class Failed:
    def __del__(self) -> None:
        raise AttributeError("its finalizer fails")


def fail_and_wait() -> None:
    Failed()
    threading.Event().wait(60)


def test_a_signal_that_comes_while_an_error_is_dropped_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops as well what is raised while it reports that error."""
    monkeypatch.setattr("sys.unraisablehook", lambda _raised: signal.raise_signal(signal.SIGTERM))
    with interruptible() as interruption, pytest.raises(Interrupted):
        fail_and_wait()
    assert interruption.number == signal.SIGTERM


def test_no_signal_is_sent_again_after_the_end() -> None:
    """It would be taken for another one: the block may end by an error that the first has caused."""
    arrived = []
    before = signal.signal(signal.SIGTERM, lambda *_: arrived.append("after the end"))
    try:
        with suppress(Interrupted), interruptible() as interruption:  # it is sent again before, if this takes long
            Finalized()
        assert not [each for each in threading.enumerate() if each.name == "insists on signals"]  # it alone sends again
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (interruption.number, arrived) == (signal.SIGTERM, [])


def test_a_signal_changes_nothing_once_the_work_has_ended() -> None:
    """It comes while the thread that insists on signals is waited for."""
    with interruptible() as interruption:
        over = interruption.over

        def over_and_signalled() -> None:
            over()
            signal.raise_signal(signal.SIGINT)

        interruption.over = over_and_signalled  # type: ignore[method-assign]
    assert interruption.number is None


class HalfMade:
    """Its finalizer fails, as that of an event loop does which a signal kept from being made."""

    def __del__(self) -> None:
        raise AttributeError("it has no selector")


def test_after_a_signal_a_finalizer_s_error_is_its_consequence(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: dropped.append(raised.exc_value))
    with interruptible():
        HalfMade()
        assert len(dropped) == 1
        with suppress(Interrupted):
            signal.raise_signal(signal.SIGTERM)
        HalfMade()
    assert len(dropped) == 1


def test_what_a_signal_left_in_a_cycle_is_finalized_before_errors_are_shown_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a transport of asyncio, which the signal kept from being made: its loop knows it, and it knows its loop."""
    dropped: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: dropped.append(raised.exc_value))
    with interruptible():
        cycle: list[object] = [HalfMade()]
        cycle.append(cycle)
        with suppress(Interrupted):
            signal.raise_signal(signal.SIGTERM)
        del cycle
    gc.collect()
    assert dropped == []


def stands_still(thread: int) -> bool:
    """Whether a thread of this process waits in a system call; `thread`: its native id."""
    stat = Path(f"/proc/self/task/{thread}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


def test_a_signal_that_came_just_before_a_wait_ends_it() -> None:
    """Python notes a signal that another thread receives, and the main thread's system call goes on: as where the main
    thread was about to begin that call."""
    reading, writing = os.pipe()
    main = threading.get_native_id()
    about_to_wait = threading.Event()

    def strike() -> None:
        about_to_wait.wait()
        while not stands_still(main):
            time.sleep(0.001)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    striker = threading.Thread(target=strike)
    striker.start()

    def wait() -> None:
        about_to_wait.set()
        os.read(reading, 1)

    try:
        with interruptible() as interruption, pytest.raises(Interrupted):
            wait()
        assert interruption.number == signal.SIGTERM
    finally:
        striker.join()
        os.close(reading)
        os.close(writing)


def test_insisting_on_a_signal_leaves_undisturbed_work_alone() -> None:
    arrived = []
    before = signal.getsignal(signal.SIGTERM)

    def work() -> None:
        with undisturbed():
            signal.signal(signal.SIGTERM, lambda *_: arrived.append(time.monotonic()))
            signal.raise_signal(signal.SIGTERM)
            time.sleep(0.2)

    with interruptible() as interruption:
        work()
    assert (len(arrived), interruption.number) == (1, None)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_coroutine_that_an_interruption_kept_from_starting_is_no_matter_for_users(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def work() -> None: ...

    def interrupted() -> None:
        coroutine = work()
        signal.raise_signal(signal.SIGINT)
        raise AssertionError(coroutine)

    with interruptible(), pytest.raises(Interrupted):
        interrupted()
    gc.collect()
    assert not [each for each in recwarn if "never awaited" in str(each.message)]


def take_and_give_back(condition: threading.Condition) -> None:
    with condition:
        pass


def take_in_a_stack(condition: threading.Condition) -> None:
    with ExitStack() as stack:
        stack.enter_context(condition)


@pytest.mark.parametrize("step", [take_and_give_back, take_in_a_stack])
def test_a_lock_that_a_signal_meets_is_given_back(step: Callable[[threading.Condition], None]) -> None:
    """Without being put off, about half of the signals leave the lock taken: it is there, and the block that gives it
    back has not begun."""
    condition = threading.Condition(threading.Lock())

    def work(signal_after_s: float) -> None:
        threading.Timer(signal_after_s, os.kill, (os.getpid(), signal.SIGTERM)).start()
        while True:
            step(condition)

    for each in range(8):
        with pytest.raises(Interrupted), interruptible():
            work(each / 10_000)
        assert condition.acquire(timeout=1), f"still taken after a signal in round {each}"
        condition.release()


def test_a_wait_is_interrupted_when_the_signal_is_sent_again() -> None:
    """It is put off once, because what waits has the same frame as what has just got a lock."""
    condition = threading.Condition()
    waiting = threading.Thread(target=lambda: condition.acquire() and condition.wait(60))
    waiting.start()

    def frame() -> FrameType:
        return sys._current_frames()[waiting.ident or 0]

    while frame().f_code is not threading.Condition.wait.__code__:
        time.sleep(0.001)
    interruption, waits = Interruption(), frame()
    interruption.on_signal(signal.SIGTERM, waits)
    assert (interruption.number, interruption.arrived) == (None, signal.SIGTERM)
    with pytest.raises(Interrupted):
        interruption.on_signal(signal.SIGTERM, waits)
    with condition:
        condition.notify()
    waiting.join()
