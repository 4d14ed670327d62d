"""The drill: everything that happens to members, one thing after another, to two of each.

A group settles. Two members are paused for less than half their session, then for longer than it lasts;
the same two leave cleanly, two others are killed; each that went has a successor. After each the group
rests, and everything must be owned once. With `--members mixed` members are ours and real ones in turn,
so that each thing happens to one of either kind, beside the other. In the control nothing happens.

Sessions are as long as Kafka's default, so that a busy host loses none of them.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.silence import pause_outlives_session
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.plan import Parameter, Plan, PlanError, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual

#: The session by this is a short pause: one of up to a third never ends it (`zombie`).
SHORT = 4

#: How many members go: two leave, two are killed.
GO = 4


async def drill(lab: Lab) -> None:
    members = lab.plan.number("members")
    await lab.prepare()
    for number in range(members):
        lab.phase(f"member {number + 1} joins", change="join", members=number)
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


async def pauses(lab: Lab) -> None:
    """Two members pause, for less than the session and for more."""
    short_ms = lab.plan.number("session_timeout_ms") // SHORT
    for duration_ms in (short_ms, lab.plan.number("pause_ms")):
        for member in lab.members[:2]:
            lab.phase(f"{member.actor} pauses for {duration_ms} ms")
            await pause(lab, member, duration_ms)
            await lab.rest(f"{member.actor} is back")


async def goings(lab: Lab, members: int) -> None:
    """Two members leave and two are killed; each has a successor."""
    first, second, *others = lab.members
    for member, go, change in (
        (first, leave, "leave"),
        (second, leave, "leave"),
        *((other, kill, "crash") for other in others[:2]),
    ):
        lab.phase(f"{member.actor} goes: {change}", change=change, members=members)
        await go(lab, member)
        await lab.rest(f"{member.actor} is gone")
        lab.phase(f"the successor of {member.actor} joins", change="join", members=members - 1)
        await join(lab)
        await lab.rest(f"the successor of {member.actor} joined")


def demands(plan: Plan) -> None:
    """Two members that leave, and two that are killed. The control needs none."""
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


SCENARIO = register(
    Scenario(
        name="drill",
        summary="members are paused, leave, are killed, two of each, one after another; with real ones between",
        claims=(),
        parameters=(
            *common_parameters(members=4, session_timeout_ms=6000, rebalance_max_retries=20),
            Parameter("pause_ms", 10_000, "ms", "how long the long pauses last", 1),
        ),
        script=drill,
        expects=expects,
        demands=demands,
    )
)
