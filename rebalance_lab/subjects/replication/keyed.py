"""The client with keys of a trial, and its topic (`roles.keyed_client`)."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.roles.keyed_client import KeyedClientSpec
from rebalance_lab.subjects.replication.subject import ClientPlant
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.stage import NodeOptions

#: The topic with keys.
KEYED = "keyed"

#: What every scenario has whose topic with keys grows.
GROWTH: tuple[Parameter, ...] = (
    Parameter("partitions", 2, "partitions", "of the topic with keys", 1),
    Parameter("grown", 5, "partitions", "after it has grown", 2),
    Parameter("keys", 12, "", "keys of the records", 2, maximum=1000),
    Parameter("keyed_messages", 180, "", "records with keys", 12, maximum=1_000_000),
    Parameter("metadata_max_age_ms", 300, "ms", "metadata.max.age.ms of the client with keys", 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedOptions(NodeOptions):
    """The client that writes records with keys. `resizes`: after how many acknowledged records it asks for how many
    partitions."""

    resizes: tuple[tuple[int, int], ...]

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> KeyedClientSpec:
        return KeyedClientSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            topic=KEYED,
            messages=plan.number("keyed_messages"),
            keys=plan.number("keys"),
            pause_us=plan.number("pause_us"),
            metadata_max_age_ms=plan.number("metadata_max_age_ms"),
            resizes=self.resizes,
            request_timeout_ms=plan.number("request_timeout_ms"),
            ignores_keys=plan.plant == ClientPlant.IGNORES_KEYS,
        )


def grows(plan: Plan) -> None:
    """Raises PlanError unless the topic grows, and each key has records before and after that."""
    if plan.number("grown") <= plan.number("partitions"):
        raise PlanError(f"grown={plan.number('grown')}: must be above partitions={plan.number('partitions')}")
    if plan.number("keyed_messages") < 6 * plan.number("keys"):
        raise PlanError(
            f"keyed_messages={plan.number('keyed_messages')}: must be at least {6 * plan.number('keys')}, two records "
            "of each key in each third of them"
        )
