"""Faults of ZooKeeper's servers: one is killed and started again, one is paused, or all are restarted in
turn.

Sessions survive as long as a majority is up, and move to another server. The proof is that the process
was seen dead, or stopped.

If there is only one server, a session may end with its restart. A connection that comes in the first moments of its
start hangs: the server (3.9.5) fails before it closes it. The client gives up after its connect timeout, which is that
of the session then.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

OUTAGE = FaultKind(
    name="server-kill",
    noun="outage",
    suffers="is down",
    many="are down",
    band="down",
    begins="kills",
    ends="restarts",
    alone="Servers die.",
)
STANDSTILL = FaultKind(
    name="server-pause",
    noun="standstill",
    suffers="stands still",
    many="stand still",
    band="stands still",
    begins="stops",
    ends="wakes",
    alone="Servers stop now and then.",
)


async def kill_server(lab: AnyLab, name: str, down_ms: int, spares: AnyNode | None = None) -> None:
    """Kill a server, and start it again after `down_ms`. Returns when it serves and there is a leader. `spares`: the
    node whose session must survive, or the trial shows nothing."""
    must = {} if spares is None else {"must_survive": spares.state.session}
    fault = Injection(lab, OUTAGE, name, planned=down_ms, leads=await lab.servers.leader() == name, **must)
    fault.bit(await lab.servers.kill(name))
    await lab.sleep_ms(down_ms)
    await lab.servers.start(name)
    await lab.servers.leader()
    fault.ended()


async def pause_server(lab: AnyLab, name: str, duration_ms: int) -> None:
    """Pause a server for `duration_ms`. Returns when there is a leader again."""
    fault = Injection(lab, STANDSTILL, name, planned=duration_ms, leads=await lab.servers.leader() == name)
    fault.bit(await lab.servers.pause(name))
    await lab.sleep_ms(duration_ms)
    await lab.servers.resume(name)
    await lab.servers.leader()
    fault.ended()


async def restart_servers(lab: AnyLab, down_ms: int, spares: AnyNode | None = None) -> None:
    """Kill and start every server, one after another, as an upgrade does. `spares`: as in `kill_server`."""
    for name in lab.servers.names:
        await kill_server(lab, name, down_ms, spares)
