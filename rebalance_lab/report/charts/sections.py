"""The charts of a store, by the question that they answer."""

from __future__ import annotations

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.report.charts.chart import Section
from rebalance_lab.report.charts.comparisons import frequency_chart, rules_chart
from rebalance_lab.report.charts.costs import cost_charts
from rebalance_lab.report.charts.distributions import distribution_charts


def charts_of(analysis: Analysis) -> tuple[Section, ...]:
    """The sections that have any chart."""
    often = frequency_chart(analysis)
    rules = rules_chart(analysis)
    sections = (
        Section(
            "often",
            "How often",
            "The share of trials that show what a claim says, among trials whose faults took effect.",
            () if often is None else (often,),
        ),
        Section(
            "long",
            "How long",
            "Each curve shows the share of trials in which it lasted at most that long.",
            tuple(distribution_charts(analysis)),
        ),
        Section(
            "cost",
            "What a change costs",
            "One member, broker or topic comes or goes. Everything is counted until the group is at rest again.",
            tuple(cost_charts(analysis)),
        ),
        Section(
            "rules",
            "As described, as shipped",
            "The same experiments under the articles’ rules and under those of Kafka 0.8.2.2.",
            () if rules is None else (rules,),
        ),
    )
    return tuple(section for section in sections if section.charts)
