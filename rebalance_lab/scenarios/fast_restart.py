"""The fast restart (defects F1 and F9): a consumer is killed and started again at once, and fails.

The only member is killed. Its session stays, and with it its id and its owner znodes. The new consumer
counts this ghost as a member, finds its own share owned, and gives up before the session ends: its last
attempt starts at (retries-1) x back-off. The process stays registered, without streams. When the ghost's
znodes are deleted at last, its watch fires, and it claims partitions for an application that reads
nothing. Cures: a larger budget (`--set rebalance_max_retries=20`), or a clean stop (`--set clean=true`).
In the control no consumer is restarted.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberHandle
from rebalance_lab.subjects.zk_group.shares import attempt_ms, retries_end_ms, shares_of
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def fast_restart(lab: GroupLab) -> None:
    await lab.prepare()
    lab.phase("joining")
    old = await lab.start_member()
    await lab.rest("joined")

    lab.phase("control" if lab.plan.control else "restarted")
    if lab.plan.control:
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    else:
        await _restarted(lab, old)

    await lab.recover()


async def _restarted(lab: GroupLab, old: MemberHandle) -> None:
    """After a clean stop the successor is another member; after a kill it is the same process again, except among real
    consumers, which have no second life under their names."""
    if lab.plan.switch("clean"):
        await leave(lab, old)
        await join(lab)
    elif lab.plan.has_real_nodes:
        await kill(lab, old)
        await join(lab)
    else:
        await kill(lab, old)
        await restart(lab, old)
        await lab.first_rebalance(old)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The new consumer gives up, unless its last attempt comes after the ghost's session has ended. The session ends
    one timeout after the ghost's last ping, which may be a third of a timeout old, and up to two ticks later. The new
    consumer surely gives up if its start and all its attempts take less than what is left of the session, and if it
    wants some of the ghost's partitions. Outside the simulator an interpreter must start first. On a busy machine
    that may take until the ghost has gone; then nothing is owned."""
    if plan.control or plan.switch("clean"):
        return usual()
    session_ms, tick_ms = plan.number("session_timeout_ms"), plan.number("tick_ms")
    last_attempt_ms = retries_end_ms(plan)
    if last_attempt_ms > session_ms + 2 * tick_ms:
        return usual()
    attempts_ms = plan.number("rebalance_max_retries") * (attempt_ms(plan, members=2) + plan.number("fetcher_stop_ms"))
    until_ms = plan.number("start_max_us") // 1000 + last_attempt_ms + attempts_ms
    wants = bool(shares_of(plan, members=2)[1])
    sure = plan.world == "simulated" and wants and 3 * until_ms < 2 * session_ms
    return usual(non_convergence=Outcome.VIOLATED if sure else None)


SCENARIO = Scenario(
    name="fast-restart",
    subject=ZK_GROUP,
    summary="a killed consumer is restarted at once, finds the znodes of its old session, and gives up",
    parameters=(
        *common_parameters(members=1, session_timeout_ms=5000),
        Parameter("clean", False, "", "stop the old consumer cleanly instead of killing it"),
    ),
    script=fast_restart,
    expects=expects,
)
