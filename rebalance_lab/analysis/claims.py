"""Claims for other programs. Light: nothing here needs Spark."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rebalance_lab.analysis.results import Analysis, Verdict

#: The statuses of a reading, the one that says most first.
GRAVITY = ("surprise", "unknown", "as expected", "not run")


#: What to know of readings whose members were built from the text that they confirm.
BY_CONSTRUCTION = (
    "Readings `described` confirm the text by construction: their members are built as the articles have it."
)


def by_construction(verdicts: Iterable[Verdict]) -> str | None:
    """BY_CONSTRUCTION, where it has anything to say: a reading `described` was reproduced."""
    confirmed = any(each.reading == "described" and each.verdict == "reproduced" for each in verdicts)
    return BY_CONSTRUCTION if confirmed else None


def claim_status(readings: Iterable[str]) -> str:
    """A claim's status: that of its gravest reading. Readings that were not run do not hide the
    others, and nothing hides a surprise."""
    return min(readings, key=GRAVITY.index)


def claims_json(analysis: Analysis) -> dict[str, Any]:
    """What `claims --json` prints: `{id: {"status": …, "readings": {name: {…}}}}`, in the
    ledger's order (see `claim_status`)."""
    claims: dict[str, Any] = {}
    for verdict in analysis.verdicts:
        claim = claims.setdefault(verdict.claim, {"status": None, "readings": {}})
        claim["readings"][verdict.reading] = {
            "expected": verdict.expected,
            "verdict": verdict.verdict,
            "status": verdict.status,
            "trials": verdict.live + verdict.simulated,
            "live": verdict.live,
            "simulated": verdict.simulated,
            "frequencies": [dataclasses.asdict(each) for each in verdict.frequencies],
            "fits": [dataclasses.asdict(each) for each in verdict.fits],
            "witness": verdict.witness,
            "replay": verdict.replay,
            "why": verdict.why,
        }
    for claim in claims.values():
        claim["status"] = claim_status([reading["status"] for reading in claim["readings"].values()])
    return claims
