"""Cut: what goes between a member and ZooKeeper is lost in silence, both ways or one.

Nobody is told: the member notices by its read time-out (two thirds of the session), the server by
the session's expiry. Live it is a proxy that holds back bytes; its counters prove that it bit.
Simulated, messages are dropped, among them the heartbeats of a client in trouble; while all is well
pings are not simulated (`simulated.heartbeat`), so that a cut may drop nothing: the session's end in
the registry shows that a longer one bit.
"""

from __future__ import annotations

from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "cut"


async def cut(
    lab: Lab, member: MemberHandle, duration_ms: int, *, to_server: bool = True, to_client: bool = True
) -> None:
    """Cut `member` off for `duration_ms`, and record what proves it. One way: the other goes on."""
    fault = Injection(
        lab,
        NAME,
        member,
        planned_ms=duration_ms,
        must_outlast_session=duration_ms > latest_end_ms(lab.plan, to_server=to_server),
        to_server=to_server,
        to_client=to_client,
    )
    what = await member.process.cut(to_server=to_server, to_client=to_client)
    await lab.sleep_ms(duration_ms)
    lost = await member.process.heal()
    if lost is not None:
        fault.bit(f"{what}; {lost}")
    fault.ended()
