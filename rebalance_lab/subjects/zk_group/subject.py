"""The subject of the ZooKeeper-era consumer group: its settings, and what its plans demand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from rebalance_lab.assignors import ASSIGNORS, BUILT_IN
from rebalance_lab.checks.model import ZK
from rebalance_lab.history.rest import RestTracker
from rebalance_lab.history.transactions import RecorderBug
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.real import RealMembers
from rebalance_lab.trials.plan import WORLD_PARAMETERS, Parameter, Plan, PlanError, Value, one_of
from rebalance_lab.trials.subject import RealNodes, Subject
from rebalance_lab.world.kafka.jars import Role
from rebalance_lab.world.simulated.settings import ServerBug
from zkconsumer.plants import Plant
from zkconsumer.rules import RULE_SETS

#: Names of groups and topics (`kafka.common.Topic`, `kafka.consumer.ConsumerConfig`, 0.8.2).
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def common_parameters(*, least_brokers: int = 1, **defaults: Value) -> tuple[Parameter, ...]:
    """The settings of every scenario of the ZooKeeper generation. `defaults`: other defaults, by name. Without a broker
    members own nothing, so a scenario needs one unless it is about the first broker (`least_brokers`=0)."""
    parameters = (
        Parameter("group", "g1", "", "the consumer group"),
        Parameter("topic", "t1", "", "the topic"),
        Parameter("partitions", 6, "partitions", "partitions of the topic", 1),
        Parameter("brokers", 1, "brokers", "broker znodes in the fixture", least_brokers),
        Parameter("members", 3, "members", "members of the group", 1),
        WORLD_PARAMETERS["servers"],
        Parameter("together", False, "", "start all members at once instead of one after another"),
        Parameter("streams", 1, "streams", "streams of each member", 1),
        WORLD_PARAMETERS["session_timeout_ms"],
        WORLD_PARAMETERS["tick_ms"],
        Parameter("rebalance_backoff_ms", 500, "ms", "rebalance.backoff.ms", 1),
        Parameter("rebalance_max_retries", 4, "attempts", "rebalance.max.retries", 0),
        Parameter(
            "assignor", "", "", "the partition assignor (range, roundrobin, ceil); if empty, that of the rule set"
        ),
        Parameter("work_period_ms", 50, "ms", "how often a member reports work on each partition", 1),
        Parameter("fetcher_stop_ms", 0, "ms", "how long a member's fetchers take to stop", 0),
        WORLD_PARAMETERS["rest_timeout_ms"],
        WORLD_PARAMETERS["ops"],
        WORLD_PARAMETERS["latency_min_us"],
        WORLD_PARAMETERS["latency_max_us"],
        WORLD_PARAMETERS["start_min_us"],
        WORLD_PARAMETERS["start_max_us"],
    )
    return tuple(replace(each, default=defaults[each.name]) if each.name in defaults else each for each in parameters)


def _names(plan: Plan) -> None:
    """Check the names of group and topic against Kafka's rules, and that the assignor exists."""
    for parameter in ("group", "topic"):
        legal_name(parameter, plan.text(parameter))
    if assignor := plan.text("assignor"):
        one_of("assignor", assignor, tuple(sorted(ASSIGNORS)))
        if plan.world != "simulated" and assignor not in BUILT_IN:
            raise PlanError(
                f"assignor {assignor} is this program's; members of world {plan.world} have processes of their own, "
                f"which know {', '.join(BUILT_IN)}: use world simulated"
            )


def _real_members(plan: Plan) -> None:
    """Refuse what a ConsoleConsumer cannot do, and settings that a trial with real brokers does not support."""
    if not plan.has_real_nodes:
        return
    if plan.plant in tuple(Plant):
        raise PlanError(f"plant {plan.plant} is a bug of our members; real members do not have it")
    for name, least in (("streams", 1), ("brokers", 1)):
        if plan.number(name) != least:
            raise PlanError(f"{name}={plan.number(name)}: with real members it must be {least}")
    if plan.operations != "all":
        raise PlanError("each operation of real members is recorded: use --set ops=all")
    if plan.text("assignor") not in {"", "range", "roundrobin"}:
        raise PlanError(f"assignor={plan.text('assignor')}: real members of 0.8.2.2 have only range and roundrobin")


def legal_name(parameter: str, name: str) -> None:
    """Raises PlanError for a name that Kafka does not accept for a group or topic."""
    if not LEGAL_NAME.fullmatch(name):
        raise PlanError(f"{parameter}={name}: use only letters, digits, '.', '_' and '-'")


def _demands(plan: Plan) -> None:
    _names(plan)
    _real_members(plan)


ZK_GROUP = Subject(
    name=ZK,
    rules=tuple(RULE_SETS),
    lab=GroupLab,
    tracker=RestTracker,
    demands=_demands,
    real=RealNodes(
        rules="shipped",
        settings={"fetcher_stop_ms": "0"},  # on Java 17 an interrupt ends a fetch
        take_part=RealMembers,
        name="members",
        roles=(Role.CONSUMER, Role.BROKER),
        mixed=True,
    ),
    plants=(Plant, RecorderBug, ServerBug),
    words=Path(__file__).with_name("words.toml"),
    narrator=f"{__package__}.narrator",
)
