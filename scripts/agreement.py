"""Write docs/agreement.md from a store of live trials: `python scripts/agreement.py --store DIR`.

The script compares the stored live trials of every scenario, with the scenario's own settings, with simulated
trials (`rebalance-lab agree`). With --run it first runs the live trials that are missing, one at a time. Leave the
machine idle meanwhile.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rebalance_lab.analysis.agreement.causes import CAUSES, Cause, Live, Size
from rebalance_lab.analysis.agreement.measures import MARGIN_TICKS
from rebalance_lab.analysis.agreement.statistics import (
    CONFIDENCE,
    LEAST_TRIALS,
    TOLERATED,
    Band,
    Values,
    as_values,
    beyond,
)
from rebalance_lab.analysis.agreement.verdicts import LEAST_SHARE, SIGNIFICANT, Agreement
from rebalance_lab.checks.model import ZK
from rebalance_lab.cli.agree_compared import compared
from rebalance_lab.cli.agree_samples import stored_trials
from rebalance_lab.cli.agree_shown import Comparison, name_of, quantile_text, reason
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import REAL, Plan
from rebalance_lab.trials.stage import TrialError

PAGE = Path(__file__).parent.parent / "docs" / "agreement.md"

#: What the page of an empty store says.
NOTHING = "No live trials have been compared yet."

#: For the table of what would be seen: simulated trials, and measures that are compared together.
POWER_SIMULATED, POWER_MEASURES = 300, 30


def power() -> str:
    """The rows of the table of what would be seen with so many live trials."""
    return "\n".join(_power(number) for number in (LEAST_TRIALS, 15, 30, 100))


def _power(number: int) -> str:
    margin_us, spread_us = 100_000, 1_000_000
    same = as_values([0] * POWER_SIMULATED)
    spread = as_values([spread_us * each // POWER_SIMULATED for each in range(POWER_SIMULATED)])
    live = as_values([spread_us * (2 * each + 1) // (2 * number) for each in range(number)])

    def differs(sample: Values, beside: Values, margin: int) -> bool:
        return beyond(sample, beside, Band(-margin, margin)).p_value * POWER_MEASURES < SIGNIFICANT

    others = (k for k in range(1, number + 1) if differs(as_values([0] * (number - k) + [1] * k), same, 0))
    shifts = (us for us in range(0, 2 * spread_us, 10_000) if differs(live + us, spread, margin_us))
    most = beyond(as_values([0] * number), same, Band(0, 0)).at_most
    return _row([str(number), f"{next(others) / number:.0%}", f"{next(shifts) / 1e6:.2f} s", f"{most:.0%}"])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


HEAD = f"""# Do live and simulated trials agree?

<!-- Written by scripts/agreement.py. Do not edit. -->

The simulator is meant to behave like processes on a real ZooKeeper, but in virtual time. The outcome of a check does
not show whether it does: an overlap of half a second and one of two seconds are both *violated*. So the distributions
of what was measured are compared:

    rebalance-lab agree zombie --live 30 --simulated 1000
    rebalance-lab agree zombie --members real --out zombie.svg     # real 0.8.2.2 consumers, too; and a picture

Live trials in the store (`--store`) are used, whatever their seeds; missing ones are run, one at a
time. Simulated ones are always run anew. Settings must be the same in both. Only the simulator has
`latency_min_us` and `latency_max_us`, which stand for the network and the server of the live world and are not
fitted to it, and `start_min_us` and `start_max_us`: how long a process takes to start, as measured on an idle machine.

## What is compared

For each trial these are compared: how long the group took to settle after each change or fault (named by its phase),
when the session of a fault's victim ended, overlaps of belief, effect and registry, time without owners, reactions, and
counts of notifications, rebalances, attempts, conflicts, reads and writes. They come from the checks' findings and
from the rebalance episodes between the first rest and the closing. The table is
`rebalance_lab/analysis/agreement/measures.py`. A trial is left out, and counted, if its fault had no effect, if it
missed a rest, or if a busy machine disturbed it. The share of trials left out is compared like a measure, and no cause
explains a difference in it, because the trials left out might have differed. If a check is *unknown*, only its measures
are left out. If fewer than {LEAST_SHARE:.0%} of the other trials have a value, the measure is *undecided*.

Real members (`real`) are console consumers of Kafka 0.8.2.2, which subscribe by a white list. They are compared with
simulated members of the rule set `shipped` that subscribe by the same white list, and so also list and watch
`/brokers/topics` (`rebalance_lab/subjects/zk_group/lab.py`). Real members commit offsets; the lab's do not. These
writes are recorded but do not count as writes (`rebalance_lab/checks/operations.py`); the check `herd_cost` bounds
them.

## How

