"""Intervals by SQL over events: who owned a partition, who led one, and which replicas were in sync.

The three rules of ownership are those of `history.intervals`, which is the oracle. Each query first makes *steps*: rows
that say whether a key is `open` from a moment on. A key is what can be held: a partition by a member, a leadership, a
replica's place in an ISR. An event that concerns all keys of its place or actor is repeated for each of them, which a
window can do without a join. `_intervals` then makes intervals of steps. Everything is partitioned by trial once.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from rebalance_lab.analysis.frames import as_declared, schema_of
from rebalance_lab.analysis.results import InSync, Interval, Leadership
from rebalance_lab.history.intervals import WORK_PERIOD_MS

#: One row an interval; the fields are those of the classes.
INTERVALS, LEADERSHIPS, IN_SYNC = map(schema_of, (Interval, Leadership, InSync))

_REGISTRY_STEPS = """
WITH claims AS (
  SELECT trial, coalesce(`group`, '') AS `group`, topic, `partition`, member, actor, kind, at_us, n, zxid
  FROM {events}
  WHERE layer = 'registry' AND kind IN ('created', 'changed', 'deleted')
    AND topic IS NOT NULL AND `partition` IS NOT NULL AND member IS NOT NULL
), places AS (
  SELECT *, collect_set(struct(member, actor)) OVER (PARTITION BY trial, `group`, topic, `partition`) AS holders
  FROM claims
)
SELECT trial, 'registry' AS layer, `group`, topic, `partition`, holder.member, holder.actor AS holder,
       struct(zxid, '', n) AS moment, at_us, struct(actor, n) AS event,
       kind <> 'deleted' AND places.member = holder.member AS open
FROM places
-- the znode of a partition that gets another owner was everybody else's
LATERAL VIEW explode(if(kind = 'changed', holders, array(struct(member, actor)))) AS holder
WHERE NOT (kind = 'changed' AND places.member = holder.member AND actor <> holder.actor)
"""

_BELIEF_STEPS = """
WITH told AS (
  SELECT trial, actor, n, at_us, kind, member, get_json_object(detail, '$.fault') AS fault,
         if(kind = 'fault-began', get_json_object(detail, '$.target'), actor) AS holder,
         if(kind IN ('owned', 'disowned'),
            named_struct('group', coalesce(`group`, ''), 'topic', topic, 'partition', `partition`, 'member', member),
            NULL) AS claim
  FROM {events}
  WHERE kind IN ('owned', 'disowned', 'member-closed')
     OR kind = 'fault-began' AND get_json_object(detail, '$.fault') IN ('kill', 'restart')
), holders AS (
  SELECT *, collect_set(claim) OVER (PARTITION BY trial, holder) AS claims FROM told
), spread AS (
  SELECT trial, holder, actor, n, at_us, kind, fault, of.*
  FROM holders
  LATERAL VIEW explode(CASE WHEN claim IS NOT NULL THEN array(claim)
                            WHEN kind = 'member-closed' THEN filter(claims, each -> each.member = holders.member)
                            ELSE claims END) AS of
), lives AS (
  SELECT *, coalesce(last(fault, true) OVER (
    PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n
  ) = 'kill', false) AS killed
  FROM spread
)
SELECT trial, 'belief' AS layer, `group`, topic, `partition`, member, holder,
       struct(at_us, actor, n) AS moment, at_us, struct(actor, n) AS event, kind = 'owned' AS open
