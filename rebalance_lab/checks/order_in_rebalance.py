"""Z5a: in a rebalance a member first gives up all that it owns, then takes its share.

In the registry, between a member's REBALANCE_BEGAN and its next: a DELETED of an owner znode by its
session (a release) that follows a CREATED by it (a claim) breaks the order, unless it takes back what
this very rebalance created: after a conflict that is 0.8.2's way (facts 3.7). What goes with a session
is no release, and a member that had nothing to give up breaks no order. As the registry's times are
compared with the member's, a write within 2 ms of the beginning may be of the rebalance before, and
is left out unless there was none.

Witness: the REBALANCE_BEGAN, the claim and the release that followed it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted, not_violated, violated
from rebalance_lab.checks.lives import Rebalance, lives
from rebalance_lab.checks.model import About, Check, Finding
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, registry


@dataclass(slots=True)
class _Book:
    """What one rebalance wrote: its first claim, the paths it created, the first release too late."""

    rebalance: Rebalance
    claim: Event | None = None
    claims: int = 0
    releases: int = 0
    late: Event | None = None


def judge(history: History) -> Finding:
    """Measures: `rebalances` that wrote owner znodes, `both` of them that gave up and claimed, all
    their `claims` and `releases`; `count` of rebalances in which a release followed a claim."""
    books = _books(history)
    broken = [] if clock_drifted(history) else [book for book in books if book.late is not None]
    numbers = {
        "count": len(broken),
        "rebalances": len(books),
        "both": sum(bool(book.claims and book.releases) for book in books),
        "claims": sum(book.claims for book in books),
        "releases": sum(book.releases for book in books),
    }
    if broken:
        first = broken[0]
        began, claim, late = first.rebalance.began, first.claim, first.late
        assert claim is not None and late is not None
        why = f"{began.member} claimed {claim.topic}/{claim.partition}, then gave {late.topic}/{late.partition} up"
        return violated(why, (began.id, claim.id, late.id), numbers)
    nothing = None if numbers["claims"] else "no rebalance claimed a partition"
    why = "in every rebalance all releases came before the first claim"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _books(history: History) -> list[_Book]:
    """Rebalances that wrote owner znodes, in the order of their first writes."""
    rebalances: dict[str, list[Rebalance]] = {}
    for life in lives(history):  # one after another, where a process has several
        rebalances.setdefault(life.actor, []).extend(life.rebalances)
    starts = {actor: [one.began.at_us for one in its] for actor, its in rebalances.items()}
    actors = {event.session: event.actor for event in events_of(history, Kind.CONNECTED)}
    books: dict[tuple[str, int], _Book] = {}
    created: dict[tuple[str, int], set[object]] = {}
    for event in registry(history):
        actor = actors.get(event.session)
        if actor not in rebalances or event.partition is None or not _of_owner(event):
            continue
        index = bisect_right(starts[actor], event.at_us + TOLERANCE_US) - 1
        if index < 0 or (index > 0 and starts[actor][index] > event.at_us - TOLERANCE_US):
            continue
        key = (actor, index)
        book = books.setdefault(key, _Book(rebalances[actor][index]))
        _enter(book, event, created.setdefault(key, set()))
    return list(books.values())


def _of_owner(event: Event) -> bool:
    return str(event.of("path")).split("/")[3:4] == ["owners"]


def _enter(book: _Book, event: Event, created: set[object]) -> None:
    path = event.of("path")
    if event.kind is Kind.CREATED:
        book.claim = book.claim or event
        book.claims += 1
        created.add(path)
    elif event.kind is Kind.DELETED and event.of("with_session") is not True and path not in created:
        book.releases += 1
        if book.claim is not None and book.late is None:
            book.late = event


def _rebalanced(history: History) -> bool:
    return bool(events_of(history, Kind.REBALANCE_BEGAN))


CHECK = Check(
    name="order_in_rebalance",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="In a rebalance a member claimed a partition before it had given up all that it owned.",
    plants=("claim-before-release",),
    judge=judge,
    about=About.STATEMENT,
    applies=_rebalanced,
)
