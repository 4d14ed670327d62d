"""What a world supplies to a trial, and the faults' handles on it: the same names in every world."""

from __future__ import annotations

from typing import Protocol

from rebalance_lab.kernel import Flag, Kernel
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.trials.rest import RestTracker
from rebalance_lab.world.ports import RecorderPort, ZooKeeper


class TrialError(Exception):
    """The trial could not be carried out: nothing can be said of its claims."""


class ProcessHandle(Protocol):
    """The faults' handle on a member: its process and its session.

    Each method returns the proof that it worked, as text for the history, or raises TrialError:
    also for a member whose options do not allow it (see `MemberOptions`).
    """

    async def pause(self) -> str: ...
    async def resume(self) -> str: ...
    async def kill(self) -> str: ...

    async def expire(self) -> str:
        """End the session at the server while its member lives; done when it was asked for."""
        ...

    def ask_to_leave(self) -> None:
        """Ask for a clean shutdown, as an operator's SIGTERM does; the history tells its end."""
        ...


class Stage(Protocol):
    """What a world supplies. `changed` is raised whenever an event that bears on rest came."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def recorder(self) -> RecorderPort: ...
    @property
    def tracker(self) -> RestTracker: ...
    @property
    def changed(self) -> Flag: ...
    @property
    def zookeeper(self) -> ZooKeeper: ...

    def start_member(self, actor: str, options: MemberOptions) -> ProcessHandle: ...
