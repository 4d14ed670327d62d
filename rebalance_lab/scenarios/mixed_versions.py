"""What a cluster of two releases does if its brokers ask in versions that one of them does not know.

Kafka is upgraded in two steps: first all brokers get the later release, and go on asking in the earlier protocol; then
`inter.broker.protocol.version` is raised. Here one broker serves and sends the versions of release 1.1; what it decides
is as in the others. It is the controller at first, and asks all in its protocol. Then another becomes the controller,
and a duty is asked for: a topic is created, deleted, or gets more partitions. If the later brokers ask in the protocol
2.7 already, the old broker closes the connection on each control request, the controller sends it again for ever, and
the old broker hears of nothing. The cure, `protocol=1.1`: one that all know. In the control all brokers are of the
later release, and ask in one protocol.
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.broker.replication.rules import IsrWriter, ReplicationRules
from rebalance_lab.broker.versions import ProtocolVersion, Release
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.duty import PREPARED, SETTLE_MS, Duty, ask_duty, begun, reached
from rebalance_lab.faults.leave import leave
from rebalance_lab.kernel import RandomStream
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.outside import InspectorOptions
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours

#: The broker of the old release. It is the first replica of no partition that there is before the duty, so it leads
#: none: followers that ask in a later protocol would fetch nothing from it.
OLD = 3

#: The duties in which no broker goes, and no replica moves; the seed draws one.
DRAWN, DUTIES = "drawn", (Duty.CREATE, Duty.DELETE, Duty.GROW)


def duty_of(plan: Plan) -> Duty:
    """The duty of a trial."""
    if plan.text("duty") != DRAWN:
        return Duty(plan.text("duty"))
    return DUTIES[RandomStream(plan.seed, "mixed-versions", "duty").below(len(DUTIES))]


def _configs(plan: Plan) -> dict[int, dict[str, Any]]:
    """The release of each broker, and the protocol in which it asks."""
    later = {"inter_broker_protocol_version": ProtocolVersion(plan.text("protocol"))}
    old = {"lab_release": Release.V1_1, "inter_broker_protocol_version": ProtocolVersion.V1_1}
    mixed = not plan.control
    return {each: old if mixed and each == OLD else later for each in range(1, plan.number("brokers") + 1)}


async def mixed_versions(lab: ReplicationLab) -> None:
    plan, duty = lab.plan, duty_of(lab.plan)
    await lab.assemble(first=OLD, configs=_configs(plan))
    lab.start("c1", ProducerOptions())
    await lab.written(1)
    asked = await PREPARED[duty](lab, lab.brokers[1])
    inspector = lab.start("i1", InspectorOptions())
    await begun(lab, asked)
    controller = lab.brokers[0]
    await lab.move_controller(controller)
    lab.phase("control" if plan.control else f"{duty.value} in protocol {plan.text('protocol')}")
    await ask_duty(lab, controller, duty.value, asked.target, asked.ask)
    await reached(lab, asked.target, SETTLE_MS)
    await leave(lab, inspector)
    await lab.conclude()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The old broker does not get or drop its replicas, and tells clients what it heard last. Views of a topic that is
    gone are not compared."""
    if plan.control or plan.text("protocol") == ProtocolVersion.V1_1:
        return usual_of(plan)
    views = None if duty_of(plan) is Duty.DELETE else Outcome.VIOLATED
    return usual_of(plan, duty_target=Outcome.VIOLATED, stale_role=Outcome.VIOLATED, unequal_views=views)


def demands(plan: Plan) -> None:
    if plan.number("brokers") != OLD:
        raise PlanError(f"brokers={plan.number('brokers')}: must be {OLD}; the last is of the old release")
    given = plan.rules != ReplicationRules.KIP_320 or plan.text("isr_writer") != IsrWriter.CONTROLLER
    if given and plan.text("protocol") == ProtocolVersion.V1_1:
        raise PlanError(
            f"rules={plan.rules}, isr_writer={plan.text('isr_writer')}: leave both out; the protocol 1.1 decides"
        )


SCENARIO = Scenario(
    name="mixed-versions",
    subject=REPLICATED,
    summary="brokers of two releases, and requests in versions that one of them does not serve",
    parameters=(
        Parameter(
            "protocol",
            ProtocolVersion.V2_7.value,
            "",
            "inter.broker.protocol.version of the later brokers; the cure: 1.1",
            choices=tuple(ProtocolVersion),
        ),
        Parameter("duty", DRAWN, "", "what is asked for; drawn: by the seed", choices=(DRAWN, *DUTIES)),
        *with_default(COMMON, messages=60, pause_us=50_000),
    ),
    script=mixed_versions,
    expects=expects,
    claims=("E4",),
    demands=demands,
    real=only_ours("they are all of release 3.9.1"),
)
