"""What a world supplies to a trial, and the faults' handles on it: the same names in every world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rebalance_lab.history.events import Event
from rebalance_lab.history.recorder import Sink
from rebalance_lab.history.rest import StateTracker
from rebalance_lab.kernel import Flag, Kernel
from rebalance_lab.kernel.errors import LabError
from rebalance_lab.roles.spec import NodeSpec
from rebalance_lab.trials.plan import Plan
from rebalance_lab.world.ports import RecorderPort, ZooKeeper
from rebalance_lab.world.power_loss import PowerLoss

#: The server that can be made to lag: the lowest id, which a fresh ensemble does not elect. The
#: runner's own session keeps away from it.
LAGGARD = "z1"

#: The runner's own session: the longest a server of this tick grants.
RUNNER_SESSION_TICKS = 20


def prompt_servers(names: tuple[str, ...]) -> tuple[str, ...]:
    """The servers that never lag, for sessions that must see the current state."""
    return tuple(name for name in names if name != LAGGARD) or names


class TrialError(LabError):
    """The trial could not be carried out, so it says nothing about its claims."""


class GaveUp(TrialError):
    """Something that the runner waited for did not come in time. The history until then is kept (see
    `history.views.gave_up`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions(ABC):
    """How a node is started. Each subject adds what its nodes need.

    - `servers`: names of the ZooKeeper servers in its connect string; empty: all of them.
    - `proxied`: whether its connections can be cut (in live trials, each goes through a proxy of its own).
    - `shares_process`: in live trials, nodes with the same name here share one OS process. Such a process cannot be
      paused or killed for one of them.
    """

    servers: tuple[str, ...] = ()
    proxied: bool = False
    shares_process: str | None = None

    @abstractmethod
    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> NodeSpec:
        """The start data of the plan's node `actor`. `events`: the path of its event file; "" in the simulator."""


class ProcessHandle(Protocol):
    """The faults' handle on a node: its process, its connections, its session.

    Each method but `ask_to_leave` returns the proof that it worked, for the history, or raises TrialError, also if the
    node's options do not allow it (see `NodeOptions`).
    """

    async def pause(self) -> str: ...
    async def resume(self) -> str: ...
    async def kill(self) -> str: ...

    async def start_again(self) -> str:
        """Start the node's process after it was killed, with the same start data. It goes on counting its events."""
        ...

    async def lose_power(self, *, everything: bool = False) -> PowerLoss:
        """Take from the files of a node that was killed what was not synced, from some point on that the trial's seed
        draws, or all of it (`everything`). Returns what went."""
        ...

    async def cut(self, *, to_server: bool, to_client: bool) -> str:
        """Drop all messages in these directions from now on. Neither side is notified."""
        ...

    async def heal(self) -> str | None:
        """End the cut. Lost messages are sent again when TCP would send them (`world.tcp`). Returns what was lost;
        None if nothing was, so that the cut cannot have had an effect."""
        ...

    async def lose_next_reply(self, created: str = "") -> str:
        """Wait until a request was processed and its reply lost, with the connection. `created`: the next request
        that creates a znode whose path contains this, alone or as the first of a multi; by default the next request
        of any kind. If its session ends first, that happens in the next one."""
        ...

    async def expire(self) -> str:
        """End the session at the server while its member is alive. Returns when that was requested."""
        ...

    def ask_to_leave(self) -> None:
        """Ask for a clean shutdown, as an operator's SIGTERM does. The history shows when it has ended."""
        ...


class Servers(Protocol):
    """The faults' handle on the ZooKeeper servers, z1, z2, …. Methods as in ProcessHandle."""

    @property
    def names(self) -> tuple[str, ...]: ...

    async def leader(self) -> str:
        """The leading server, once there is one. A standalone server leads itself."""
        ...

    async def kill(self, name: str) -> str: ...
    async def start(self, name: str) -> str:
        """Start a server that was killed, and wait until it serves."""
        ...

    async def pause(self, name: str) -> str: ...
    async def resume(self, name: str) -> str: ...
    async def lag(self, name: str, delay_ms: int) -> str:
        """From now on delay what the leader commits for `name` by so much; 0 ends the lag."""
        ...

    async def last_zxid(self, name: str) -> int:
        """The zxid of the last transaction that the server has applied."""
        ...


class Links(Protocol):
    """The faults' handle on the connections between nodes."""

    async def set(
        self, one: str, other: str, *, silent: tuple[bool, bool] = (False, False), slow_ms: tuple[int, int] = (0, 0)
    ) -> str:
        """From now what the node `one` sends to the node `other`, and the other way, is lost without notice, or takes
        so much longer; what was lost is sent again when TCP would send it, as soon as its way is open. Returns what
        became of messages since the last call, "" if nothing. Raises TrialError."""
        ...


class Stage(Protocol):
    """What a world supplies for the trial of a plan. `changed` is raised whenever an event comes that matters for
    rest."""

    @property
    def plan(self) -> Plan: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def recorder(self) -> RecorderPort: ...
    @property
    def tracker(self) -> StateTracker[Any]: ...
    @property
    def changed(self) -> Flag: ...
    @property
    def links(self) -> Links: ...
    @property
    def zookeeper(self) -> ZooKeeper: ...
    @property
    def servers(self) -> Servers: ...

    def start(self, actor: str, options: NodeOptions) -> ProcessHandle:
        """Start a node, in a process of its own or in a shared one. Raises TrialError."""
        ...

    async def started_one_of_several(self) -> None:
        """Await it between starts. A start may block the runner for seconds, as of a container on a busy machine, and
        the runner's own session expires if all of them together take longer than its timeout: its pings go now."""
        ...

    def port(self, actor: str) -> int:
        """The port at which a node is to listen in each of its lives, so that clients of others find it again; 0 where
        any port does."""
        ...

    def folders(self, actor: str) -> tuple[str, ...]:
        """The names of the folders that a node keeps, in order, whether it runs or not."""
        ...

    def poll(self) -> None:
        """Read what has been written by now, so that the tracker knows it. In the simulator it knows at once."""
        ...

    async def start_brokers(self, count: int) -> bool:
        """Start real brokers if members need them. Returns False if znodes are enough."""
        ...


class ObservedSink:
    """A sink that passes on every event as soon as it is written."""

    def __init__(self, sink: Sink, observe: Callable[[Event], object]) -> None:
        self._sink = sink
        self._observe = observe

    def write(self, event: Event) -> None:
        self._sink.write(event)
        self._observe(event)


def tracked(sink: Sink, tracker: StateTracker[Any], changed: Flag) -> ObservedSink:
    """A sink whose events a tracker sees at once, so that a runner never judges rest without its own faults."""

    def observe(event: Event) -> None:
        if tracker.feed(event):
            changed.raise_()

    return ObservedSink(sink, observe)
