"""Spark tables: pure functions from DataFrame to DataFrame, each with a declared schema.

`analysis.parquet` makes HISTORIES: a row a trial, with the place of its events. `trial_results` calls plain Python
(`trialwise`, and the checks) for one trial at a time, in Spark's workers, because there the order of events matters
and trials share nothing. All other tables are computed by Spark from its rows. Each has an oracle in plain Python, and
a test that compares the two on random histories.
"""
