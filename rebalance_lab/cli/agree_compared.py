"""What `agree` does: it plans and runs both samples, and compares them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rebalance_lab.analysis.agreement.causes import Live
from rebalance_lab.analysis.agreement.verdicts import Agreement, asks_for_slowed, beside_slowed, compare, overall
from rebalance_lab.cli import agree_samples
from rebalance_lab.cli.agree_shown import Comparison
from rebalance_lab.cli.exit_codes import AS_EXPECTED, SURPRISE, UNKNOWN
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import Members
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

EXIT_CODES = {
    Agreement.AGREES: AS_EXPECTED,
    Agreement.EXPLAINED: AS_EXPECTED,
    Agreement.DIFFERS: SURPRISE,
    Agreement.UNDECIDED: UNKNOWN,
}


def exit_code(found: Sequence[Comparison]) -> int:
    return EXIT_CODES[overall(row for comparison in found for row in comparison.rows)]


def live_plans(
    scenario: str, rules: str | None, members: Members, control: bool, values: dict[str, str]
) -> dict[Live, Plan]:
    """The plans of the live samples. Raises Failure, PlanError for what cannot be played in both worlds."""
    if members is Members.mixed:
        raise Failure("--members mixed: causes of differences are declared for groups of one kind; use --members real")
    plan = partial(api.make_plan, scenario, world="processes", control=control, settings=values)
    if members is Members.ours:
        return {Live.PROCESSES: plan(rules=rules)}
    real = plan(rules=rules, implementation=members)
    return {Live.PROCESSES: plan(rules=real.rules), Live.REAL: real}


def compared(world: Live, plan: Plan, live: int, simulated: int, store: Path, processes: int) -> Comparison:
    """`live` trials of a live plan compared with simulated ones. If counts differ, they are also compared with
    simulated trials whose operations are as slow as live ones. Simulated trials are run first, because they show at
    once what real members cannot play. Raises TrialError, and what `live_sample` raises."""
    counterpart = agree_samples.simulated_plan(plan)
    beside = agree_samples.simulated_sample(counterpart, simulated, processes)
    sample = agree_samples.live_sample(world, plan, live, store)
    rows = compare(sample.trials, beside, world, plan.parameters)
    slowed = agree_samples.slowed_plan(counterpart, sample.trials, beside)
    if slowed is None or not asks_for_slowed(rows):
        return Comparison(sample, beside, rows)
    trials = agree_samples.simulated_sample(slowed, simulated, processes)
    return Comparison(
        sample, beside, beside_slowed(rows, compare(sample.trials, trials, world, plan.parameters)), slowed
    )


def draw(found: Sequence[Comparison], out: Path) -> None:
    # altair is imported only here, because its import is slow.
    from rebalance_lab.report.charts.agreement import write_picture  # noqa: PLC0415

    write_picture([(comparison.title, comparison.rows) for comparison in found], out)
