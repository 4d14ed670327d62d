"""A process that the lab starts and ends: an OS process (`process.os_process`) or a container
(`containers.container`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from rebalance_lab.world.process.states import RunState


class ManagedProcess(ABC):
    """A process that can be started, paused, resumed, killed, asked to end, and started again. It keeps its name and
    its data through all of them. Methods block until they have taken effect unless they say otherwise. They raise
    EmbeddedServerError (in containers its subclass ContainersError)."""

    name: str

    #: The exit code of what SIGKILL has ended.
    killed: ClassVar[int]

    # -- facts ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def state(self) -> RunState:
        """What the operating system, or docker, says of it."""

    @property
    @abstractmethod
    def exit_code(self) -> int | None:
        """None while it runs."""

    @abstractmethod
    def describe(self) -> str:
        """What it is, for messages."""

    @abstractmethod
    def proof(self) -> str:
        """Its state and who says so: what a fault records of its effect."""

    @abstractmethod
    def log_tail(self) -> str:
        """The last lines of its log, for the end of an error's message."""

    # -- faults -----------------------------------------------------------------------------

    @abstractmethod
    def launch(self) -> None:
        """Start it, also again after its end, and do not wait until it serves."""

    @abstractmethod
    def pause(self) -> None:
        """Nothing of it runs until `resume`; its connections stay open."""

    @abstractmethod
    def resume(self) -> None:
        """Undo `pause`."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL; it is gone on return."""

    # -- end --------------------------------------------------------------------------------

    @abstractmethod
    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and do not wait. One that is paused does so after `resume`."""

    @abstractmethod
    def stop(self) -> None:
        """Ask it to end, and kill it if it does not in a few seconds; it is gone on return."""

    @abstractmethod
    def wait(self, timeout_s: float) -> None:
        """Done when it has ended. Raises EmbeddedServerError when the time is over."""


class CommandedProcess(ManagedProcess):
    """One that reads lines from its standard input, and keeps its output in a file."""

    @abstractmethod
    def write_line(self, line: bytes) -> None:
        """Write to its standard input. Raises OSError if it has ended."""

    @abstractmethod
    def end(self) -> None:
        """Kill it if it still runs, and give back all that it took; its output stays."""