FROM lives
WHERE NOT (kind = 'owned' AND killed) AND NOT fault <=> 'restart'
"""

#: Runs of work, not steps: where one ends depends on the distance of reports.
_EFFECT = """
WITH told AS (
  SELECT trial, actor, n, at_us, kind, get_json_object(detail, '$.fault') AS fault,
         try_cast(get_json_object(detail, '$.work_period_ms') AS bigint) AS period_ms,
         coalesce(get_json_object(detail, '$.last') = 'true', false) AS is_last,
         if(kind IN ('fault-began', 'fault-ended'), get_json_object(detail, '$.target'), actor) AS holder,
         if(kind IN ('worked', 'owned', 'disowned'),
            named_struct('group', coalesce(`group`, ''), 'topic', topic, 'partition', `partition`, 'member', member),
            NULL) AS claim
  FROM {events}
  WHERE kind IN ('worked', 'owned', 'disowned', 'member-started')
     OR kind = 'fault-began' AND get_json_object(detail, '$.fault') IN ('kill', 'pause', 'restart')
     OR kind = 'fault-ended' AND get_json_object(detail, '$.fault') = 'pause'
), holders AS (
  SELECT *, collect_set(claim) OVER (PARTITION BY trial, holder) AS claims FROM told
), spread AS (
  SELECT trial, holder, actor, n, at_us, kind, fault, period_ms, is_last, of.*
  FROM holders LATERAL VIEW explode(if(claim IS NULL, claims, array(claim))) AS of
), lives AS (
  SELECT *, coalesce(last(if(fault IN ('kill', 'restart'), fault, NULL), true) OVER key = 'kill', false) AS killed
  FROM spread WINDOW key AS (PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n)
), released AS (
  SELECT *,
         kind = 'owned' AND 'disowned' <=> last(if(kind IN ('worked', 'owned', 'disowned'), kind, NULL), true) OVER (
           PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n
           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS again,
         last(if(kind = 'member-started', period_ms, NULL), true) OVER (
           PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n) AS own_period_ms
  FROM lives WHERE NOT killed OR kind IN ('fault-began', 'fault-ended')
), parts AS (
  SELECT *, count_if(again OR kind IN ('fault-began', 'fault-ended') AND fault <> 'restart') OVER (
    PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n) AS part
  FROM released
), reports AS (
  SELECT *, coalesce(lag(is_last) OVER key OR lag(part) OVER key <> part
                     OR at_us - lag(at_us) OVER key > 2000 * coalesce(own_period_ms, trial_period_ms), true) AS begins
  FROM parts JOIN {periods} USING (trial) WHERE kind = 'worked'
  WINDOW key AS (PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n)
), runs AS (
  SELECT *, count_if(begins) OVER (
    PARTITION BY trial, holder, `group`, topic, `partition`, member ORDER BY at_us, actor, n) AS run
  FROM reports
)
SELECT trial, 'effect' AS layer, member, `group`, topic, `partition`, min(at_us) AS begin_us, max(at_us) AS end_us,
       min_by(struct(actor, n), struct(at_us, n)) AS begin, max_by(struct(actor, n), struct(at_us, n)) AS end
FROM runs
GROUP BY trial, holder, `group`, topic, `partition`, member, run
HAVING NOT min_by(is_last, struct(at_us, n))
"""

_PERIODS = """
SELECT trial, coalesce(try_cast(parameters['work_period_ms'] AS bigint), {default}) AS trial_period_ms FROM {trials}
"""

_ENDS = "SELECT trial, max(at_us) AS ended_us FROM {events} GROUP BY trial"

_STATES = """
WITH written AS (
  SELECT trial, actor, n, zxid, at_us, kind <> 'deleted' AS there,
         regexp_extract(get_json_object(detail, '$.path'), '^/brokers/topics/([^/]+)/partitions/([0-9]+)/state$', 1)
           AS topic,
         regexp_extract(get_json_object(detail, '$.path'), '^/brokers/topics/([^/]+)/partitions/([0-9]+)/state$', 2)
           AS number,
         from_json(get_json_object(detail, '$.data'), 'leader bigint, leader_epoch bigint, isr array<bigint>') AS state
  FROM {events}
  WHERE layer = 'registry' AND kind IN ('created', 'changed', 'deleted') AND detail LIKE '%/state"%'
)
SELECT trial, topic, cast(number AS int) AS `partition`, struct(zxid, '', n) AS moment, at_us,
       struct(actor, n) AS event, if(there, state, NULL) AS state
FROM written WHERE topic <> ''
"""

_LEADERSHIP_STEPS = """
WITH known AS (
  SELECT *, collect_set(if(state.leader >= 0, struct(state.leader, state.leader_epoch), NULL)) OVER (
    PARTITION BY trial, topic, `partition`) AS leaderships
  FROM {states}
)
SELECT trial, topic, `partition`, of.leader, of.leader_epoch, moment, at_us, event,
       coalesce(state.leader = of.leader AND state.leader_epoch = of.leader_epoch, false) AS open
FROM known LATERAL VIEW explode(leaderships) AS of
"""

_IN_SYNC_STEPS = """
WITH known AS (
  SELECT *, array_distinct(flatten(collect_list(state.isr) OVER (PARTITION BY trial, topic, `partition`))) AS replicas
  FROM {states}
)
SELECT trial, topic, `partition`, replica, moment, at_us, event,
       coalesce(array_contains(state.isr, replica), false) AS open
FROM known LATERAL VIEW explode(replicas) AS replica
"""

#: A key is held from a step that opens it, if it was not open, to the next that closes it, or to the history's end.
_INTERVALS = """
WITH turns AS (
  SELECT *, lag(open, 1, false) OVER (PARTITION BY {key} ORDER BY moment) AS was_open FROM {steps}
), bounds AS (
  SELECT *, lead(at_us) OVER key AS closed_us, lead(event) OVER key AS closed
  FROM turns WHERE open <> was_open
  WINDOW key AS (PARTITION BY {key} ORDER BY moment)
)
SELECT {key}, at_us AS begin_us, greatest(at_us, coalesce(closed_us, ended_us)) AS end_us,
       event AS begin, closed AS end
FROM bounds JOIN {ends} USING (trial) WHERE open
"""

_OWNED = ("layer", "`group`", "topic", "`partition`", "member")


def ownership_intervals(events: DataFrame, trials: DataFrame, ends: DataFrame) -> DataFrame:
    """EVENTS, TRIALS and `ends` to INTERVALS, in no order: all three layers of consumer groups."""
    spark = events.sparkSession
    periods = spark.sql(_PERIODS, trials=trials, default=WORK_PERIOD_MS).hint("broadcast")
    found = spark.sql(_EFFECT, events=events, periods=periods)
    for query in (_BELIEF_STEPS, _REGISTRY_STEPS):
        held = _intervals(spark.sql(query, events=events), ends, (*_OWNED, "holder"))
        found = found.unionByName(held.drop("holder"))
    return as_declared(found, INTERVALS)


def leaderships(events: DataFrame, ends: DataFrame) -> DataFrame:
    """EVENTS and `ends` to LEADERSHIPS, in no order."""
    steps = events.sparkSession.sql(_LEADERSHIP_STEPS, states=_states(events))
    found = _intervals(steps, ends, ("topic", "`partition`", "leader", "leader_epoch"))
    return as_declared(found, LEADERSHIPS)


def in_sync(events: DataFrame, ends: DataFrame) -> DataFrame:
    """EVENTS and `ends` to IN_SYNC, in no order."""
    steps = events.sparkSession.sql(_IN_SYNC_STEPS, states=_states(events))
    return as_declared(_intervals(steps, ends, ("topic", "`partition`", "replica")), IN_SYNC)


def trial_ends(events: DataFrame) -> DataFrame:
    """EVENTS to `ends`: trial, and when its last event was (`ended_us`, in µs)."""
    return events.sparkSession.sql(_ENDS, events=events)


def _states(events: DataFrame) -> DataFrame:
    """What was written to the state znodes of partitions. `state` is null where one was deleted."""
    return events.sparkSession.sql(_STATES, events=events)


def _intervals(steps: DataFrame, ends: DataFrame, of: tuple[str, ...]) -> DataFrame:
    """Intervals of a trial's keys, which the columns `of` tell apart."""
    key = ", ".join(("trial", *of))
    query = _INTERVALS.replace("{key}", key)
    return steps.sparkSession.sql(query, steps=steps, ends=ends.hint("broadcast"))
