"""The command behind `make soak`: clients that others wrote, on three brokers that fail at random.

`python scripts/soak.py [--minutes 10] [--client NAME]… [--set NAME=VALUE]… [--seed N] [--store DIR]` runs the scenario
`soak` for each client, one after another, and prints what was counted. A plant is a setting, as for `run`.
Exit 0: every trial came out as expected; 1: one did not; 2: unknown, or wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rebalance_lab.checks import Outcome
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan, PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.outside.client import LIBRARIES

EXIT_CODES = {api.TrialStatus.AS_EXPECTED: 0, api.TrialStatus.SURPRISE: 1}
UNKNOWN = 2


def counted(result: api.TrialResult) -> list[str]:
    """What a trial has counted, in lines for people."""
    measures = {name: finding.measures for name, finding in result.findings.items()}
    writes, garbage, again, order = (
        measures.get(name, {}) for name in ("lost_write", "garbage_read", "duplicate", "reordered")
    )
    lines = [f"{result.status}: {result.folder}"]
    if writes:
        lines.append(
            f"  {writes['acknowledged']} acknowledged, {writes['unanswered']} unanswered, {writes['count']} lost"
        )
    if garbage:
        lines.append(
            f"  {garbage['records']} read: {garbage['count']} never sent, {order['count']} out of order,"
            f" {again['count']} repeated"
        )
    lines += [
        f"  {name}: {finding.outcome}: {finding.why}"
        for name, finding in result.findings.items()
        if finding.outcome is not Outcome.CLEAN
    ]
    return lines


def plans(arguments: argparse.Namespace) -> list[Plan]:
    """One for each client. Raises PlanError."""
    settings = {"seconds": str(arguments.minutes * 60)}
    for text in arguments.set:
        name, separator, value = text.partition("=")
        if not separator:
            raise PlanError(f"--set {text}: write NAME=VALUE")
        settings[name] = value
    plant = settings.pop("plant", None)
    return [
        make_plan("soak", world="processes", seed=arguments.seed, settings={**settings, "client": client}, plant=plant)
        for client in arguments.client or LIBRARIES
    ]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--client", action="append", choices=tuple(LIBRARIES))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, default=Path("trials"))
    arguments = parser.parse_args(words)
    codes = [0]
    try:
        for plan in plans(arguments):
            result = api.run(plan, arguments.store)
            print("\n".join([f"{plan.text('client')}, {plan.number('seconds')} s", *counted(result)]), flush=True)
            codes.append(EXIT_CODES.get(result.status, UNKNOWN))
    except (PlanError, TrialError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return UNKNOWN
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
