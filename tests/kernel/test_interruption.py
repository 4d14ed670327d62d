"""SIGINT, SIGTERM and SIGHUP, wherever the main thread is."""

from __future__ import annotations

import gc
import signal
import threading

import pytest

from rebalance_lab.kernel.interruption import SIGNALS, Interrupted, interruptible, undisturbed


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_raises_and_later_ones_do_not(number: signal.Signals) -> None:
    with interruptible() as interruption:
        with pytest.raises(Interrupted, match=number.name):
            signal.raise_signal(number)
        for each in SIGNALS:
            signal.raise_signal(each)
    assert (interruption.number, interruption.exit_code) == (number, 128 + number)


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