Two values are the same if they differ by no more than the *margin*. For a time it is {MARGIN_TICKS:g} of a tick,
100 ms by default (for partition-times: for each partition). The server ends sessions at multiples of a tick, and a
back-off lasts as long as a tick, so smaller differences do not matter. Counts have no margin. Up to {TOLERATED:.0%}
of the trials may lie beyond it: 30 live trials cannot show less.

| verdict | what is shown, with {CONFIDENCE:.0%} confidence |
| --- | --- |
| *agrees* | no more than {TOLERATED:.0%} of live trials lie beyond the margin |
| *differs, explained* | more do, but no more than {TOLERATED:.0%} lie beyond margin and causes (see below) |
| *differs* | more trials lie beyond both than chance explains: one-sided Kolmogorov-Smirnov tests, Holm's correction |
| *undecided* | none of these. With fewer than {LEAST_TRIALS} trials of a world, agreement cannot be shown |

The share beyond is `max F_simulated(x - margin) - F_live(x)`, and the same from below. Its upper bound is taken at
each value separately (Clopper and Pearson), because agreement must hold at all of them. It detects a different spread
or frequency as well as a shift. The command exits with 0 if all agree or are explained, 1 if one differs, 2
if one is undecided.

### What would be seen

Fewer live trials show less. The table holds for {POWER_MEASURES} measures compared together and {POWER_SIMULATED}
simulated trials. A measure *differs* if at least this share of live trials has a value that no simulated one has. Where
simulated values are spread evenly over 1 s, as those of a reconnect are, it *differs* if live ones are later by at
least this shift (the margin is 0.1 s). Where all trials are alike, *agrees* shows that no more than the last share of
live trials is beyond the margin.

| live trials | share seen | shift seen | share that *agrees* leaves open |
| ---: | ---: | ---: | ---: |
{power()}

A smaller difference is *undecided* or *agrees*.

## What may explain a difference

These causes were declared beforehand, with direction and largest size. If a difference is larger, or goes the other
way, the verdict is *differs*. Sizes for each operation or write are multiplied by the number of them that the median
simulated trial needed in the time that is measured. They are medians over the trials of a sweep of all scenarios, on
two cores that other work shared. A back-off is granted trial by trial: for each attempt that failed in a live trial,
in the time that is measured, beyond those of the median simulated trial.

| cause | live may be later by | earlier by | of | why |
| --- | --- | --- | --- | --- |
"""

AFTER_CAUSES = """
One cause has no size. If operations take longer, more changes come between two reads of a list, and these changes cause
only one notification and one rebalance. So counts are lower, but only if several members come and go at once. How much
lower depends on the schedule. If a count differs, the live trials are therefore compared once more, with as many
simulated trials whose `latency_max_us` makes the average operation as long as in the median live trial. All counts then
get the verdict of that comparison; where it agrees, the difference is explained by *slow operations*.

*Command*, *tick* and *slow operations* were declared after a first comparison, when the histories had shown what
happened: in `flapping`, in the second crash of `drill`, and in `storm`.

`tests/cli/test_agree_counterfeit.py` runs the command on a simulator that reconnects a second too early, as the lab's
once did with one server. With 30 of its trials in place of live ones, the zombie's effect overlap *differs*.

## To make this page

    python scripts/agreement.py --store DIR --run --live 30 --rules described,shipped

runs what is missing in the store and writes the page; without `--run` it compares what is there, and
`--scenarios crash,zombie` takes only these. A live trial takes as long as its script (2 s for `growth`, 55 s for
`drill`, 3 to 10 s for most) plus about 5 s for its processes. So 30 trials of each scenario and rule set take six
hours. The machine must be idle otherwise, because work that competes for its cores shows as a difference.

## Results
"""


def causes() -> Iterator[str]:
    """The rows of the table of causes."""
    for cause in CAUSES:
        later = (
            "1 back-off for each failed attempt more; requests: those of an attempt"
            if cause.repeats
            else _size(cause.later)
        )
        yield _row([cause.name, later, _size(cause.earlier), _where(cause), cause.why])


def _size(size: Size) -> str:
    parts = [
        (size.once_us, f"{size.once_us / 1000:g} ms"),
        (size.operation_us, f"{size.operation_us / 1000:g} ms an operation"),
        (size.write_us, f"{size.write_us / 1000:g} ms a write"),
        (size.start_us, f"{size.start_us / 1000:g} ms for each member that starts"),
        (size.ticks, f"{size.ticks} tick"),
        (size.finder_rounds, f"{size.finder_rounds} round of the leader finder for each member that starts and leaves"),
        (size.attempt_percent, f"each of {size.attempt_percent} % of the attempts, by chance"),
    ]
    return " + ".join(text for number, text in parts if number) or "-"


def _where(cause: Cause) -> str:
    families = ", ".join(sorted(cause.families))
    live = "" if len(cause.live) == len(Live) else f"; {', '.join(sorted(cause.live))} only"
    return families + live


def kinds(rules: Sequence[str]) -> Iterator[tuple[Live, Plan]]:
    """Every kind of trial of a consumer group that can be played in both worlds, with the scenario's own settings."""
    for name in api.scenario_names():
        chosen = api.scenario(name)
        if chosen.subject.name == ZK and {"simulated", "processes"} <= set(chosen.worlds):
            for each in rules:
                if each == REAL:
                    yield Live.REAL, api.make_plan(name, world="processes", implementation=REAL)
                else:
                    yield Live.PROCESSES, api.make_plan(name, world="processes", rules=each)


