"""What a world supplies to a trial, and the faults' handles on it: the same names in every world."""

from __future__ import annotations

from typing import Protocol

from rebalance_lab.history.rest import RestTracker
from rebalance_lab.kernel import Flag, Kernel
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.world.ports import RecorderPort, ZooKeeper

#: The server that can be made to lag: the lowest id, which a fresh ensemble does not elect. The
#: runner's own session keeps away from it.
LAGGARD = "z1"


def prompt_servers(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that never lag, for who must see what is so."""
    return tuple(name for name in names if name != LAGGARD) or names


class TrialError(Exception):
    """The trial could not be carried out: nothing can be said of its claims."""


class GaveUp(TrialError):
    """What the runner waited for did not come in time. The history until then is kept (see `history.views.gave_up`)."""


class ProcessHandle(Protocol):
    """The faults' handle on a member: its process, its connections, its session.

    Each method returns the proof that it worked, as text for the history, or raises TrialError:
    also for a member whose options do not allow it (see `MemberOptions`).
    """

    async def pause(self) -> str: ...
    async def resume(self) -> str: ...
    async def kill(self) -> str: ...

    async def cut(self, *, to_server: bool, to_client: bool) -> str:
        """From now on lose in silence what goes that way; nobody is told."""
        ...

    async def heal(self) -> str | None:
        """End the cut. What was lost is sent again when TCP would send it (`world.tcp`).
        Returns what was lost; None: nothing, so that the cut cannot have had an effect."""
        ...

    async def lose_next_reply(self, created: str = "") -> str:
        """Done when a request was processed and its reply lost, with the connection. `created`: the
        next request that creates a znode in whose path this occurs; else the next of any kind."""
        ...

    async def expire(self) -> str:
        """End the session at the server while its member lives; done when it was asked for."""
        ...

    def ask_to_leave(self) -> None:
        """Ask for a clean shutdown, as an operator's SIGTERM does; the history tells its end."""
        ...


class Servers(Protocol):
    """The faults' handle on the ZooKeeper servers, z1, z2, …. Methods as in ProcessHandle."""

    @property
    def names(self) -> tuple[str, ...]: ...

    async def leader(self) -> str:
        """The server that leads, once there is one; a standalone server leads itself."""
        ...

    async def kill(self, name: str) -> str: ...
    async def start(self, name: str) -> str:
        """Start a server that was killed; done when it serves."""
        ...

    async def pause(self, name: str) -> str: ...
    async def resume(self, name: str) -> str: ...
    async def lag(self, name: str, delay_ms: int) -> str:
        """From now on what the leader commits comes so much later to `name`; 0 ends it."""
        ...

    async def last_zxid(self, name: str) -> int:
        """Of the last transaction that the server has applied."""
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
    @property
    def servers(self) -> Servers: ...

    def start_member(self, actor: str, options: MemberOptions) -> ProcessHandle: ...

    async def start_brokers(self, count: int) -> bool:
        """Start real brokers, if members need them; False where znodes will do."""
        ...
