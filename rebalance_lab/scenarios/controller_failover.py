"""Controllers fail one after another: does every broker learn of each failure (claim E2)?

The broker that is the controller is killed. When another has been elected, the dead one is started again, and after a
time without faults the new controller is killed. A watch fires once: with `watch_again=false` no broker sets it again
after it has fired for a controller that went, and misses the next election. In the control nothing fails.
"""

from __future__ import annotations

from controller.settings import ControllerBug
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.expire import expire
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario


async def controller_failover(lab: ReplicationLab) -> None:
    plan = lab.plan
    bug = None if plan.switch("watch_again") else ControllerBug.WATCHES_ONCE
    await lab.assemble(lab_controller_bug=bug)
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "failovers")
    for _ in range(0 if plan.control else plan.number("rounds")):
        controller = await lab.controlled()
        await lab.sleep_ms(plan.number("calm_ms"))
        await _fail(lab, controller)
        await lab.in_sync()
    await lab.sleep_ms(plan.number("calm_ms"))
    await lab.conclude()


async def _fail(lab: ReplicationLab, controller: BrokerNode) -> None:
    """Have it fail, wait until another is elected, and have it back."""
    if lab.plan.text("fault") == "expire":
        await expire(lab, controller)
        await lab.controlled()
        return
    await kill(lab, controller)
    await lab.unregistered(controller)
    await lab.controlled(not_by=controller)
    await restart(lab, controller)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Every broker stands for each election, if it watches again; nothing that was committed is lost. If none does,
    there may be no controller until one is started again."""
    misses = not plan.control and not plan.switch("watch_again") and plan.number("rounds") > 1
    missed_election, handover = (Outcome.VIOLATED, None) if misses else (Outcome.CLEAN, Outcome.CLEAN)
    return usual_of(plan, missed_election=missed_election, handover=handover)


def real(plan: Plan) -> None:
    if not plan.switch("watch_again"):
        raise PlanError("watch_again=false: real brokers watch /controller again")


SCENARIO = Scenario(
    name="controller-failover",
    subject=REPLICATED,
    summary="one controller after another fails; every broker stands for each election",
    parameters=(
        Parameter("rounds", 3, "times", "how often the controller fails", 1, maximum=1000),
        Parameter("fault", "kill", "", "how: its process is killed, or its session ended", choices=("kill", "expire")),
        Parameter("calm_ms", 1500, "ms", "how long a controller reigns before that", 1000, maximum=3_600_000),
        Parameter("watch_again", True, "", "brokers watch /controller again after a controller went"),
        *with_default(COMMON, messages=50, pause_us=20_000),
    ),
    script=controller_failover,
    expects=expects,
    claims=("E2",),
    real=real,
)
