"""Z5a: in each attempt to rebalance, a member first gives up all that it owns, and then claims its share.

A member owns the owner znodes that its session created and that have not been deleted, in the order of zxids. It also
owns those whose data name it, if no CONNECTED names their session. An attempt breaks the order if

1. it claims (CREATED of an owner znode) while the member owns a znode that an earlier attempt created;
2. it claims nothing, and the rebalance ends while the member owns such a znode: the member kept the znode instead of
   deleting and creating it again. A rebalance that ends without an attempt counts as one. Some rebalances are excused:
   those that found no broker, or whose member was shutting down, or all of whose attempts failed
   (`rebalance_evidence`). If an excuse is possible and not shown, the check is unknown;
3. it claims, and then deletes an owner znode that it did not create itself;
4. it claims while the member still believes that it owns, or works on, what it had before the attempt.

A claim between two attempts, or before the first one, breaks the order as well: the member gave nothing up for it.

The check is unknown if no attempt both gave up a partition and claimed one, although members came or went while others
owned partitions: then the order was not tested.

In Kafka 0.8.2 each attempt releases before it claims (`ZookeeperConsumerConnector.rebalance`), and deletes what it has
just created if one of its claims fails (`reflectPartitionOwnershipDecision`). A member has not given up what it has
forgotten (F7, F8), so that breaks the order too. When a session has closed, its znodes no longer belong to the member.
A member with `keep.claims.on.conflict` may keep what earlier attempts of the same rebalance claimed.

A write belongs to the attempt in which the member received the reply with the write's zxid. Where operations are only
counted, the time of the write decides. Within 2 ms of the beginning of an attempt it may belong to the attempt before;
if the finding depends on that, it is unknown.

Witness: the ATTEMPT_BEGAN, and

- for 1 and 2 the CREATED of the znode that was kept, and the claim or the REBALANCE_ENDED;
- for 3 the first claim and the DELETED;
- for 4 the first claim, and the begin and the end of the belief or of the run of work.

For a claim outside of attempts: the end of the attempt before it, and the claim.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import Attempt, MemberLife, Rebalance, member_lives
from rebalance_lab.checks.missed_watch import member_changes
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import next_rest
from rebalance_lab.checks.rebalance_evidence import Excuse, excuse
from rebalance_lab.checks.znodes import sessions_of, znodes_of
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.rebalances import RebalanceOutcome
from rebalance_lab.history.views import actor_by_session, beliefs, effects, events_of, grouped, once, registry

#: The setting of claim Z16, as MEMBER_STARTED names it (`lab`).
_KEEP_CLAIMS = "keep.claims.on.conflict"

_FAILED_BEFORE = "it failed before its release, for a reason that the history does not show"


@dataclass(frozen=True, slots=True)
class _AttemptRange:
    """The indices of the first and the last attempt of a process to which a write may belong. -1: before all
    attempts."""

    first: int
    last: int

    @property
    def sure(self) -> bool:
        return self.first == self.last


@dataclass(slots=True)
class _Znode:
    """An owner znode. `mine`: whether it belongs to the process. `span`: if so, the attempts that may have created
    it."""

    created: Event
    span: _AttemptRange
    mine: bool
    deleted: Event | None = None


@dataclass(slots=True)
class _AttemptWrites:
    """What one attempt wrote below `owners`. `claim`: its first claim; if none surely belongs to it (`sure`), the first
    that may. `created`: the paths of the znodes that it may have created."""

    life: MemberLife
    rebalance: Rebalance
    attempt: Attempt
    claim: Event | None = None
    sure: bool = False
    claims: int = 0
    releases: int = 0
    created: set[object] = field(default_factory=set)

    @property
    def keeps(self) -> bool:
        """Whether its member keeps the claims of a failed attempt."""
        lab = self.life.started.of("lab")
        return isinstance(lab, list) and _KEEP_CLAIMS in lab


@dataclass(frozen=True, slots=True)
class _Breach:
    """A breach of the order. `began`: the ATTEMPT_BEGAN, or a claim outside of attempts. `sure`: False if it would not
    be a breach for a reason that the history leaves open (`unless`)."""

    began: Event
    why: str
    witness: tuple[EventId, ...]
    sure: bool
    unless: str = "one of these writes belongs to another attempt"


def judge(history: History) -> Finding:
    """Measures: `count`, the attempts that broke the order and the claims outside of attempts; `attempts`, those that
    wrote owner znodes; `both`, those that released and claimed; `claims` and `releases` of all attempts (deleting its
    own claim is not a release)."""
    by_actor = grouped(member_lives(history), lambda life: life.actor)
    processes = [_Process(history, actor, lives) for actor, lives in by_actor.items()]
    found = [one for process in processes for one in (*process.broken(), *process.continued())]
    broken = [one for one in found if one.sure]
    books = [book for process in processes for book in process.books if book.claims or book.releases]
    numbers = {
        "count": len({one.began.id for one in broken}),
        "attempts": len(books),
        "both": sum(bool(book.claims and book.releases) for book in books),
        "claims": sum(book.claims for book in books),
        "releases": sum(book.releases for book in books),
    }
    if broken:
        first = min(broken, key=lambda one: one.began.at_us)
        return violated(first.why, first.witness, numbers)
    doubts = [] if numbers["claims"] else ["no rebalance claimed a partition"]
    if numbers["claims"] and not numbers["both"] and (change := occasion(history)) is not None:
        doubts.append(f"no attempt both gave up a partition and claimed one, although {change.of('path')} came or went")
    if found:
        doubts.append(f"{found[0].why}, unless {found[0].unless}")
    why = "in every attempt the member gave up all that it owned before its first claim"
    return not_violated(history, why, numbers, vacuous="; ".join(doubts) or None, across_layers=True)


@once
def _owner_changes(history: History) -> list[Event]:
    """Changes of owner znodes, in order."""
    changes = (event for event in registry(history) if event.partition is not None)
    return [event for event in changes if str(event.of("path")).split("/")[3:4] == ["owners"]]


@once
def _replies(history: History) -> dict[str, dict[tuple[int | None, object], int]]:
    """Actor -> (zxid, path) of each create and delete that was answered with OK -> the n of the answer."""
    found: dict[str, dict[tuple[int | None, object], int]] = {}
    for event in events_of(history, Kind.OK):
        if event.of("op") in ("create", "delete"):
            found.setdefault(event.actor, {})[event.zxid, event.of("path")] = event.n
    return found


class _Process:
    """The attempts of one process, which may have several lives one after another, and the owner znodes of its
    sessions."""

    def __init__(self, history: History, actor: str, lives: Sequence[MemberLife]) -> None:
        self._history = history
        self._drifted = clock_drifted(history)
        self._known = actor_by_session(history)
        self._closed = {event.session: event for event in events_of(history, Kind.SESSION_CLOSED)}
        self._members = {life.member for life in lives}
        self._sessions = sessions_of(history).get(actor, set())
        self._replies = _replies(history).get(actor, {})
        self.books = [
            _AttemptWrites(life, rebalance, attempt)
            for life in lives
            for rebalance in life.rebalances
            for attempt in rebalance.attempts or [Attempt(rebalance.began, ended=rebalance.ended)]
        ]
        self._numbers = [book.attempt.began.n for book in self.books]
        self._starts_us = [book.attempt.began.at_us for book in self.books]

    def broken(self) -> list[_Breach]:
        """Every breach of the order by writes, including those that are not sure."""
        standing: dict[object, _Znode] = {}
        ours: list[_Znode] = []
        found: list[_Breach] = []
        for event in _owner_changes(self._history):
            path, mine = event.of("path"), self._is_mine(event)
            if event.kind is Kind.CREATED:
                znode = _Znode(event, self._span(event), mine)
                if mine:
                    found += self._claimed(znode, standing.values())
                    ours.append(znode)
                standing[path] = znode
            elif event.kind is Kind.DELETED:
                former = standing.pop(path, None)
                if former is not None:
                    former.deleted = event
                if mine and event.of("with_session") is not True:
                    found += self._released(event, self._span(event))
        return found + [broken for index in range(len(self.books)) for broken in self._ended(index, ours)]

    def continued(self) -> list[_Breach]:
        """Attempts that claimed while the process still believed that it owned, or worked on, what it had before."""
        found = []
        for book in self.books:
            claim, began = book.claim, book.attempt.began
            if claim is None or not book.sure:
                continue
            reply = self._replies.get((claim.zxid, claim.of("path")))
            for what, held in (
                ("believed that it owned", _still_believed(self._history, began, claim, reply)),
                ("worked on", _still_worked(self._history, claim, began.actor)),
            ):
                if held is not None:
                    why = f"{_member(book)} claimed {claim.topic}/{claim.partition} while it still {what}"
                    why += f" {held.topic}/{held.partition}"
                    ids = (began.id, claim.id, held.begin, *([] if held.end is None else [held.end]))
                    found.append(_Breach(began, why, ids, sure=True))
        return found

    def _is_mine(self, event: Event) -> bool:
        """Whether a registry event belongs to the process: it is in one of its sessions, or it names its member in a
        session that no process is known to have had."""
        return event.session in self._sessions or (event.member in self._members and event.session not in self._known)

    def _closed_by(self, znode: _Znode, claim: Event) -> bool:
        """Whether a znode's session was closed before a claim, as far as the registry shows."""
        closed = self._closed.get(znode.created.session)
        return closed is not None and (closed.zxid or 0) < (claim.zxid or 0)

    def _span(self, event: Event) -> _AttemptRange:
        n = self._replies.get((event.zxid, event.of("path")))
        if n is not None:
            index = bisect_right(self._numbers, n) - 1
            return _AttemptRange(index, index)
        if self._drifted:
            return _AttemptRange(min(0, len(self.books) - 1), len(self.books) - 1)
        first = bisect_right(self._starts_us, event.at_us - TOLERANCE_US) - 1
        last = bisect_right(self._starts_us, event.at_us + TOLERANCE_US) - 1
        return _AttemptRange(max(first, min(last, 0)), last)  # no member claims before its first attempt

    def _claimed(self, claim: _Znode, standing: Iterable[_Znode]) -> list[_Breach]:
        """Record a claim. Returns its breach, if the member still held something or was outside of its attempts."""
        if (outside := self._outside(claim)) is not None:
            return [outside]
        for book in self.books[max(claim.span.first, 0) : claim.span.last + 1]:
            book.created.add(claim.created.of("path"))
            if book.claim is None or (claim.span.sure and not book.sure):
                book.claim, book.sure = claim.created, claim.span.sure
        book = self.books[claim.span.last]
        book.claims += claim.span.sure
        kept = [
            each
            for each in standing
            if each.mine
            and not self._closed_by(each, claim.created)
            and each.span.first < claim.span.last
            and not self._may_keep(each.span, claim.span)
        ]
        if not kept:
            return []
        first = max(kept, key=lambda each: each.span.last < claim.span.first)
        name = claim.created
        why = f"{_member(book)} claimed {name.topic}/{name.partition} while it held {_named(first)}"
        witness = (book.attempt.began.id, first.created.id, claim.created.id)
        return [_Breach(book.attempt.began, why, witness, first.span.last < claim.span.first)]

    def _outside(self, claim: _Znode) -> _Breach | None:
        """The breach of a claim that surely belongs to no attempt."""
        event, span = claim.created, claim.span
        former = self.books[span.last].attempt.ended if span.last >= 0 else None
        if span.last >= 0 and (not span.sure or former is None or not self._after(event, former)):
            return None
        why = f"{event.member} claimed {event.topic}/{event.partition} outside of its attempts to rebalance"
        return _Breach(event, why, (*([] if former is None else [former.id]), event.id), sure=True)

    def _after(self, write: Event, moment: Event) -> bool:
        """Whether the process surely wrote after an event of its own."""
        n = self._replies.get((write.zxid, write.of("path")))
        if n is not None:
            return n > moment.n
        return not self._drifted and write.at_us > moment.at_us + TOLERANCE_US

    def _may_keep(self, former: _AttemptRange, now: _AttemptRange) -> bool:
        if not (former.sure and now.sure) or former.first < 0:
            return False
        one, other = self.books[former.first], self.books[now.first]
        return other.keeps and one.rebalance is other.rebalance

    def _released(self, release: Event, span: _AttemptRange) -> list[_Breach]:
        """Record a release. Returns its breach, if it came after a claim of the same attempt."""
        books = self.books[max(span.first, 0) : span.last + 1]
        if not books or any(release.of("path") in book.created for book in books):
            return []
        books[-1].releases += span.sure
        found = []
        for book in books:
            if (claim := book.claim) is not None:
                gave = f"{release.topic}/{release.partition}"
                why = f"{_member(book)} claimed {claim.topic}/{claim.partition}, then gave up {gave}"
                witness = (book.attempt.began.id, claim.id, release.id)
                found.append(_Breach(book.attempt.began, why, witness, span.sure and book.sure))
        return found

    def _ended(self, index: int, ours: Sequence[_Znode]) -> list[_Breach]:
        """The breach of an attempt without a claim that still held a znode when its rebalance ended."""
        book = self.books[index]
        rebalance, ended = book.rebalance, book.rebalance.ended
        if book.sure or ended is None or (rebalance.attempts and rebalance.attempts[-1] is not book.attempt):
            return []
        first = index if ended.of("outcome") == RebalanceOutcome.OK else index + 1 - max(1, len(rebalance.attempts))
        for each in ours:
            if each.span.last >= first or (stood := self._stood(each, ended)) is False:
                continue
            found = excuse(self._history, book.life, rebalance, book.attempt, ended)
            if found is Excuse.SHOWN:
                return []
            why = f"{_member(book)} ended a rebalance without giving up {_named(each)}"
            witness = (book.attempt.began.id, each.created.id, ended.id)
            if found is Excuse.POSSIBLE:
                return [_Breach(book.attempt.began, why, witness, sure=False, unless=_FAILED_BEFORE)]
            return [_Breach(book.attempt.began, why, witness, stood is True and book.claim is None)]
        return []

    def _stood(self, znode: _Znode, ended: Event) -> bool | None:
        """Whether a znode existed when an attempt ended; None if the history does not show it."""
        gone = znode.deleted
        if gone is None:
            closed = self._closed.get(znode.created.session)
            return closed is None or closed.at_us > ended.at_us
        n = self._replies.get((gone.zxid, gone.of("path")))
        if n is not None:
            return n > ended.n
        if self._drifted or abs(gone.at_us - ended.at_us) <= TOLERANCE_US:
            return None
        return gone.at_us > ended.at_us


