"""The same id twice (defect F4): a second consumer has the `consumer.id` of a running one.

When it registers it meets a znode that it takes for its own from an older session. It waits one session
timeout for the znode to vanish, again and again, forever. There is no error and there are no streams:
the application hangs in its first call. If the first consumer leaves (`--set first_leaves=true`), the
second registers at last. The cure is a unique id, which is also the control. With `--set
check_session=true` the second fails at once, as in Kafka 0.9.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.duplicate_id import join_as
from rebalance_lab.faults.join import join
from rebalance_lab.faults.leave import leave
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from zkconsumer.lab_settings import Cures, LabSettings


async def duplicate_id(lab: GroupLab) -> None:
    plan = lab.plan
    cures = Cures(check_session_of_own_node=plan.switch("check_session"))
    named = MemberOptions(consumer_id="same", lab=LabSettings(cures=cures))
    await lab.prepare()
    lab.phase("joining")
    first = await lab.start_member(named)
    await lab.rest("joined")
    if plan.control:
        lab.phase("another joins")
        await join(lab)
    else:
        lab.phase("another comes with the same id")
        second = await join_as(lab, first, named)
        await lab.sleep_ms(plan.number("wait_ms"))
        if plan.switch("first_leaves") and not plan.switch("check_session"):
            lab.phase("the first leaves")
            await leave(lab, first)
            await lab.first_rebalance(second)
    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The second member runs and is never registered. It gets no error, and the first is not disturbed."""
    if plan.control or plan.switch("check_session") or plan.switch("first_leaves"):
        return usual()
    return usual(registration=Outcome.VIOLATED)


SCENARIO = Scenario(
    name="duplicate-id",
    subject=ZK_GROUP,
    summary="two consumers have the same consumer.id: the second waits forever, without an error",
    parameters=(
        *common_parameters(members=2),
        Parameter("wait_ms", 10_000, "ms", "how long the second consumer has to register", 1),
        Parameter("first_leaves", False, "", "the first consumer leaves afterwards"),
        Parameter("check_session", False, "", "a conflicting id znode of another session ends the second, as in 0.9"),
    ),
    script=duplicate_id,
    expects=expects,
)
