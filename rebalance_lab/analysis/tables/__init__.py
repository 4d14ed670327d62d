"""Spark tables: pure functions from DataFrame to DataFrame, each with a declared schema.

events → `ownership_intervals` → `trial_outcomes` → `claim_verdicts`. Each has an oracle in plain
Python, and a test that compares the two on random histories.
"""
