"""Spark tables: pure functions from DataFrame to DataFrame, each with a declared schema.

`analysis.parquet` gives HISTORIES, a row a trial with the place of its events. From there:

    histories → `ownership_intervals` (of the trials that are looked at)
    histories → `trial_results` → `trial_outcomes`, `rebalance_episodes`, `herd_costs`, `trial_measures`
    → `scenario_summaries`, `cost_fits`, `claim_verdicts`

Where one history ends: the first two run plain Python on one trial at a time (`trialwise`, and
the checks), in Spark's workers, because there the order of events matters and nothing is shared.
Where many begin: all others are Spark's own. Each has an oracle in plain Python, and a test that
compares the two on random histories.
"""
