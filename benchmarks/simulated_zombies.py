"""1,000 simulated zombie trials, checked and written, in two processes: medians of five.

Run: python benchmarks/simulated_zombies.py [--trials 1000] [--runs 5] [--processes 2] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from rebalance_lab.trials.api import make_plan, sweep


def measure(trials: int, processes: int) -> tuple[float, Counter[str]]:
    """Seconds for one sweep, and how often each check had each outcome."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as store:
        began = time.perf_counter()
        for result in sweep((make_plan("zombie", seed=seed) for seed in range(trials)), Path(store), processes):
            outcomes.update(f"{name}: {finding.outcome.value}" for name, finding in result.findings.items())
        seconds = time.perf_counter() - began
    return seconds, outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seconds = []
    outcomes: Counter[str] = Counter()
    for _ in range(arguments.runs):
        took, outcomes = measure(arguments.trials, arguments.processes)
        seconds.append(took)
    answer = {
        "trials": arguments.trials,
        "processes": arguments.processes,
        "median_s": round(statistics.median(seconds), 2),
        "min_s": round(min(seconds), 2),
        "max_s": round(max(seconds), 2),
        "outcomes": dict(sorted(outcomes.items())),
    }
    if arguments.json:
        print(json.dumps(answer))
        return
    print(
        f"{answer['trials']} zombies, {answer['processes']} processes: median {answer['median_s']} s"
        f" of {arguments.runs} runs (from {answer['min_s']} to {answer['max_s']} s)"
    )
    for name, count in sorted(outcomes.items()):
        print(f"  {name}: {count}")


if __name__ == "__main__":
    main()
