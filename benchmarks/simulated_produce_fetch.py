"""A simulated trial in which one broker takes 1,000 records and gives them back: from its plan to its findings.

Run: python benchmarks/simulated_produce_fetch.py [--messages 1000] [--runs 20] [--json]

These are trials of `broker-crash` without crashes: a client writes the records one at a time, with acks=all, and reads
them in the end. Each run has another seed, so in one of ten the messages between client and broker pass as bytes; the
first trial of a process compiles codecs, and is not counted. Nothing is stored. Exit code 1 if the median is above
0.2 s of processor time for 1,000 records, or a check is not clean.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

from rebalance_lab.checks import Outcome, judge
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

ALLOWED_S = 0.2


def measured(messages: int, seed: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor. Raises SystemExit if a check is not clean."""
    plan = make_plan("broker-crash", seed=seed, control=True, settings={"messages": str(messages)})
    began, processor = time.perf_counter(), time.process_time()
    history, _ = simulate(plan)
    findings = judge(history)
    took = time.perf_counter() - began, time.process_time() - processor
    odd = [name for name, finding in findings.items() if finding.outcome is not Outcome.CLEAN]
    if odd:
        raise SystemExit(f"seed {seed}: not clean: {', '.join(odd)}")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.messages, options.runs) < 1:
        parser.error("messages and runs are at least 1")
    measured(options.messages, 0)
    clock, processor = zip(*(measured(options.messages, seed) for seed in range(1, options.runs + 1)), strict=True)
    answer: dict[str, Any] = {"messages": options.messages, "runs": options.runs}
    for name, seconds in (("clock", clock), ("processor", processor)):
        answer[name] = {"median_s": statistics.median(seconds), "min_s": min(seconds), "max_s": max(seconds)}
    if options.json:
        print(json.dumps(answer))
    else:
        print(f"{options.messages:,} records, {options.runs} trials:")
        for name in ("clock", "processor"):
            each = answer[name]
            print(f"  {name}: {each['median_s']:.3f} s ({each['min_s']:.3f} to {each['max_s']:.3f})")
    return 1 if answer["processor"]["median_s"] > ALLOWED_S * options.messages / 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
