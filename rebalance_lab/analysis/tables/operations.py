"""Operations: how often who asked ZooKeeper for what, in each phase, by SQL over events.

What a request costs is what `checks.operations.requests` says, which is the oracle.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from rebalance_lab.analysis.frames import as_declared, schema_of
from rebalance_lab.analysis.results import Operations
from rebalance_lab.checks.operations import READS, WRITES

#: One row a trial, phase, actor and operation; the fields are those of the class.
OPERATIONS = schema_of(Operations)

_QUERY = f"""
WITH told AS (
  SELECT trial, actor, n, at_us, kind, detail,
         last(if(kind = 'phase', get_json_object(detail, '$.name'), NULL), true) OVER time AS phase,
         count_if(kind = 'phase') OVER time AS phase_number
  FROM {{events}} WHERE kind IN ('invoked', 'operations', 'phase')
  WINDOW time AS (PARTITION BY trial ORDER BY at_us, actor, n)
), counted AS (
  SELECT trial, phase, phase_number, actor, counts, of.*
  FROM (SELECT *, from_json(get_json_object(detail, '$.counts'), 'map<string,bigint>') AS counts FROM told)
  LATERAL VIEW explode(CASE kind
    WHEN 'invoked' THEN array(named_struct(
      'operation', get_json_object(detail, '$.op'), 'requests', 1L,
      'parts', cast(coalesce(json_array_length(get_json_object(detail, '$.parts')), 1) AS bigint)))
    WHEN 'operations' THEN transform(  -- `reads` are the parts of all multi_read
      filter(map_entries(counts), each -> each.key <> 'reads'),
      each -> named_struct('operation', each.key, 'requests', each.value, 'parts', coalesce(counts['reads'], 0L)))
    END) AS of
)
SELECT trial, coalesce(phase, '') AS phase, phase_number, actor, operation, sum(requests) AS requests,
       sum(CASE WHEN operation IN {READS} THEN requests WHEN operation = 'multi_read' THEN parts ELSE 0 END) AS reads,
       sum(if(operation IN {WRITES}, requests, 0)) AS writes
FROM counted
GROUP BY trial, phase, phase_number, actor, operation
"""


def operations(events: DataFrame) -> DataFrame:
    """EVENTS to OPERATIONS, in no order."""
    return as_declared(events.sparkSession.sql(_QUERY, events=events), OPERATIONS)
