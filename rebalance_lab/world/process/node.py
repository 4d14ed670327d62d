"""A process, wherever it runs: an OS process (`process.os_process`) or a container (`containers.container`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rebalance_lab.world.process.states import RunState


class Node(ABC):
    """A process that can be started, paused, resumed, killed, asked to end, and started again. It keeps its name and
    its data through all of them. Methods block until they have taken effect unless they say otherwise. They raise
    EmbeddedServerError (in containers its subclass ContainersError)."""

    name: str

    @property
    @abstractmethod
    def state(self) -> RunState:
        """What the operating system, or docker, says of it."""

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

    @abstractmethod
    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and do not wait."""

    @abstractmethod
    def stop(self) -> None:
        """Ask it to end, and kill it if it does not in a few seconds; it is gone on return."""

    @abstractmethod
    def log_tail(self) -> str:
        """The last lines of its log, for the end of an error's message."""
