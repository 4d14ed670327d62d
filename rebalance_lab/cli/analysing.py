"""Spark's part of the command line: from a store to an Analysis."""

from __future__ import annotations

from pathlib import Path

from rebalance_lab.analysis.results import Analysis, Verdict
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.terminal import progress
from rebalance_lab.history.files import trial_folders


def analysed(store: Path) -> Analysis:
    """Have Spark read a store. Raises Failure."""
    # Spark is imported here: no other command should wait for it.
    from rebalance_lab.analysis.analyse import analyse  # noqa: PLC0415
    from rebalance_lab.analysis.session import SparkStartError  # noqa: PLC0415

    if store.exists() and not store.is_dir():
        raise Failure(f"{store} is no folder; a store is a folder of trials")
    count = len(trial_folders(store))
    try:
        with spoken(), progress().status(f"Spark reads {count} trials of {store}"):
            return analyse(store)
    except SparkStartError as error:
        raise Failure(str(error)) from error


#: The statuses of a claim, the one that says most first.
GRAVITY = ("surprise", "unknown", "as expected", "not run")


def by_claim(verdicts: tuple[Verdict, ...]) -> dict[str, list[Verdict]]:
    """The readings of each claim, in the ledger's order."""
    claims: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        claims.setdefault(verdict.claim, []).append(verdict)
    return claims


def status_of(readings: list[Verdict]) -> str:
    """A claim's status: that of its gravest reading; readings that were not run do not hide the
    others."""
    return min((reading.status for reading in readings), key=GRAVITY.index)