def _member(book: _AttemptWrites) -> str:
    return str(book.attempt.began.member)


def _named(znode: _Znode) -> str:
    return f"{znode.created.topic}/{znode.created.partition}"


# -- belief and work that outlast a claim --------------------------------------------------------


def _still_believed(history: History, began: Event, claim: Event, reply: int | None) -> Interval | None:
    """A belief from before the ATTEMPT_BEGAN that had not ended when the process received the reply to its `claim`.

    `reply`: the n of that reply. Without it the times decide: the belief ended more than 2 ms after the claim.
    """
    for one in _by_actor(history)[0].get(began.actor, ()):
        if one.begin[1] >= began.n:
            continue
        if one.end is not None and one.end[0] == began.actor and reply is not None:
            later = one.end[1] > reply
        else:
            later = not clock_drifted(history) and one.end_us > claim.at_us + TOLERANCE_US
        if later:
            return one
    return None


def _still_worked(history: History, claim: Event, actor: str) -> Interval | None:
    """A run of work that began before a claim of the process and ended after it, by more than 2 ms each."""
    if clock_drifted(history):
        return None
    runs = _by_actor(history)[1].get(actor, ())
    return next(
        (run for run in runs if run.begin_us + TOLERANCE_US < claim.at_us and claim.at_us < run.end_us - TOLERANCE_US),
        None,
    )


