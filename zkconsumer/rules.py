"""Rule sets: whom a member is faithful to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab import assignors
from rebalance_lab.assignors import Assignor
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import UnknownRuleSet

#: The group of a member that names none (claim Z14). The articles speak of "the default group"
#: and give it no name; Kafka 0.8.2 has none.
DEFAULT_GROUP = "default"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Where the articles and Kafka as released differ.

    - `assignor`: the rule where the settings name none.
    - `watches_brokers`: /brokers/ids is watched from the start, between the watch of the ids
      and the first rebalance (claim Z6); else only after a rebalance that found no broker, and
      then for ever. The class comment of 0.8.2's ZookeeperConsumerConnector still claims the
      watch; the articles had it from there, or from 0.7. The code does not have it.
    - `watches_topics_first`: with a filter, /brokers/topics is watched before the first rebalance
      (Z6); else after it, and not at all when that failed.
    - `default_group`: what a missing group.id stands for (Z14); None: it is refused.
    - `checks_strategy`: an unknown assignment strategy is refused; else everything but
      `roundrobin` means range, typos included (no validation before 0.9, KAFKA-2032).
    """

    name: str
    assignor: str
    watches_brokers: bool
    watches_topics_first: bool
    checks_strategy: bool
    default_group: str | None

    def config(self, properties: Mapping[str, str]) -> ConsumerConfig:
        """The settings, with this rule set's default group. Raises what ConsumerConfig raises."""
        return ConsumerConfig.from_properties(properties, default_group=self.default_group)

    def assignor_name(self, config: ConsumerConfig) -> str:
        """The assignor for these settings; `assignor_of` tells whether it exists."""
        if not self.checks_strategy:
            return "roundrobin" if config.partition_assignment_strategy == "roundrobin" else self.assignor
        return config.partition_assignment_strategy if config.strategy_given else self.assignor

    def assignor_of(self, config: ConsumerConfig, override: str | None = None) -> tuple[str, Assignor]:
        """Name and rule; `override` comes first. Raises assignors.UnknownAssignor."""
        name = override or self.assignor_name(config)
        return name, assignors.by_name(name)


#: The articles; where they say nothing, as shipped.
DESCRIBED = RuleSet(
    "described",
    assignor="ceil",
    watches_brokers=True,
    watches_topics_first=True,
    checks_strategy=True,
    default_group=DEFAULT_GROUP,
)

#: Kafka 0.8.2.2 as released.
SHIPPED = RuleSet(
    "shipped",
    assignor="range",
    watches_brokers=False,
    watches_topics_first=False,
    checks_strategy=False,
    default_group=None,
)

RULE_SETS: dict[str, RuleSet] = {each.name: each for each in (DESCRIBED, SHIPPED)}


def rule_set(name: str) -> RuleSet:
    """The rule set of that name. Raises UnknownRuleSet."""
    if name not in RULE_SETS:
        raise UnknownRuleSet(f"no rule set is named {name!r}; known are {', '.join(sorted(RULE_SETS))}")
    return RULE_SETS[name]
