"""Rebalance episodes of all trials; what an episode is says `trialwise.episodes`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from rebalance_lab.analysis.frames import schema_of
from rebalance_lab.analysis.results import Episode

#: One row an episode; the fields are those of `results.Episode`.
EPISODES = schema_of(Episode)


def rebalance_episodes(results: DataFrame) -> DataFrame:
    """RESULTS to EPISODES, in no order."""
    return results.select(F.inline("episodes"))
