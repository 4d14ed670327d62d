"""The same id twice (defect F4): a second consumer with a `consumer.id` that is taken.

Its registration meets a znode that it believes to be its own, of an older session. It waits for that
to go, a session timeout at a time, for ever: no error, no streams. The application hangs in its
first call. Once the first has gone (`--set first_leaves=true`) the second registers at last. The cure
is an id of one's own, which is also the control; as Kafka 0.9 does it, the second is told at once
(`--set check_session=true`).
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.duplicate_id import join_as
from rebalance_lab.faults.join import join
from rebalance_lab.faults.leave import leave
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.trials.plan import Parameter, Plan, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual


async def duplicate_id(lab: Lab) -> None:
    plan = lab.plan
    properties = {"consumer.id": "same", "check.session.of.own.node": plan.text("check_session").lower()}
    named = MemberOptions(properties=properties)
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
        if plan.parameters["first_leaves"] and not plan.parameters["check_session"]:
            lab.phase("the first leaves")
            await leave(lab, first)
            await lab.first_rebalance(second)
    lab.phase("recovery")
    await lab.rest("recovered")
    await lab.close()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The second lives and is never registered; nobody is told, and nothing is broken for the first."""
    if plan.control or plan.parameters["check_session"] or plan.parameters["first_leaves"]:
        return usual()
    return usual(registration=Outcome.VIOLATED)


SCENARIO = register(
    Scenario(
        name="duplicate-id",
        summary="two consumers with one consumer.id: the second waits for ever, without an error",
        claims=(),
        parameters=(
            *common_parameters(members=2),
            Parameter("wait_ms", 10_000, "ms", "how long the second is given", 1),
            Parameter("first_leaves", False, "", "the first leaves afterwards"),
            Parameter("check_session", False, "", "a conflicting id znode of another session ends it, as in 0.9"),
        ),
        script=duplicate_id,
        expects=expects,
    )
)
