"""How a page names and colours a verdict.

Verdict and status stand together: *as expected* alone says nothing of the claim, as a refuted one can be as
expected too. The colour is the verdict's; only a surprise has its own.
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
    """What stands for a verdict wherever a page names it."""
    came, status = verdict.verdict, verdict.status
    if not verdict.counts:
        return Badge("by-construction", f"{came}, by construction")
    kind = came if status == "as expected" else status
    text = came if came == status else f"{came}, {'a surprise' if status == 'surprise' else status}"
    return Badge(kind.replace(" ", "-"), text)
