"""How a page names and colours a verdict.

Verdict and status are shown together, because *as expected* alone says nothing about the claim: a
refuted claim can be as expected, too. The colour is that of the verdict; only a surprise has its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.analysis.results import Verdict


@dataclass(frozen=True, slots=True)
class Badge:
    """`kind`: the end of its CSS class (`chip-refuted`); `text`: `refuted, as expected`."""

    kind: str
    text: str


def badge(verdict: Verdict) -> Badge:
    """The badge of a verdict, the same wherever a page names it."""
    came, status = verdict.verdict, verdict.status
    if not verdict.counts:
        return Badge("by-construction", f"{came}, by construction")
    kind = came if status == "as expected" else status
    text = came if came == status else f"{came}, {'a surprise' if status == 'surprise' else status}"
    return Badge(kind.replace(" ", "-"), text)
