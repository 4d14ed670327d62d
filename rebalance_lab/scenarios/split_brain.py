"""Split brain (claim Z8, defect S1): members see different views at one moment, and rebalance by them.

There are three ZooKeeper servers. The first member is connected to z1 only, the others to the other two.
z1 begins to lag: it learns late what the others have agreed on, and its sessions stay connected. Two
members join, the second one while the first member still rebalances for the first join. The first member
deals from a list without the second newcomer, the others from a list with it. Their claims collide or
leave a gap until z1 has caught up. In the control the same members join at the same moments, and no
server lags.

The timing: a write through z1 is answered when z1 shows it, one lag later. With the default settings the
first member owns two partitions. From the beginning of its rebalance it gives up one, then the other,
and so reads the list two lags later, as it was one lag before. The second join comes between these
moments. A member that owns more partitions, or whose fetchers stop slowly, reads the list later: adjust
`after_ms`.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.lag import Lag, lag_possible
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberHandle, MemberOptions
from rebalance_lab.subjects.zk_group.shares import retries_end_ms, shares_of
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.stage import LAGGARD

#: The others share a process: a join at a given moment cannot wait for an interpreter to start.
QUICK = "quick"


async def split_brain(lab: GroupLab) -> None:
    prompt = tuple(name for name in lab.servers.names if name != LAGGARD)
    quick = MemberOptions(servers=prompt, shares_process=QUICK)
    late, *_ = await lab.assemble(MemberOptions(servers=(LAGGARD,)), quick)

    lag = Lag(lab, LAGGARD, lab.plan.number("lag_ms"))
    lab.phase("control" if lab.plan.control else "lagging")
    if not lab.plan.control:
        await lag.begin()
    await two_joins(lab, late, quick)
    if not lab.plan.control:
        await lab.sleep_ms(lab.plan.number("lag_ms"))
        await lag.end()

    await lab.recover()


async def two_joins(lab: GroupLab, late: MemberHandle, quick: MemberOptions) -> None:
    """The second member comes a while after `late` has begun to rebalance for the first one. If its server lags,
    `late` learns of the first join when that is long over, and of the second too late."""
    async with lab.tasks.scope("joins") as scope:
        scope.spawn(join(lab, quick), "first join")
        await lab.until(lambda: late.state.running > 0, f"a rebalance of {late.actor}")
        await lab.sleep_ms(lab.plan.number("after_ms"))
        scope.spawn(join(lab, quick), "second join")


def demands(plan: Plan) -> None:
    """Raises PlanError unless sessions survive the lag. The control has none."""
    if not plan.control:
        lag_possible(plan)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Members deal from two lists, and there is a conflict if the first member's share differs between them. An owner
    znode can exist only once, so the registry never shows two owners, whatever members believe. The first member
    learns of a join one lag late and gives up one partition per lag; others may use up their retries before that."""
    if plan.control:
        return usual()
    members = plan.number("members")
    differs = shares_of(plan, members=members + 1)[0] != shares_of(plan, members=members + 2)[0]
    sees_the_past = plan.number("after_ms") >= past_shown_until_ms(plan)
    owned = len(shares_of(plan, members=members)[0])
    released_in_time = (owned + 1) * plan.number("lag_ms") <= retries_end_ms(plan)
    return usual(
        disagreement=Outcome.VIOLATED if differs and sees_the_past else None,
        non_convergence=Outcome.CLEAN if released_in_time else None,
        unowned_window=None,
    )


def past_shown_until_ms(plan: Plan) -> int:
    """How long after the begin of the first member's rebalance the second join must come, at the latest, to be
    missing from the list that the member reads, in ms. It reads the list when its fetchers have stopped and all that
    it owns is given up, one partition per lag; it is shown the list of one lag before. A fifth of a lag allows for
    the time of messages."""
    owned = len(shares_of(plan, members=plan.number("members"))[0])
    lag_ms = plan.number("lag_ms")
    return plan.number("fetcher_stop_ms") + max(owned - 1, 0) * lag_ms + lag_ms // 5


SCENARIO = Scenario(
    name="split-brain",
    subject=ZK_GROUP,
    summary="a lagging ZooKeeper server shows one member an old list of members, so it decides differently",
    claims=("Z8",),
    parameters=(
        *common_parameters(servers=3, members=4, session_timeout_ms=6000, rebalance_max_retries=10),
        Parameter("lag_ms", 1500, "ms", "how late z1 learns what the other servers have agreed on", 1),
        Parameter("after_ms", 2000, "ms", "when the second join begins, counted from the first member's rebalance", 0),
    ),
    script=split_brain,
    expects=expects,
    demands=demands,
)
