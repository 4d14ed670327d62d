"""Shared by the benchmarks of simulated trials: sweeps of one scenario over many seeds, timed."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from rebalance_lab.trials.api import make_plan, sweep


def measure(scenario: str, settings: Mapping[str, str], trials: int, processes: int) -> tuple[float, Counter[str]]:
    """Seconds for one sweep over the seeds from 0, and how often each check had each outcome."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as store:
        began = time.perf_counter()
        plans = (make_plan(scenario, seed=seed, settings=settings) for seed in range(trials))
        for result in sweep(plans, Path(store), processes):
            outcomes.update(f"{name}: {finding.outcome.value}" for name, finding in result.findings.items())
        seconds = time.perf_counter() - began
    return seconds, outcomes


def main(description: str, scenario: str, settings: Mapping[str, str]) -> None:
    """Parse the command line, run the sweeps, print medians and outcomes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seconds = []
    outcomes: Counter[str] = Counter()
    for _ in range(arguments.runs):
        took, outcomes = measure(scenario, settings, arguments.trials, arguments.processes)
        seconds.append(took)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = {
        "scenario": scenario,
        "trials": arguments.trials,
        "processes": arguments.processes,
        "median_s": round(statistics.median(seconds), 2),
        "min_s": round(min(seconds), 2),
        "max_s": round(max(seconds), 2),
        "workers_cpu_s": round((workers.ru_utime + workers.ru_stime) / arguments.runs, 2),
        "outcomes": dict(sorted(outcomes.items())),
    }
    if arguments.json:
        print(json.dumps(answer))
        return
    print(
        f"{answer['trials']} trials of {scenario}, {answer['processes']} processes: median {answer['median_s']} s"
        f" of {arguments.runs} runs (from {answer['min_s']} to {answer['max_s']} s;"
        f" {answer['workers_cpu_s']} s of processor time each)"
    )
    for name, count in sorted(outcomes.items()):
        print(f"  {name}: {count}")
