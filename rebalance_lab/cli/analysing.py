"""Spark's part of the command line: from a store to an Analysis.

Spark is imported where it is needed, not at the top: no other command should wait for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.terminal import progress
from rebalance_lab.history.files import trial_folders


def analysed(store: Path) -> Analysis:
    """Have Spark read a store; one that is not there yet holds no trials. Raises Failure."""
    from rebalance_lab.analysis.analyse import analyse  # noqa: PLC0415
    from rebalance_lab.analysis.session import SparkStartError  # noqa: PLC0415

    with spoken():
        store.mkdir(parents=True, exist_ok=True)
        count = len(trial_folders(store))
        try:
            with progress().status(f"Spark reads {count} trials of {store}"):
                return analyse(store)
        except SparkStartError as error:
            raise Failure(str(error)) from error


def claims_shape(analysis: Analysis) -> dict[str, Any]:
    """The JSON of `claims --json`."""
    from rebalance_lab.analysis.analyse import claims_json  # noqa: PLC0415

    return claims_json(analysis)
