"""Where brokers place the replicas of new topics, and what they do if there are too few brokers (claims P1 and P2).

A client asks for topics, and leaves their replicas to the brokers. Of every ten one is to have one replica more than
there are brokers; in the control none is. Another topic is written to meanwhile, so that the cluster has work. The
brokers may stand in racks.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.create_topics import create_topics
from rebalance_lab.roles.administrator import AdministratorSpec
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import COMMON, REPLICATED, ProducerOptions, ReplicationLab, with_default
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario
from rebalance_lab.trials.stage import NodeOptions

#: Of so many topics one asks for too many replicas.
TOO_MANY_OF = 10

#: The replication factors of the others, in turn.
FACTORS = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdministratorOptions(NodeOptions):
    """The client that has topics created."""

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> AdministratorSpec:
        return AdministratorSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            topics=wanted(plan),
        )


def wanted(plan: Plan) -> tuple[tuple[str, int, int], ...]:
    """Name, partitions and replication factor of each topic."""
    brokers = plan.number("brokers")
    found = []
    for number in range(plan.number("topics")):
        too_many = not plan.control and number % TOO_MANY_OF == TOO_MANY_OF - 1
        factor = brokers + 1 if too_many else FACTORS[number % len(FACTORS)]
        found.append((f"placed-{number}", plan.number("partitions"), factor))
    return tuple(found)


async def placement(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(racks=plan.number("racks"))
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "topics")
    await create_topics(lab, AdministratorOptions(), plan.number("topics"))
    await lab.conclude()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Too many replicas are refused, the others are placed by the rule, and nothing that was committed is lost. Kafka's
    brokers (3.9.1) go round in the order of a hash table (`ZkMetadataCache.getAliveBrokers`), which is that of the ids
    for some numbers of brokers only. With racks all go round in the order of `rack_spread`."""
    without_racks = plan.number("racks") == 0
    return usual_of(plan, placement_rule=None if plan.has_real_nodes and without_racks else Outcome.CLEAN)


def demands(plan: Plan) -> None:
    if plan.number("brokers") < len(FACTORS):
        raise PlanError(
            f"brokers={plan.number('brokers')}: must be at least {len(FACTORS)}, the replicas of some topics"
        )
    racks = plan.number("racks")
    if racks == 1 or racks > plan.number("brokers"):
        raise PlanError(f"racks={racks}: must be 0, or 2 to brokers={plan.number('brokers')}")


SCENARIO = Scenario(
    name="placement",
    subject=REPLICATED,
    summary="a client has many topics created, some with more replicas than there are brokers",
    parameters=(
        Parameter("topics", 20, "", "topics that the client asks for", 1, maximum=10_000),
        Parameter("partitions", 6, "", "of each topic", 1, maximum=1_000),
        Parameter("racks", 0, "", "that the brokers stand in, in turn; 0: no broker has a rack", 0, maximum=100),
        *with_default(COMMON, brokers=5, messages=20, pause_us=20_000),
    ),
    script=placement,
    expects=expects,
    claims=("P1", "P2"),
    demands=demands,
)
