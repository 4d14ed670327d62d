"""Rule sets: whom a member is faithful to."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab import assignors
from rebalance_lab.assignors import Assignor
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import UnknownRuleSet


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Where the articles and Kafka as released differ.

    - `assignor`: the rule where the settings name none.
    - `watches_brokers`: /brokers/ids is watched from the start, between the watch of the ids
      and the first rebalance (claim Z6); else only after a rebalance that found no broker.
    - `checks_strategy`: an unknown assignment strategy is refused; else everything but
      `roundrobin` means range, typos included (no validation before 0.9, KAFKA-2032).
    - `finds_leaders`: fetchers start only after the leader finder has read all brokers.
    """

    name: str
    assignor: str
    watches_brokers: bool
    checks_strategy: bool
    finds_leaders: bool

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
DESCRIBED = RuleSet("described", assignor="ceil", watches_brokers=True, checks_strategy=True, finds_leaders=False)

#: Kafka 0.8.2.2 as released.
SHIPPED = RuleSet("shipped", assignor="range", watches_brokers=False, checks_strategy=False, finds_leaders=True)

RULE_SETS: dict[str, RuleSet] = {each.name: each for each in (DESCRIBED, SHIPPED)}


def rule_set(name: str) -> RuleSet:
    """The rule set of that name. Raises UnknownRuleSet."""
    if name not in RULE_SETS:
        raise UnknownRuleSet(f"no rule set is named {name!r}; known are {', '.join(sorted(RULE_SETS))}")
    return RULE_SETS[name]
