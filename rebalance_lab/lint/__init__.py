"""The house's own lint: what ruff and import-linter cannot say about protocol code.

`python -m rebalance_lab.lint [PATH...]` prints one line for each problem and exits 1 if there
is any. Without paths it reads the project it is called in.
"""
