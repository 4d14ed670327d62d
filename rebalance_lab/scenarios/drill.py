"""The drill: everything that can happen to a member happens to two members, one thing after another.

A group settles. Two members are paused for less than half their session, then for longer than it lasts.
The same two leave cleanly, and two others are killed. Each that is gone gets a successor. After each
step the group comes to rest, and every partition must have one owner. With `--members mixed`, members
are ours and real ones in turn, so each thing happens to one of each kind. In the control nothing
happens.

Sessions are as long as Kafka's default, so that a busy host loses none of them.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.silence import pause_outlives_session
from rebalance_lab.history.rebalances import ChangeKind
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, usual

#: A short pause is the session divided by this: a pause of up to a third never ends the session (`zombie`).
SHORT = 4

#: How many members go: two leave, two are killed.
GO = 4


async def drill(lab: GroupLab) -> None:
    members = lab.plan.number("members")
    await lab.prepare()
    for number in range(members):
        lab.phase(f"member {number + 1} joins", change=ChangeKind.JOIN, members=number)
        await join(lab)
        await lab.rest(f"member {number + 1} joined")
    if lab.plan.control:
        lab.phase("control")
        await lab.sleep_ms(lab.plan.number("pause_ms"))
    else:
        await pauses(lab)
        await goings(lab, members)
    await lab.rest("recovered")
    await lab.close()


async def pauses(lab: GroupLab) -> None:
    """Two members are paused, for less than the session and then for longer."""
    short_ms = lab.plan.number("session_timeout_ms") // SHORT
    for duration_ms in (short_ms, lab.plan.number("pause_ms")):
        for member in lab.members[:2]:
            lab.phase(f"{member.actor} pauses for {duration_ms} ms")
            await pause(lab, member, duration_ms)
            await lab.rest(f"{member.actor} is back")


async def goings(lab: GroupLab, members: int) -> None:
    """Two members leave and two are killed; each gets a successor."""
    first, second, *others = lab.members
    for member, go, change in (
        (first, leave, ChangeKind.LEAVE),
        (second, leave, ChangeKind.LEAVE),
        *((other, kill, ChangeKind.CRASH) for other in others[:2]),
    ):
        lab.phase(f"{member.actor} goes: {change}", change=change, members=members)
        await go(lab, member)
        await lab.rest(f"{member.actor} is gone")
        lab.phase(f"the successor of {member.actor} joins", change=ChangeKind.JOIN, members=members - 1)
        await join(lab)
        await lab.rest(f"the successor of {member.actor} joined")


def demands(plan: Plan) -> None:
    """Raises PlanError unless two members can leave and two others can be killed. The control needs none."""
    if not plan.control and plan.number("members") < GO:
        raise PlanError(f"members={plan.number('members')}: two leave and two are killed; set members to {GO} or more")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The long pauses make zombies; nothing else goes wrong, and nothing stays wrong."""
    pause_ms = plan.number("pause_ms")
    belief = Outcome.VIOLATED if pause_outlives_session(plan, pause_ms, reported=False) else None
    work = Outcome.VIOLATED if pause_outlives_session(plan, pause_ms) else None
    if plan.control:
        belief = work = Outcome.CLEAN
    return usual(
        belief_overlap=belief,
        effect_overlap=work,
        zombie_overlap=work,
        disagreement=None if belief is None else Outcome.CLEAN,  # as in `zombie`
    )


SCENARIO = Scenario(
    name="drill",
    subject=ZK_GROUP,
    summary="members are paused, leave and are killed, one after another, two of each; for mixed groups",
    parameters=(
        *common_parameters(members=4, session_timeout_ms=6000, rebalance_max_retries=20),
        Parameter("pause_ms", 10_000, "ms", "how long the long pauses are", 1),
    ),
    script=drill,
    expects=expects,
    demands=demands,
)
