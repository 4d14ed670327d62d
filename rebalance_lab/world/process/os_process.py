"""A `ManagedProcess` that is a child process of this one."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rebalance_lab.kernel.interruption import undisturbed
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.process.managed import ManagedProcess
from rebalance_lab.world.process.states import (
    ProcessStateTimeout,
    RunState,
    die_with_parent,
    run_state,
    wait_for_state,
)

_SIGNAL_TIMEOUT_S = 5.0
_LOG_TAIL_LINES = 15


class OsProcess(ManagedProcess):
    """It dies with the process that launched it, even by kill -9; see `die_with_parent` for what that means for
    threads. `terminate`, `stop` and `kill` do nothing if it has ended. `log_file`: of its latest life."""

    killed = -signal.SIGKILL

    #: How long `stop` waits after SIGTERM.
    stop_timeout_s: ClassVar[float] = 5.0

    def __init__(self, name: str, log_file: Path) -> None:
        self.name = name
        self.log_file = log_file
        self._popen: subprocess.Popen[bytes] | None = None

    def _spawn(
        self,
        command: Sequence[str],
        output: Path,
        folder: Path | None = None,
        *,
        append: bool = False,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """Run `command` in `folder`; its stdout and stderr go to `output`, after what an earlier life wrote there if
        `append`. `stdin`: as for `subprocess.Popen`. Raises EmbeddedServerError if the process already runs."""
        if self.state is not RunState.GONE:
            raise EmbeddedServerError(f"{self.name} runs already: {self.describe()}")
        self.kill()  # one that has ended is waited for, so that no zombie stays
        # A process must not be started without being known.
        with output.open("ab" if append else "wb") as written, undisturbed():
            self._popen = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=written,
                stderr=subprocess.STDOUT,
                cwd=folder,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 (one C call, looked up before the fork)
                process_group=0,  # Ctrl-C in a terminal reaches this process only, which ends its children in order
            )

    # -- facts ------------------------------------------------------------------------------

    @property
    def popen(self) -> subprocess.Popen[bytes]:
        """Of its latest life. Raises EmbeddedServerError if it was never launched."""
        if self._popen is None:
            raise EmbeddedServerError(f"{self.name} was never started")
        return self._popen

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def state(self) -> RunState:
        return RunState.GONE if self.ended else run_state(self.pid)

    @property
    def ended(self) -> bool:
        """Whether it does not run: it has ended, or was never launched."""
        return self._popen is None or self._popen.poll() is not None

    @property
    def exit_code(self) -> int | None:
        return self.popen.poll()

    def describe(self) -> str:
        return f"{self.name} (pid {self.pid})"

    def proof(self) -> str:
        code = self.exit_code
        if code is None:
            return f"/proc/{self.pid}/stat: {self.state.value}"
        return f"waitpid({self.pid}): ended " + (f"by signal {-code}" if code < 0 else f"with {code}")

    def tail(self) -> str:
        """The last lines of its log."""
        try:
            text = self.log_file.read_text(errors="replace")
        except FileNotFoundError:  # it was never launched
            text = ""
        return last_lines(text)

    def log_tail(self) -> str:
        return f"; the last lines of {self.log_file}:\n{self.tail()}"

    # -- faults -----------------------------------------------------------------------------

    def pause(self) -> None:
        """SIGSTOP; returns when the process is seen stopped."""
        self._signal(signal.SIGSTOP, RunState.STOPPED)

    def resume(self) -> None:
        """SIGCONT; returns when the process is seen running."""
        self._signal(signal.SIGCONT, RunState.ALIVE)

    def _signal(self, number: signal.Signals, wanted: RunState) -> None:
        if self.ended:
            raise EmbeddedServerError(f"cannot send {number.name}: {self.describe()} has ended{self.log_tail()}")
        self.popen.send_signal(number)
        try:
            wait_for_state(self.pid, wanted, _SIGNAL_TIMEOUT_S)
        except ProcessStateTimeout as error:
            raise EmbeddedServerError(f"{number.name} had no effect on {self.describe()}: {error}") from error

    # -- end --------------------------------------------------------------------------------

    def terminate(self) -> None:
        if not self.ended:
            self.popen.terminate()

    def stop(self) -> None:
        self.terminate()
        if self._popen is not None:
            self._popen.send_signal(signal.SIGCONT)  # a paused process would not see the SIGTERM
            try:
                self._popen.wait(self.stop_timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()

    def wait(self, timeout_s: float) -> None:
        try:
            self.popen.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            raise EmbeddedServerError(f"{self.describe()} did not end within {timeout_s:g} s") from late

    def kill(self) -> None:
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()


def last_lines(text: str) -> str:
    """The end of a log, for a message."""
    return "\n".join(text.strip().splitlines()[-_LOG_TAIL_LINES:]) or "it wrote nothing"
