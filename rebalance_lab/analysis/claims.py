"""Readings sorted by what they show, and claims as JSON. Nothing here needs Spark."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rebalance_lab.analysis.ledger import Judgement, Status
from rebalance_lab.analysis.results import Analysis, Verdict

#: The note on readings whose members were built from the sentence that they confirm.
BY_CONSTRUCTION = (
    "By construction, which is not evidence: the members of these readings were built from the sentence that they test."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Sorted:
    """The readings of a ledger, each in one of three groups, by status and in the ledger's order. `tested`: the
    evidence; `constructed`: what was run and holds by construction; `not_run`: the others."""

    tested: tuple[Verdict, ...]
    constructed: tuple[Verdict, ...]
    not_run: tuple[Verdict, ...]


def sort(verdicts: Iterable[Verdict], order: Sequence[Status] = tuple(Status)) -> Sorted:
    """Separate evidence from what holds by construction and from what was not run. `order`: all statuses."""
    ordered = sorted(verdicts, key=lambda verdict: order.index(verdict.status))
    run = [verdict for verdict in ordered if verdict.status is not Status.NOT_RUN]
    return Sorted(
        tested=tuple(verdict for verdict in run if verdict.counts),
        constructed=tuple(verdict for verdict in run if not verdict.counts),
        not_run=tuple(verdict for verdict in ordered if verdict.status is Status.NOT_RUN),
    )


def statuses(verdicts: Iterable[Verdict]) -> list[Status]:
    """The statuses of the readings that count, for exit codes and counts."""
    return [verdict.status for verdict in verdicts if verdict.counts]


def claim_status(verdicts: Iterable[Verdict]) -> Status:
    """A claim's status: the first that any of its readings has, without what holds by construction."""
    return min(statuses(verdicts), key=list(Status).index, default=Status.NOT_RUN)


def as_it_came(verdicts: Iterable[Verdict]) -> str:
    """What the readings that are as expected came out as: ` (8 reproduced, 3 refuted)`. Empty where none was
    refuted."""
    counts = Counter(verdict.verdict for verdict in verdicts if verdict.status is Status.AS_EXPECTED)
    refuted = counts[Judgement.REFUTED]
    return f" ({counts[Judgement.REPRODUCED]:,} reproduced, {refuted:,} refuted)" if refuted else ""


def not_run(verdicts: Sequence[Verdict]) -> list[str]:
    """The claims without any reading that was run, and the single readings of others: `Z2`, `Z7c (the write bound)`."""
    readings: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        readings.setdefault(verdict.claim, []).append(verdict)
    found = []
    for claim, its in readings.items():
        waiting = [each.reading for each in its if each.status is Status.NOT_RUN]
        found += [claim] if len(waiting) == len(its) else [f"{claim} ({reading})" for reading in waiting]
    return found


def claims_json(analysis: Analysis) -> dict[str, Any]:
    """What `claims --json` prints: `{id: {"status": …, "readings": {name: {…}}}}`, in the
    ledger's order (see `claim_status`)."""
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in analysis.verdicts:
        by_claim.setdefault(verdict.claim, []).append(verdict)
    return {
        claim: {"status": claim_status(its), "readings": {each.reading: _reading_json(each) for each in its}}
        for claim, its in by_claim.items()
    }


def _reading_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "expected": verdict.expected,
        "verdict": verdict.verdict,
        "status": verdict.status,
        "by_construction": verdict.by_construction,
        "trials": verdict.live + verdict.simulated,
        "live": verdict.live,
        "simulated": verdict.simulated,
        "frequencies": [dataclasses.asdict(each) for each in verdict.frequencies],
        "measured": [dataclasses.asdict(each) for each in verdict.measured],
        "fits": [dataclasses.asdict(each) for each in verdict.fits],
        "witness": verdict.witness,
        "replay": verdict.replay,
        "why": verdict.why,
    }
