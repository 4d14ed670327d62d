"""A table from Spark: how many ZooKeeper requests each scenario makes, by SQL over the events of its trials."""

import rebalance_lab

for scenario in ("leave", "crash", "zombie"):
    rebalance_lab.sweep(scenario, seeds=3, store="trials-for-spark")
trials = rebalance_lab.load_store("trials-for-spark")

with rebalance_lab.spark() as running:
    for table in ("events", "trials"):
        trials.to_spark(table, running.session).createOrReplaceTempView(table)
    running.session.sql("""
        SELECT scenario, get_json_object(detail, '$.op') AS operation,
               count(*) DIV count(DISTINCT trial) AS per_trial
        FROM events JOIN trials USING (trial)
        WHERE kind = 'invoked' AND actor LIKE 'm%'  -- the requests of members
        GROUP BY ALL
        ORDER BY scenario, per_trial DESC
    """).show()
