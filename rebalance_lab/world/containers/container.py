"""A `ManagedProcess` that is a container, whatever runs in it."""

from __future__ import annotations

import signal
from abc import abstractmethod
from typing import Any, Literal

from rebalance_lab.world.containers.engine import ContainersError, engine_errors
from rebalance_lab.world.process.managed import ManagedProcess
from rebalance_lab.world.process.states import RunState

#: What was killed is gone in milliseconds, unless the machine is overloaded.
KILL_TIMEOUT_S = 60

#: Each takes docker up to a second (runc, fs.FreezerGroup.Set).
PAUSE_ATTEMPTS = 10

LOG_TAIL_LINES = 30
_ERROR_TAIL_LINES = 15

_STATES = {"running": RunState.ALIVE, "created": RunState.ALIVE, "paused": RunState.STOPPED}


class AnyContainer(ManagedProcess):
    """Methods block until docker has done it, and raise ContainersError. `name` is for messages."""

    killed = 128 + signal.SIGKILL

    @property
    @abstractmethod
    def container(self) -> Any:
        """Docker's handle of it."""

    @property
    def state(self) -> RunState:
        """Of its first process, as the engine says."""
        with engine_errors(f"cannot look at {self.name}"):
            self.container.reload()
        return _STATES.get(self.container.status, RunState.GONE)

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128 and the signal's number when one has ended it."""
        return int(self.container.attrs["State"]["ExitCode"]) if self.state is RunState.GONE else None

    def describe(self) -> str:
        return f"{self.name} (container {self.container.name})"

    def proof(self) -> str:
        code = self.exit_code
        shown = f"is {self.container.status}" if code is None else f"ended with {code}"
        return f"docker: {self.container.name} {shown}"

    def log(self, lines: int | Literal["all"] = LOG_TAIL_LINES) -> str:
        """The end of what it wrote to stdout and stderr, or all of it."""
        with engine_errors(f"cannot read the log of {self.name}"):
            return str(self.container.logs(tail=lines).decode("utf-8", "replace"))

    def log_tail(self) -> str:
        return f"; the last lines of container {self.container.name}:\n{self.log(_ERROR_TAIL_LINES)}"

    def launch(self) -> None:
        """Start it again, with its data and its addresses; whoever makes one starts it the first time."""
        with engine_errors(f"cannot start {self.name}"):
            self.container.start()

    def kill(self) -> None:
        with engine_errors(f"cannot kill {self.name}"):
            self.container.kill()
            self.container.wait(timeout=KILL_TIMEOUT_S)

    def signal(self, name: str) -> None:
        with engine_errors(f"cannot send {name} to {self.name}"):
            self.container.kill(name)

    def terminate(self) -> None:
        self.signal("SIGTERM")

    def wait(self, timeout_s: float) -> None:
        with engine_errors(f"{self.name} did not end within {timeout_s:g} s"):
            self.container.wait(timeout=timeout_s)

    def stop(self) -> None:
        """SIGTERM; done when it has ended, by force after ten seconds."""
        with engine_errors(f"cannot stop {self.name}"):
            self.container.stop()

    def pause(self) -> None:
        """The kernel cannot freeze a process while it waits for a disk. Docker gives that up, and it is asked again."""
        for attempt in range(1, PAUSE_ATTEMPTS + 1):
            try:
                with engine_errors(f"cannot pause {self.name}"):
                    self.container.pause()
            except ContainersError as error:
                if attempt == PAUSE_ATTEMPTS or "unable to freeze" not in str(error):
                    raise
            else:
                return

    def resume(self) -> None:
        with engine_errors(f"cannot resume {self.name}"):
            self.container.unpause()
