"""The race for the controller: which of the brokers that want to be it wins (claim E1)?

All brokers start at once and stand for election. Then the session of the controller is ended again and again while it
is alive: `/controller` goes, and all brokers compete, the former controller with a new session. In the control the
first controller stays.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.expire import expire
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import COMMON, REPLICATED, ProducerOptions, ReplicationLab, with_default
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario


async def controller_race(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble()
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "races")
    for _ in range(0 if plan.control else plan.number("rounds")):
        controller = await lab.controlled()
        await expire(lab, controller)
        await lab.controlled()
        await lab.sleep_ms(plan.number("calm_ms"))
    await lab.conclude()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Each race has one winner, and nothing that was committed is lost."""
    return usual_of(plan)


SCENARIO = Scenario(
    name="controller-race",
    subject=REPLICATED,
    summary="all brokers compete for /controller, again and again; each race has one winner",
    parameters=(
        Parameter("rounds", 4, "times", "how often the controller's session is ended", 1, maximum=1000),
        Parameter("calm_ms", 1500, "ms", "how long a controller reigns before that", 0, maximum=3_600_000),
        *with_default(COMMON, brokers=5, messages=50, pause_us=20_000),
    ),
    script=controller_race,
    expects=expects,
    claims=("E1",),
)