def comparisons(arguments: argparse.Namespace) -> Iterator[Comparison]:
    """Each kind of which the store has live trials, or with `run` every one."""
    for world, plan in kinds(arguments.rules.split(",")):
        if arguments.scenarios and plan.scenario not in arguments.scenarios.split(","):
            continue
        there = sum(1 for _ in stored_trials(plan, arguments.store))
        number = arguments.live if arguments.run else min(there, arguments.live)
        if not number:
            continue
        print(
            f"{plan.scenario} {plan.variant}: {number} live trials, {min(there, number)} of them stored",
            file=sys.stderr,
        )
        try:
            yield compared(world, plan, number, arguments.simulated, arguments.store, arguments.processes)
        except TrialError as refused:
            print(f"{plan.scenario} {plan.variant}: left out: {refused}", file=sys.stderr)


def results(found: Sequence[Comparison]) -> Iterator[str]:
    """The tables of what was compared."""
    if not found:
        yield NOTHING
        return
    simulated = max(len(each.simulated) for each in found)
    yield f"Measures of each verdict, beside {simulated} simulated trials."
    yield ""
    yield _row(["scenario", "members", "live trials", "left out", *Agreement])
    yield _row(["---"] * 3 + ["---:"] * 5)
    yield from (_row(_summary(each)) for each in found)
    for verdict in (Agreement.DIFFERS, Agreement.EXPLAINED, Agreement.UNDECIDED):
        yield from _listed(found, verdict)


def _summary(comparison: Comparison) -> list[str]:
    trials = comparison.live.trials
    counts = Counter(row.verdict for row in comparison.rows)
    out = sum(trial.left_out is not None for trial in trials)
    return [*_names(comparison), str(len(trials)), str(out), *(str(counts[verdict]) for verdict in Agreement)]


def _names(comparison: Comparison) -> list[str]:
    return [comparison.live.plan.scenario, comparison.live.plan.variant]


def _listed(found: Sequence[Comparison], verdict: Agreement) -> Iterator[str]:
    """The measures of a verdict that are not the same in every trial, with their numbers."""
    rows = [(each, row) for each in found for row in each.rows if row.verdict is verdict and not row.constant]
    if not rows:
        return
    yield ""
    yield f"### {str(verdict).capitalize()}"
    yield ""
    yield "The numbers are the 5 %, 50 % and 95 % quantiles of each sample."
    yield ""
    yield _row(["scenario", "members", "measure", "live", "simulated", "why"])
    yield _row(["---"] * 6)
    for each, row in rows:
        numbers = [quantile_text(row, sample) for sample in (row.live, row.simulated)]
        yield _row([*_names(each), name_of(row), *numbers, reason(row)])


def explanations() -> str:
    """The page without its results: the same on every machine."""
    return "\n".join([HEAD.rstrip("\n"), *causes()]) + "\n" + AFTER_CAUSES


def page(found: Sequence[Comparison]) -> str:
    return explanations() + "\n" + "\n".join(results(found)) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/agreement.md from a store of live trials.")
    parser.add_argument("--store", type=Path, required=True, help="where live trials are kept")
    parser.add_argument("--run", action="store_true", help="run the live trials that are missing")
    parser.add_argument("--live", type=int, default=30, help="live trials of each kind, at most")
    parser.add_argument("--simulated", type=int, default=300, help="simulated trials of each kind")
    parser.add_argument("--processes", type=int, default=2, help="local processes that simulate")
    parser.add_argument("--rules", default="described,shipped,real", help="of described, shipped, real, with commas")
    parser.add_argument("--scenarios", default="", help="only these, with commas")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page")
    arguments = parser.parse_args()
    if not arguments.store.is_dir() and not arguments.run:
        parser.error(f"there is no store {arguments.store}")
    arguments.store.mkdir(parents=True, exist_ok=True)
    found = list(comparisons(arguments))
    arguments.out.write_text(page(found), encoding="utf-8")
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
