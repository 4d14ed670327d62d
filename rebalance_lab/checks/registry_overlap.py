"""O2, registry overlap: the registry held two owners of one partition at once.

ZooKeeper cannot do that: an owner is one znode. So this check tests the recorder: a violation means a hole in the
transaction log or a broken tap. Registry intervals are compared in the registry's own order (zxid, then log order),
never by time.

Witness: the event that made the first member owner, and the one that made the second owner although no deletion of the
first comes between them.
"""

from __future__ import annotations

from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.overlaps import longest, measures, overlaps
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import owners, registry


def judge(history: History) -> Finding:
    """Measures: `count`, `longest_us`, `total_us` (see `overlaps.measures`), by the server's clock."""
    intervals = owners(history)
    rank = {event.id: position for position, event in enumerate(registry(history))}

    def span(interval: Interval) -> tuple[int, int]:
        return (rank[interval.begin], len(rank) if interval.end is None else rank[interval.end])

    found = overlaps(intervals, span=span, closed=False)
    numbers = measures(found)
    if not found:
        nothing = None if intervals else "the registry never held an owner"
        return not_violated(history, "each partition had at most one owner at any zxid", numbers, vacuous=nothing)
    worst = longest(found)
    first, second = worst.first, worst.second
    return violated(
        f"{second.member} became owner of {first.topic}/{first.partition} while {first.member} owned it: "
        "ZooKeeper cannot do that, so the recorder lost an event",
        (first.begin, second.begin),
        numbers,
    )


CHECK = Check(
    name="registry_overlap",
    compares=(Layer.REGISTRY,),
    meaning="The registry held two owners of one partition at once. ZooKeeper cannot, so the recorder is wrong.",
    together=(
        "The registry names two owners of one partition. A znode cannot have two, so either the recording is "
        "incomplete or the server is broken. Do not trust anything else in this trial until that is cleared up."
    ),
    plants=(Planted("recorder-loses-releases", "zombie", control=True), Planted("two-owners", "zombie", control=True)),
    judge=judge,
    applies_to=(ZK,),
)
