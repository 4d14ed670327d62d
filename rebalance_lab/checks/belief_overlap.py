"""O1, belief overlap: two members believe at once that they own one partition.

The check compares belief intervals (`history.intervals`) of two members exactly, on the host's one clock (or virtual
time); an overlap must have a length. Claim Z10 depends on it. An overlap is not a bug by itself: if nothing fences a
member, the overlap lasts at least until the member notices.

Witness: the two OWNED events, and the event that ended the belief which ended first (DISOWNED, MEMBER_CLOSED or a kill;
left out if the history ends first). Histories are complete, so these three prove that both believed from the second
OWNED to the third event.
"""

from __future__ import annotations

from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.overlaps import longest, measures, overlaps
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import beliefs


def judge(history: History) -> Finding:
    """Measures: `count`, `longest_us`, `total_us` (see `overlaps.measures`)."""
    intervals = beliefs(history)
    found = overlaps(intervals, closed=False)
    numbers = measures(found)
    if not found:
        nothing = None if intervals else "no member ever believed that it owned a partition"
        why = "no two members believed at the same time that they owned the same partition"
        return not_violated(history, why, numbers, vacuous=nothing)
    worst = longest(found)
    first, second = worst.first, worst.second
    ended = first.end if first.end_us <= second.end_us else second.end
    return violated(
        f"{worst.names} both believed for {seconds(worst.length_us)} that they owned {first.topic}/{first.partition}",
        (first.begin, second.begin, ended),
        numbers,
    )


CHECK = Check(
    name="belief_overlap",
    compares=(Layer.BELIEF,),
    meaning="Two members believed at the same time that they owned the same partition.",
    together=(
        "Two members believe at the same time that they own the same partition. The registry cannot prevent this: it "
        "names one owner, but the other member learns of it only when it asks."
    ),
    plants=(Planted("ignore-claim-conflict", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
