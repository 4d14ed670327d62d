"""Placements: which brokers hold the replicas of each partition, and in which racks, by SQL over events.

The moments of znodes are compared by zxid, because an ensemble's servers have clocks of their own.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from rebalance_lab.analysis.frames import as_declared, schema_of
from rebalance_lab.analysis.results import Placement

#: One row a trial, topic, partition and replica; the fields are those of the class.
PLACEMENTS = schema_of(Placement)

_QUERY = r"""
WITH written AS (
  SELECT trial, kind, struct(zxid, n) AS moment, get_json_object(detail, '$.data') AS data,
         nullif(regexp_extract(get_json_object(detail, '$.path'), '^/brokers/topics/([^/]+)$', 1), '') AS topic,
         nullif(regexp_extract(get_json_object(detail, '$.path'), '^/brokers/ids/([0-9]+)$', 1), '') AS broker
  FROM {events}
  WHERE layer = 'registry' AND kind IN ('created', 'changed', 'deleted') AND detail LIKE '%"/brokers/%'
), known AS (
  SELECT *, collect_list(if(broker IS NOT NULL AND data <> '', struct(moment, broker, data), NULL))
              OVER (PARTITION BY trial) AS registrations,
         row_number() OVER (PARTITION BY trial, topic ORDER BY moment DESC) AS age
  FROM written WHERE topic IS NOT NULL OR broker IS NOT NULL
), last AS (
  SELECT trial, topic,
         from_json(data, 'partitions map<string, array<bigint>>').partitions AS partitions,
         map_from_entries(transform(
           array_distinct(transform(registrations, each -> each.broker)),
           id -> struct(cast(id AS bigint), array_max(filter(registrations, each -> each.broker = id)).data)
         )) AS brokers
  FROM known WHERE topic IS NOT NULL AND age = 1 AND kind <> 'deleted'
)
SELECT trial, topic, cast(number AS int) AS `partition`, position + 1 AS position, replica AS broker,
       get_json_object(brokers[replica], '$.rack') AS rack
FROM last
LATERAL VIEW explode(partitions) AS number, replicas
LATERAL VIEW posexplode(replicas) AS position, replica
"""


def placements(events: DataFrame) -> DataFrame:
    """EVENTS to PLACEMENTS, in no order."""
    return as_declared(events.sparkSession.sql(_QUERY, events=events), PLACEMENTS)
