"""Deadlock (claim Z16): two members that keep what they claimed wait for each other forever.

These are not Kafka's members: 0.8.2 gives back its claims before it tries again. These members keep them
(setting `keep.claims.on.conflict`), as ports of the algorithm did. A group's only member leaves, and two
members join. The first of them is connected to a server that lags, so each of its claims takes as long
as the lag. It is still alone and wants every partition. When it is about to claim its last partition,
the second member joins at another server and wants the last half. The second takes the last partition
and finds the rest of its half taken; the first finds the last partition taken. Both keep what they have
and try again for what is missing.

Cures: give back the claims before each new attempt, as 0.8.2 does (`--set cure=release-before-retry`),
or when a watch reports a change of the group (`--set cure=release-on-watch`), or keep nothing (`--set
keep=false`). In the control the same members join, and no server lags.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.lag import Lag, lag_possible
from rebalance_lab.faults.leave import leave
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.shares import attempt_ms, shares_of
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.lab import START_LIMIT_MS
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.stage import LAGGARD
from zkconsumer.lab_settings import NO_CURES, Cures, LabSettings

#: Both members share a process: a join at a given moment cannot wait for an interpreter to start.
COMERS = "comers"

NONE = "none"
CURES = {
    NONE: NO_CURES,
    "release-before-retry": Cures(release_before_retry=True),
    "release-on-watch": Cures(release_on_watch=True),
}


async def deadlock(lab: GroupLab) -> None:
    settings = LabSettings(keep_claims_on_conflict=lab.plan.switch("keep"), cures=CURES[lab.plan.text("cure")])
    prompt = tuple(name for name in lab.servers.names if name != LAGGARD)
    slow = MemberOptions(servers=(LAGGARD,), lab=settings, shares_process=COMERS)
    quick = MemberOptions(servers=prompt, lab=settings, shares_process=COMERS)
    await lab.prepare()
    lab.phase("joining")
    old = await lab.start_member(MemberOptions(servers=prompt, lab=settings))
    await lab.rest("joined")
    lab.phase("replaced")
    await leave(lab, old)
    if lab.plan.control:
        await lab.start_member(slow)
        await lab.rest("one is there")
        await join(lab, quick)
    else:
        await collide(lab, slow, quick)

    await lab.recover()


async def collide(lab: GroupLab, slow: MemberOptions, quick: MemberOptions) -> None:
    """The second member joins when the first has only its last partition left to claim, and takes it."""
    last, lag_ms = lab.plan.number("partitions") - 1, lab.plan.number("lag_ms")
    limit_ms = START_LIMIT_MS + lag_ms * lab.plan.number("partitions")
    lag = Lag(lab, LAGGARD, lag_ms)
    await lag.begin()
    first = await lab.start_member(slow, wait=False)
    await lab.claimed(last - 1, limit_ms)
    async with lab.tasks.scope("the second joins") as scope:
        scope.spawn(join(lab, quick), "join")
        await lab.claimed(last, limit_ms)
        await lag.end()
    await lab.first_rebalance(first)


def demands(plan: Plan) -> None:
    """Raises PlanError unless sessions survive the lag, and the second member wants the last partition and another
    one, which the first has claimed by then. The control needs neither."""
    if plan.control:
        return
    lag_possible(plan)
    partitions, streams = plan.number("partitions"), plan.number("streams")
    second = shares_of(plan, members=2)[1]
    if len(second) < 2 or partitions - 1 not in second:
        default = ", and leave assignor at its default" if plan.text("assignor") else ""
        raise PlanError(
            f"partitions={partitions} with streams={streams}: the second of two members must want the last partition "
            f"and another one, but its share is {sorted(second)}; set partitions to {4 * streams} or more{default}"
        )


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Members deal from two lists, and wait forever unless claims are given back. The second member must start and
    deal within one lag, for which it needs the time of two attempts. The first member's first claim must wait one lag
    for each further claim before it is believed in or given back."""
    if plan.control:
        return usual()
    in_time = Outcome.VIOLATED if 2 * attempt_ms(plan, members=2) < plan.number("lag_ms") else None
    kept: Outcome | None = in_time if plan.switch("keep") else Outcome.CLEAN
    if not plan.switch("keep") or plan.text("cure") != NONE:
        orphan = Outcome.CLEAN if claims_are_soon_made(plan) else None
        return usual(disagreement=in_time, kept_claims=kept, orphan_owner=orphan)
    return usual(
        disagreement=in_time,
        kept_claims=kept,
        hold_and_wait=in_time,
        non_convergence=in_time,
        omission=None,
        orphan_owner=None,
        unowned_window=None,
    )


def claims_are_soon_made(plan: Plan) -> bool:
    """Whether the first member has made all its claims before the first of them counts as an orphan."""
    expiry_ms = plan.number("session_timeout_ms") + 2 * plan.number("tick_ms")
    rebalance_ms = plan.number("rebalance_max_retries") * plan.number("rebalance_backoff_ms")
    return (plan.number("partitions") - 1) * plan.number("lag_ms") <= expiry_ms + rebalance_ms


SCENARIO = Scenario(
    name="deadlock",
    subject=ZK_GROUP,
    summary="two members keep their claims after a conflict, and wait for each other forever",
    claims=("Z16",),
    parameters=(
        *common_parameters(partitions=4, servers=3, members=2, session_timeout_ms=6000, rebalance_max_retries=10),
        Parameter("lag_ms", 3000, "ms", "how long each claim of the first member takes", 1),
        Parameter("keep", True, "", "members keep what they claimed on a conflict"),
        Parameter("cure", NONE, "", "what makes them give up their claims", choices=tuple(CURES)),
    ),
    script=deadlock,
    expects=expects,
    demands=demands,
)
