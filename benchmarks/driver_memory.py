"""What the driver of `claims` and `report` has resident, by the number of trials.

Run: python benchmarks/driver_memory.py [--trials 1000,4000,16000] [--json]

Simulated trials are judged once, and their results repeated under new ids by Spark, so that only the driver's share of
the work is measured: all that it collects for a page, beside the list of the store's trials. Each size has a process of
its own. Python and Java are told apart; Java's heap has an upper bound (1 GB), Python has none.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name

from rebalance_lab.analysis import session
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.store import Store, read_store
from rebalance_lab.analysis.summarised import collected, places_of
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_results import RESULTS, judged_folders, trial_results
from rebalance_lab.cli.claims import TRIALS_SHOWN
from rebalance_lab.trials.api import make_plan, sweep

SCENARIOS = ("crash", "leave", "walkthrough", "zombie")


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that the driver had resident at one moment, in MB (10⁶ bytes)."""

    trials: int
    outcomes: int
    python_mb: float
    java_mb: float


def repeated(store: Store, trials: int) -> Store:
    """A store that lists its trials again and again under new ids. It has no folders of its own."""
    found = [
        (f"{name}-r{number:06}", name) for number in range(-(-trials // len(store.folders))) for name in store.folders
    ][:trials]
    return Store(
        store.path,
        {new: store.folders[name] for new, name in found},
        seen={new: store.seen[name] for new, name in found},
    )


def multiplied(results: DataFrame, trials: int, base: int) -> DataFrame:
    """RESULTS of so many trials: each of `base` again and again, as another trial with a history of its own."""
    numbers = results.sparkSession.range(-(-trials // base)).select(
        F.lpad(F.col("id").cast("string"), 6, "0").alias("r")
    )
    rows = results.crossJoin(numbers)
    rows = rows.withColumn("trial", F.concat("trial", F.lit("-r"), "r"))
    return rows.withColumn("history_sha256", F.sha2(F.concat("history_sha256", "r"), 256)).select(*RESULTS.fieldNames())


def _peak_mb(pid: int | str) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024 / 1e6


def measure(path: Path, trials: int, said: multiprocessing.connection.Connection) -> None:
    """Collect everything that a page is made of, in this process."""
    base = read_store(path)
    store = repeated(base, trials)
    with session.start(cores=2) as local:
        assert places_of(local.session, store, list(store.folders)).count() == trials
        judged = judged_folders(places_of(local.session, base, list(base.folders)))
        results = multiplied(trial_results(judged), trials, len(base.folders)).persist()
        analysis, _ = collected(results, readings_table(local.session, read_ledger()), TRIALS_SHOWN)
        outcomes = sum(each.trials for each in analysis.counts)
        said.send(Peak(trials, outcomes, _peak_mb("self"), _peak_mb(local.gateway.proc.pid)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", default="1000,4000,16000")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    peaks: list[Peak] = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch)
        plans = [make_plan(name, seed=seed) for name in SCENARIOS for seed in range(1, 6)]
        assert all(result.folder for result in sweep(plans, path))
        for trials in sorted(int(text) for text in arguments.trials.split(",")):
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=measure, args=(path, trials, sending))
            process.start()
            sending.close()
            peaks.append(receiving.recv())
            process.join()
    if arguments.json:
        print(json.dumps([asdict(peak) for peak in peaks]))
        return 0
    for peak in peaks:
        print(
            f"{peak.trials:>9,} trials, {peak.outcomes:>9,} outcomes: Python {peak.python_mb:7.0f} MB,"
            f" Java {peak.java_mb:6.0f} MB"
        )
    if len(peaks) > 1:
        each, start = np.polyfit([peak.trials for peak in peaks], [peak.python_mb for peak in peaks], 1)
        print(f"Python: {start:.0f} MB and {1000 * each:.1f} kB a trial (straight line by least squares)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
