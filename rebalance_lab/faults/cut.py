"""Cut: messages between a member and ZooKeeper are lost, both ways or one way.

Neither side is notified: the member notices by its read timeout (two thirds of the session), the server
by the session's expiry. In live trials a proxy holds back the bytes, and its counters prove that it did.
In the simulator messages are dropped, among them the pings of a client in trouble. Pings of a healthy
client are not simulated (`zk.heartbeat`), so a cut may drop nothing; then the session's end in
the registry proves a longer cut.
"""

from __future__ import annotations

from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.history import intervals
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.kernel import Flag
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

CUT = FaultKind(
    name=intervals.CUT,
    noun="cut",
    suffers="is cut off from ZooKeeper",
    many="are cut off",
    band="cut off",
    begins="cuts off",
    ends="heals",
    alone="Networks lose messages without notice.",
)


async def cut(
    lab: AnyLab, node: AnyNode, duration: int | Flag, *, to_server: bool = True, to_client: bool = True
) -> None:
    """Cut off `node` for `duration` ms, or until the flag is raised, when its session must have ended; record the
    proof. If one way is cut, the other keeps working."""
    outlasts = isinstance(duration, Flag) or duration > latest_end_ms(lab.plan, to_server=to_server)
    fault = Injection(
        lab,
        CUT,
        node,
        planned=duration,
        must_outlast_session=outlasts,
        to_server=to_server,
        to_client=to_client,
    )
    what = await node.process.cut(to_server=to_server, to_client=to_client)
    await lab.lasts(duration)
    lost = await node.process.heal()
    if lost is not None:
        fault.bit(f"{what}; {lost}")
    fault.ended()
