"""The lives of a child process: paused, resumed, killed, started again, asked to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rebalance_lab.kernel.interruption import Interrupted, interruptible
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.process import os_process
from rebalance_lab.world.process.os_process import OsProcess
from rebalance_lab.world.process.states import RunState


class Sleeper(OsProcess):
    """Writes which life it is in, and waits."""

    def __init__(self, folder: Path) -> None:
        super().__init__("sleeper", folder / "sleeper.log")
        self.lives = 0

    def launch(self) -> None:
        self._spawn([sys.executable, "-c", f"print({self.lives + 1}); import time; time.sleep(600)"], self.log_file)
        self.lives += 1


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Sleeper]:
    sleeper = Sleeper(tmp_path)
    yield sleeper
    sleeper.kill()


def test_it_is_paused_resumed_killed_and_started_again(sleeper: Sleeper) -> None:
    assert sleeper.ended and sleeper.state is RunState.GONE
    sleeper.launch()
    first = sleeper.pid
    assert sleeper.state is RunState.ALIVE
    sleeper.pause()
    assert sleeper.state is RunState.STOPPED
    sleeper.resume()
    assert sleeper.state is RunState.ALIVE
    sleeper.kill()
    sleeper.kill()  # again changes nothing
    assert sleeper.ended and sleeper.state is RunState.GONE
    sleeper.launch()
    assert sleeper.pid != first
    assert sleeper.state is RunState.ALIVE


def test_a_paused_process_ends_when_it_is_asked(sleeper: Sleeper) -> None:
    sleeper.launch()
    sleeper.pause()
    sleeper.stop()
    assert sleeper.popen.returncode == -15
    sleeper.terminate()
    sleeper.stop()
    assert sleeper.state is RunState.GONE


def test_it_has_one_life_at_a_time(sleeper: Sleeper) -> None:
    sleeper.launch()
    with pytest.raises(EmbeddedServerError, match=rf"^sleeper runs already: sleeper \(pid {sleeper.pid}\)$"):
        sleeper.launch()
    assert sleeper.lives == 1


def test_what_has_ended_or_never_began_cannot_be_paused(sleeper: Sleeper) -> None:
    sleeper.stop()  # harmless
    with pytest.raises(EmbeddedServerError, match="sleeper was never started"):
        sleeper.pause()
    sleeper.launch()
    sleeper.kill()
    sleeper.log_file.write_text("".join(f"line {number}\n" for number in range(20)))
    with pytest.raises(EmbeddedServerError, match=r"(?s)^cannot send SIGCONT: sleeper \(pid \d+\) has ended;") as error:
        sleeper.resume()
    assert str(error.value).endswith("\n".join(f"line {number}" for number in range(5, 20)))
    sleeper.log_file.write_text("")
    assert sleeper.log_tail() == f"; the last lines of {sleeper.log_file}:\nit wrote nothing"


def test_a_process_that_was_never_launched_wrote_nothing(sleeper: Sleeper) -> None:
    assert sleeper.log_tail().endswith("it wrote nothing")


def test_a_process_that_ends_in_the_same_moment_is_asked_in_vain(sleeper: Sleeper) -> None:
    """Between the look at it and the signal it may end, and be waited for."""
    sleeper.launch()
    popen = sleeper.popen
    popen.terminate = sleeper.kill  # type: ignore[method-assign]
    sleeper.terminate()
    assert sleeper.ended


def test_a_signal_while_it_is_being_started_leaves_it_known(sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child exists, and Popen waits until it has become another program."""

    def slow() -> Callable[[], None]:
        return lambda: time.sleep(0.5)

    monkeypatch.setattr(os_process, "die_with_parent", slow)

    def launch() -> None:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        sleeper.launch()

    with interruptible(), pytest.raises(Interrupted):
        launch()
    assert sleeper.state is RunState.ALIVE
