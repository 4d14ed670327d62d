"""The uncontrolled outcome (claim Z9): no member knows whether the others succeeded.

One member owns everything and takes long to stop its fetchers (a blocked read, a slow commit: defect
F2). A second one joins. It finds the partitions of its share owned, waits, tries again, and gives up if
its last attempt comes before the first member has let go. The first then gives up what is not its share,
and believes that all is well. Neither of them learns what happened to the other, and the partitions stay
without an owner. In the control the first member stops at once.

The outcome depends on the time of the stop and on the budget of retries. By default the budget is far
too small: the last of four attempts begins 1.5 s after the first, and the stop takes 4 s. With Kafka's
own back-off the last attempt begins after 6 s, so only a longer stop outlasts it:

    --set rebalance_backoff_ms=2000 --set session_timeout_ms=6000                          all is well
    --set rebalance_backoff_ms=2000 --set session_timeout_ms=6000 --set slow_stop_ms=6500  it is not

The cure is a larger budget (`--set rebalance_max_retries=20`).
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.shares import attempt_ms, retries_end_ms, shares_of
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual

#: The longest time of one attempt: 22 requests of 4 ms at the default latencies. It allows for live trials on a
#: machine that is not idle.
ATTEMPT_MS, LIVE_ATTEMPT_MS = 100, 200


async def uncontrolled(lab: GroupLab) -> None:
    stop_ms = 0 if lab.plan.control else lab.plan.number("slow_stop_ms")
    await lab.prepare()
    lab.phase("joining")
    await lab.start_member(MemberOptions(fetcher_stop_ms=stop_ms))
    await lab.rest("joined")
    lab.phase("one joins")
    await join(lab)
    await lab.rest("one joined")
    lab.phase("nothing happens")
    await lab.sleep_ms(lab.plan.number("watch_ms"))
    await lab.rest("still nothing")
    await lab.close()


def leeway_ms(plan: Plan) -> int:
    """The longest time that all attempts take together, one after another."""
    simulated = plan.world == "simulated"
    each_ms = max(ATTEMPT_MS, attempt_ms(plan, members=2)) if simulated else LIVE_ATTEMPT_MS
    return plan.number("rebalance_max_retries") * each_ms


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The share stays without an owner if the stop surely outlasts the budget, and is taken if it surely ends before.
    If the two are closer than the leeway, both may happen. A second member without a share takes none."""
    stop_ms, leeway = plan.number("slow_stop_ms"), leeway_ms(plan)
    if plan.control or not shares_of(plan, members=2)[1] or stop_ms + leeway <= retries_end_ms(plan):
        return usual()
    outcome = Outcome.VIOLATED if stop_ms >= retries_end_ms(plan) + leeway else None
    return usual(non_convergence=outcome, omission=outcome, stays_wrong=outcome, unowned_window=outcome)


SCENARIO = Scenario(
    name="uncontrolled",
    subject=ZK_GROUP,
    summary="a member uses up its retries before another lets go; its share has no owner, without an error",
    claims=("Z9",),
    parameters=(
        *common_parameters(members=2),
        Parameter("slow_stop_ms", 4000, "ms", "how long the first member's fetchers take to stop", 0),
        Parameter("watch_ms", 10_000, "ms", "how long the group is watched afterwards", 0),
    ),
    script=uncontrolled,
    expects=expects,
)
