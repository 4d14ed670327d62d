"""The zombie (claim Z10): a member paused past its session goes on working beside its successor.

Three members share a topic. The first is paused for longer than its ZooKeeper session lasts. The server
ends the session, the member's owner znodes are deleted, and the others take its partitions. Then the
member wakes, and works on until it learns that its session has expired: two owners. The control waits as
long without the pause.

A pause of up to a third of the session (`--set pause_ms=500`) does no harm. A longer one may: the member
may then give up its connection, and with one server it waits for 1 to 2 s before the next, as ClientCnxn
does. The session may be over by then. `faults.silence` derives from which length on there is always a
zombie.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.silence import pause_keeps_session, pause_outlives_session
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def zombie(lab: GroupLab) -> None:
    pause_ms = lab.plan.number("pause_ms")
    first, *_ = await lab.assemble()

    lab.phase("control" if lab.plan.control else "paused")
    if lab.plan.control:
        await lab.sleep_ms(pause_ms)
    else:
        await pause(lab, first, pause_ms)

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """No overlap if the pause cannot end the session, or if there is no other member. Overlaps if the others have
    taken over before the member can learn of its expiry. With one server that is if pause_ms + 1 s > session + tick +
    two attempts to rebalance. Overlaps of work are certain with one server only, as in an ensemble the member may
    learn of its expiry at once. In between both may happen, and the member may also register anew while the others
    still handle its session's end, and so deal from another list. The registry is never wrong.

    Whether a lone member's partitions count as unowned during its pause depends on the pause alone.
    """
    pause_ms = plan.number("pause_ms")
    belief: Outcome | None = None
    work: Outcome | None = None
    if plan.control or plan.number("members") == 1 or pause_keeps_session(plan, pause_ms):
        belief = work = Outcome.CLEAN
    elif pause_outlives_session(plan, pause_ms, reported=False):
        belief = Outcome.VIOLATED
        work = Outcome.VIOLATED if pause_outlives_session(plan, pause_ms) else None
    unowned = None if plan.number("members") == 1 else Outcome.CLEAN
    return usual(
        belief_overlap=belief,
        effect_overlap=work,
        zombie_overlap=work,
        disagreement=None if belief is None else Outcome.CLEAN,
        unowned_window=unowned,
    )


SCENARIO = Scenario(
    name="zombie",
    subject=ZK_GROUP,
    summary="a member is paused for longer than its session, wakes, and works beside its successor",
    claims=("Z10",),
    parameters=(
        *common_parameters(),
        Parameter("pause_ms", 5000, "ms", "how long the first member is paused", 1),
    ),
    script=zombie,
    expects=expects,
)
