"""Rule sets: whether a member follows the articles or Kafka as released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab import assignors
from rebalance_lab.assignors import Assignor
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import UnknownRuleSet

#: The group of a member that names none (claim Z14). The articles mention "the default group" without a name; Kafka
#: 0.8.2 has none.
DEFAULT_GROUP = "default"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The points in which the articles and Kafka as released differ.

    - `assignor`: the assignor if the settings name none.
    - `watches_brokers`: /brokers/ids is watched from the start, between the watch of the ids and the first rebalance
      (claim Z6); otherwise only after a rebalance that found no broker, and from then on. The class comment of 0.8.2's
      ZookeeperConsumerConnector still mentions the watch, but the code does not set it; the articles have it from
      there, or from 0.7.
    - `watches_topics_first`: with a filter, /brokers/topics is watched before the first rebalance (Z6); otherwise after
      it, and not at all if that failed.
    - `default_group`: what a missing group.id means (Z14); None: it is refused.
    - `checks_strategy`: an unknown assignment strategy is refused; otherwise everything but `roundrobin` means range,
      even a typo (no validation before 0.9, KAFKA-2032).
    """

    name: str
    assignor: str
    watches_brokers: bool
    watches_topics_first: bool
    checks_strategy: bool
    default_group: str | None

    def config(self, properties: Mapping[str, str]) -> ConsumerConfig:
        """Settings that are given as text. Raises what ConsumerConfig raises."""
        return ConsumerConfig.from_properties(properties, default_group=self.default_group)

    def assignor_name(self, config: ConsumerConfig) -> str:
        """The assignor for these settings; it need not exist (`assignor_of`)."""
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