@once
def _by_actor(history: History) -> tuple[dict[str, list[Interval]], dict[str, list[Interval]]]:
    """Beliefs and runs of work of each process."""
    return grouped(beliefs(history), lambda one: one.actor), grouped(effects(history), lambda one: one.actor)


# -- whether the trial tests the order -----------------------------------------------------------


def occasion(history: History) -> Event | None:
    """The first id that came or went after the first rest while another member of the group owned a partition, and
    was alive, connected and undisturbed until the next rest. None if there is no such change: then the order is not
    tested."""
    owners = [znode for znode in znodes_of(history)[0] if not znode.is_id]
    actors = actor_by_session(history)
    for change in member_changes(history):
        rest = next_rest(history, change)
        there = {
            life.actor
            for life in member_lives(history)
            if rest is not None
            and life.group == change.group
            and life.member != change.member
            and life.undisturbed(change.at_us, rest.at_us)
        }
        if any(znode.surely_there_at(change) and actors.get(znode.created.session) in there for znode in owners):
            return change
    return None


CHECK = Check(
    name="order_in_rebalance",
    title="Order within a rebalance",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A member claimed partitions, or ended a rebalance, before it had given up all that it owned.",
    together=(
        "A member that claims before it has given up its partitions holds some that another may already be waiting for."
    ),
    statement="Members give up all they own before they take their share",
    plants=(Planted("claim-before-release", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=lambda history: events_of(history, Kind.REBALANCE_BEGAN),
)
