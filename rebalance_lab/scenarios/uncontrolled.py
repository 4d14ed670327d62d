"""The uncontrolled outcome (claim Z9): nobody knows whether the others succeeded.

One member owns everything, and takes its time to stop its fetchers (a blocked read, a slow commit:
facts 8.6, F2). A second one joins. It finds the partitions of its share still owned, waits, tries
again, and gives up: its budget of attempts is spent before the first has let go. The first then
gives up what is not its share, and believes that all is well. Nothing tells either of them: the
partitions stay unowned. In the control the first stops at once. The cure is a larger budget
(`--set rebalance_max_retries=20`).
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.trials.plan import Parameter, Plan, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual


async def uncontrolled(lab: Lab) -> None:
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


def budget_ms(plan: Plan) -> int:
    """When a member's last attempt starts, after its first: the back-off after it is useless."""
    return (plan.number("rebalance_max_retries") - 1) * plan.number("rebalance_backoff_ms")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """What is not taken in time stays unowned for ever, unless nobody was slow."""
    if plan.control or plan.number("slow_stop_ms") < budget_ms(plan) // 2:
        return usual()
    sure = plan.number("slow_stop_ms") > budget_ms(plan) + plan.number("rebalance_backoff_ms")
    outcome = Outcome.VIOLATED if sure else None
    return usual(non_convergence=outcome, omission=outcome, unowned_window=outcome)


SCENARIO = register(
    Scenario(
        name="uncontrolled",
        summary="a member spends its retries before another has let go; its share stays unowned, and nobody knows",
        claims=("Z9",),
        parameters=(
            *common_parameters(members=2),
            Parameter("slow_stop_ms", 4000, "ms", "how long the first member's fetchers take to stop", 0),
            Parameter("watch_ms", 10_000, "ms", "how long the group is watched afterwards", 0),
        ),
        script=uncontrolled,
        expects=expects,
    )
)
