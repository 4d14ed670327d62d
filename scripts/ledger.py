"""Run the trials that the ledger of claims needs, and write their verdicts into the docs.

    python scripts/ledger.py run --store DIR     run the trials that the store lacks, live ones first
    python scripts/ledger.py write --store DIR   write the table in docs/ledger.md from the store

`run` takes about half an hour on two idle cores. On a busy machine live trials are unknown.
`--real 0` leaves out the trials with real Kafka consumers, which need Maven.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rebalance_lab.analysis.claims import sort
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.analysis.verdicts import WORLDS, amounts
from rebalance_lab.cli.claims import analysed, seen
from rebalance_lab.history.files import HistoryError, Trial, read_trial, replay_command, trial_folders
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import REAL, Plan
from rebalance_lab.trials.scenario import plan_like

PAGE = Path(__file__).parent.parent / "docs" / "ledger.md"
BEGIN, END = "<!-- written by scripts/ledger.py -->", "<!-- end -->"

LIVE, SIMULATED = "processes", "simulated"
OURS = ("described", "shipped")

#: The rule set of brokers.
BROKERS = ("kip-320",)
ALL = (*OURS, REAL)

#: Brokers of Kafka are JVMs: their sessions must be longer than a slow start.
REAL_BROKERS = {"session_timeout_ms": "6000"}

#: Members wait most of the time, so several live trials run at once. A real member is a JVM and needs more.
LIVE_PROCESSES, REAL_PROCESSES, SIMULATED_PROCESSES = 6, 2, 2

#: The defaults of 0.8.2.2 for rebalance.backoff.ms (that of zookeeper.sync.time.ms) and zookeeper.session.timeout.ms.
KAFKA_DEFAULTS = {"rebalance_backoff_ms": "2000", "session_timeout_ms": "6000"}


@dataclass(frozen=True, slots=True)
class Sweep:
    """Trials of a scenario under each of `rules`, and a control of each. `live`, `simulated`, `real`: the number of
    seeds. A universal statement needs 5 decided live trials of each rule set; with 6 one may be disturbed."""

    scenario: str
    rules: tuple[str, ...] = ALL
    settings: Mapping[str, str] = field(default_factory=dict)
    live: int = 6
    simulated: int = 200
    real: int = 2

    def plans(self, world: str, rules: str) -> Iterator[Plan]:
        seeds = self.simulated if world == SIMULATED else self.real if rules == REAL else self.live
        for control in (False, True):
            for seed in range(1, 1 + (min(seeds, 1) if control else seeds)):
                yield api.make_plan(
                    self.scenario,
                    world=world,
                    rules=None if rules == REAL else rules,
                    implementation=REAL if rules == REAL else "ours",
                    seed=seed,
                    control=control,
                    settings=self.settings,
                )


SWEEPS = (
    Sweep("crash"),
    Sweep("walkthrough"),
    Sweep("walkthrough", ("described",), {"filter": "true"}),
    Sweep("rule"),
    Sweep("rule", OURS, {"members": "7"}, live=2, simulated=20),
    Sweep("herd"),
    *(
        Sweep(
            "herd",
            ("shipped",),
            {"partitions": "64", "members": str(size), "fetcher_stop_ms": str(stop_ms)},
            live=1,
            simulated=20,
        )
        for size in (4, 8, 12, 16, 24, 32)
        for stop_ms in (0, 100)
    ),
    Sweep("split-brain", live=2),
    Sweep("uncontrolled", OURS, live=2),
    Sweep("uncontrolled", OURS, KAFKA_DEFAULTS, live=2),
    # The stop outlasts the last attempt by only half a second, which a busy machine can use up: hence several trials.
    Sweep("uncontrolled", OURS, KAFKA_DEFAULTS | {"slow_stop_ms": "6500"}, live=3, simulated=20),
    Sweep("zombie", live=2),
    Sweep("group-scope"),
    Sweep("deadlock", OURS, live=2),
    Sweep("deadlock", OURS, {"keep": "false"}),
    # Power losses may take nothing, and a busy machine disturbs live trials: 50 and 1,000 decided ones are asked for.
    *(Sweep("committed-data", BROKERS, {"flush_messages": each}, live=60, simulated=1100) for each in ("0", "1")),
    Sweep("controller-race", BROKERS, simulated=220),
    Sweep("controller-failover", BROKERS, simulated=220),
    Sweep("controller-failover", BROKERS, {"watch_again": "false"}, simulated=220),
    *(
        Sweep("zombie-controller", BROKERS, {"moment": moment, "form": form, **more}, live=live, simulated=simulated)
        for moment, form, more, live, simulated in (
            ("deletion", "2.1", {}, 6, 220),
            ("deletion", "2.1", {"fences_writes": "false"}, 3, 30),
            ("deletion", "1.1", {}, 3, 30),
            ("deletion", "0.8.2", {}, 3, 30),
            ("order", "2.1", {}, 6, 220),
            ("order", "2.1", {"fences_orders": "false"}, 3, 30),
            ("deletion", "1.1", {"expires": "true"}, 6, 220),
            ("deletion", "0.8.2", {"expires": "true"}, 3, 30),
            ("reassignment", "2.1", {}, 6, 220),
            ("reassignment", "1.1", {}, 3, 30),
            ("reassignment", "0.8.2", {}, 3, 30),
            ("election", "2.1", {}, 6, 220),
            ("election", "1.1", {}, 3, 30),
            ("election", "0.8.2", {}, 3, 30),
            ("epoch", "2.1", {}, 6, 220),
            ("epoch", "1.1", {}, 3, 30),
            ("epoch", "0.8.2", {}, 3, 30),
            ("failover", "2.1", {}, 6, 220),
            ("failover", "1.1", {}, 3, 30),
            ("failover", "0.8.2", {}, 3, 30),
        )
    ),
    *(Sweep("idle-controller", BROKERS, {"keeps_reign": each}, simulated=220) for each in ("false", "true")),
    *(Sweep("mixed-versions", BROKERS, {"protocol": each}, simulated=220) for each in ("1.1", "2.7")),
    Sweep("duties", BROKERS, live=14, simulated=1000),
    *(Sweep("duties", BROKERS, {"duty": "delete-topic", "form": form}, simulated=220) for form in ("1.1", "0.8.2")),
    *(
        Sweep("duties", BROKERS, {"duty": "reassign-partitions", "awaits_deletion": awaits}, simulated=220)
        for awaits in ("false", "true")
    ),
    *(
        Sweep("isr-election", BROKERS, {"leaves": leaves, "selection": release}, simulated=220)
        for leaves, release in (("dies", "0.8.0"), ("dies", "2.1"), ("shuts-down", "0.8.2"), ("shuts-down", "2.1"))
    ),
    Sweep("isr-per-partition", BROKERS, simulated=220),
    Sweep("placement", BROKERS, simulated=220),
    Sweep("placement", BROKERS, {"racks": "3"}, simulated=220),
    Sweep("grow-only", BROKERS, simulated=220),
    *(
        Sweep("all-replicas-down", BROKERS, {"unclean": allowed, "wait_ms": "8000"}, live=3, simulated=30)
        for allowed in ("true", "false")
    ),
    *(
        Sweep(scenario, (REAL,), REAL_BROKERS | settings, real=4)
        for scenario, settings in (
            ("controller-race", {}),
            ("controller-failover", {"rounds": "2"}),
            ("zombie-controller", {"session_timeout_ms": "18000"}),
            ("isr-election", {"leaves": "dies"}),
            ("isr-election", {"leaves": "shuts-down"}),
            ("committed-data", {"fault": "kill", "rounds": "2"}),
            ("committed-data", {"fault": "pause", "rounds": "2"}),
            ("all-replicas-down", {"unclean": "true", "wait_ms": "8000"}),
            ("all-replicas-down", {"unclean": "false", "wait_ms": "8000"}),
            ("placement", {}),
        )
    ),
)


def plans(world: str, rules: Iterable[str]) -> list[Plan]:
    """All plans for a world and these rule sets, without duplicates."""
    chosen = tuple(rules)
    found = {
        plan.trial_id: plan
        for sweep in SWEEPS
        for each in sweep.rules
        if each in chosen
        for plan in sweep.plans(world, each)
    }
    return list(found.values())


def run(store: Path, *, real: bool) -> int:
    """Run what is missing. Returns 0 if every trial came out as its scenario expects, else 1."""
    store.mkdir(parents=True, exist_ok=True)
    there = _stored(store)
    steps = [(plans(LIVE, (REAL,)), REAL_PROCESSES)] if real else []
    ours = (*OURS, *BROKERS)
    steps += [(plans(LIVE, ours), LIVE_PROCESSES), (plans(SIMULATED, ours), SIMULATED_PROCESSES)]
    odd = 0
    for wanted, processes in steps:
        missing = [plan for plan in wanted if _name(plan) not in there]
        statuses: Counter[str] = Counter()
        for result in api.attempts(missing, store, processes):
            if isinstance(result, api.FailedTrial):
                statuses["failed"] += 1
                print(f"failed: {result.plan.trial_id}: {result.why}", file=sys.stderr)
                continue
            statuses[result.status] += 1
            if result.status != api.TrialStatus.AS_EXPECTED:
                print(f"{result.status}: {replay_command(result.folder)}", file=sys.stderr)
        odd += statuses.total() - statuses[api.TrialStatus.AS_EXPECTED]
        counts = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
        print(f"{len(wanted)} trials needed, {len(wanted) - len(missing)} stored, run: {counts or 'none'}", flush=True)
    return int(odd > 0)


def _stored(store: Path) -> set[str]:
    found = set()
    for folder in trial_folders(store):
        try:
            found.add(_name(read_trial(folder)))
        except HistoryError as error:
            print(f"left out: {error}", file=sys.stderr)
    return found


def _name(plan: Plan | Trial) -> str:
    """The trial id of a plan. For a stored trial that of its plan, because the name of a live folder has its time."""
    return plan.trial_id if isinstance(plan, Plan) else plan_like(plan).trial_id


def write(store: Path) -> int:
    found = sort(analysed(store).verdicts)
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    measured = ""
    if any(each.measured for each in found.tested):
        measured = f"What checks measured in the decided trials:\n\n{measures(found.tested)}\n"
    states = f"What the claims state:\n\n{statements()}\n"
    apart = f"By construction, and therefore not evidence:\n\n{table(found.constructed)}\n" if found.constructed else ""
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(found.tested)}\n{states}{measured}{apart}{END}{after}", "utf-8")
    return 0


def table(verdicts: Iterable[Verdict]) -> str:
    """The verdicts as a Markdown table, one row each."""
    rows = [
        "| claim | reading | expected | verdict | status | live | simulated |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in verdicts:
        counts = [seen(each, world) or "–" for world in ("live", "simulated")]
        cells = [each.claim, each.reading, each.expected, each.verdict, each.status, *counts]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def statements() -> str:
    """The statement of each claim as a Markdown table."""
    rows = ["| claim | statement |", "| --- | --- |"]
    rows += [f"| {name} | {claim.statement.replace('|', '&#124;')} |" for name, claim in read_ledger().claims.items()]
    return "\n".join(rows) + "\n"


def measures(verdicts: Iterable[Verdict]) -> str:
    """What the verdicts say of measures as a Markdown table, a row for each measure: the median, and in brackets the
    least and the most."""
    rows = ["| claim | reading | measure | live | simulated |", "| --- | --- | --- | --- | --- |"]
    for verdict in verdicts:
        found = {(each.what, each.world): amounts(asdict(each)) for each in verdict.measured}
        for what in dict.fromkeys(what for what, _ in found):
            cells = [verdict.claim, verdict.reading, what, *(found.get((what, world), "–") for world in WORLDS)]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--real", type=int, choices=(0, 1), default=1)
    chosen = parser.parse_args()
    return run(chosen.store, real=bool(chosen.real)) if chosen.what == "run" else write(chosen.store)


if __name__ == "__main__":
    sys.exit(main())
