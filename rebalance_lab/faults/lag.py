"""Lag: one ZooKeeper server learns late what the others have agreed on.

Its sessions stay connected, and read old data. The proof is that after a write the server was seen
behind the zxid of that write.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.trials.lab import Injection
from rebalance_lab.trials.plan import Plan, PlanError

LAG = FaultKind(
    name="lag",
    noun="lag",
    suffers="lags behind the other ZooKeeper servers",
    many="lag",
    band="lags",
    begins="holds back",
    ends="catches up:",
    alone="ZooKeeper promises that all servers see changes in the same order, not at the same time.",
    spares_connections=True,
)


def lag_possible(plan: Plan) -> None:
    """Raise PlanError unless a server of the plan can lag by `lag_ms` and keep its sessions connected.

    A client drops a connection on which it has heard nothing for 2/3 of its session timeout
    (ZooKeeper 3.4.6, `ClientCnxn.SendThread.onConnected`), and a write through the server that lags is
    answered one lag later.
    """
    lag_ms, session_ms = plan.number("lag_ms"), plan.number("session_timeout_ms")
    if plan.number("servers") == 1:
        raise PlanError(f"servers=1: {plan.scenario} makes one server lag behind the others; set servers to 3 or 5")
    if 3 * lag_ms >= 2 * session_ms:
        raise PlanError(
            f"lag_ms={lag_ms}: with session_timeout_ms={session_ms} a client drops its connection after "
            f"{2 * session_ms // 3} ms without an answer; set lag_ms below that, "
            f"or session_timeout_ms above {3 * lag_ms // 2}"
        )


class Lag:
    """A server that lags, from `begin` to `end`."""

    def __init__(self, lab: GroupLab, server: str, delay_ms: int) -> None:
        self._lab = lab
        self._server = server
        self._delay_ms = delay_ms
        self._fault: Injection | None = None

    async def begin(self) -> None:
        """Let the server lag from now on. Records the proof."""
        lab = self._lab
        self._fault = Injection(lab, LAG, self._server, planned=self._delay_ms)
        how = await lab.servers.lag(self._server, self._delay_ms)
        written = await lab.cluster.write_probe()
        shows = await lab.servers.last_zxid(self._server)
        if shows < written:
            self._fault.bit(f"{how}; it shows zxid {shows:#x} while {written:#x} is committed")

    async def end(self) -> None:
        """Let the server catch up."""
        assert self._fault is not None, "begin first"
        await self._lab.servers.lag(self._server, 0)
        self._fault.ended()
