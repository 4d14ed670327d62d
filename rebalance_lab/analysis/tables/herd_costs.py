"""Herd costs of all trials, and what they grow with; what a cost is says `trialwise.herd_costs`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from rebalance_lab.analysis.frames import schema_of
from rebalance_lab.analysis.results import HerdCost

#: One row a spaced change; the fields are those of `results.HerdCost`.
HERD_COSTS = schema_of(HerdCost)


def herd_costs(results: DataFrame) -> DataFrame:
    """RESULTS to HERD_COSTS, in no order."""
    return results.select(F.inline("herd_costs"))
