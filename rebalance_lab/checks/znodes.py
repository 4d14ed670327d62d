"""The lifetimes of the znodes that belong to members' sessions: ids and owners (for claim Z1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.views import events_of, once, registry


class Reply(NamedTuple):
    """When the registry was read, where that is not the time of an event."""

    at_us: int
    zxid: int | None


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of Z1. `rank`: the zxid that created the znode; the earliest is reported.
    `by_time`: it compares the registry's time with another layer's, not zxids."""

    why: str
    witness: tuple[EventId, ...]
    rank: int
    by_time: bool = False


@dataclass(frozen=True, slots=True)
class Znode:
    """One lifetime of a znode (a path may have several).

    `member` of an owner znode: the one that its data names, "" if the data is not a thread id. `created`: its CREATED.
    `deleted`: the event that ended it; None if the history ends first. `data`: all that it held, in order; None if the
    event does not say. `closed`: the SESSION_CLOSED with which it ended.
    """

    path: str
    group: str
    member: str
    is_id: bool
    created: Event
    data: tuple[str | None, ...]
    deleted: Event | None = None
    closed: Event | None = None

    @property
    def rank(self) -> int:
        return self.created.zxid or 0

    @property
    def parent(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def sampled(self) -> bool:
        """Whether the recorder inferred its end: the session closed, and the log does not list what went with it. This
        is also assumed if the history does not say where its deletions come from."""
        return self.closed is not None and self.closed.of("sampled") is not False

    def may_have_held(self, data: str) -> bool:
        return data in self.data or None in self.data

    def stood(self, begin_us: int, end_us: int) -> bool:
        """Whether it existed at some moment of a time, by the server's clock."""
        return self.created.at_us <= end_us and (self.deleted is None or self.deleted.at_us >= begin_us)

    def surely_there_at(self, moment: Event | Reply) -> bool:
        """Whether it surely existed at `moment`, given two clocks."""
        return _done_by(self.created, moment) and (self.deleted is None or _done_after(self.deleted, moment))

    def surely_gone_by(self, moment: Event | Reply) -> bool:
        return self.deleted is not None and _done_by(self.deleted, moment)

    def maybe_there_at(self, moment: Event | Reply) -> bool:
        return not self.surely_gone_by(moment) and self.maybe_there_by(moment)

    def maybe_there_by(self, moment: Event | Reply) -> bool:
        """Whether it may have been created by then, deleted or not."""
        return not _done_after(self.created, moment)


@dataclass(frozen=True, slots=True)
class Kill:
    """The kill of `member`. `znodes`: all that its process created; `registered`: its last id by then, None if it had
    not registered; `owned`: the owner znodes that it surely had then; `rest`: the last REST_REACHED after the kill,
    None if none followed."""

    member: str
    began: Event
    znodes: Sequence[Znode]
    registered: Znode | None
    owned: Sequence[Znode]
    rest: Event | None

    @property
    def gone_us(self) -> int | None:
        """From the kill to the end of the id, by the server's clock; None if that is sampled."""
        if self.registered is None or self.registered.deleted is None or self.registered.sampled:
            return None
        return max(0, self.registered.deleted.at_us - self.began.at_us)


@once
def znodes_of(history: History) -> tuple[list[Znode], list[Violation]]:
    """Ids and owner znodes in the order in which they ended (those that never did come last), and the violations of
    rules 1 (ephemeral), 2 (goes with its session) and 3 (not before it)."""
    alive: dict[str, Znode] = {}
    ended: list[Znode] = []
    violations: list[Violation] = []
    closed: Event | None = None
    for event in registry(history):
        if closed is not None and event.zxid != closed.zxid:
            violations += _outlived(closed, alive)
            closed = None
        if event.kind is Kind.SESSION_CLOSED:
            closed = event
            continue
        path = str(event.of("path"))
        if event.kind is Kind.CREATED:
            znode = _znode(path, event)
            if znode is None:
                continue
            if path in alive:  # its deletion is missing in the history, which registry_overlap reports
                ended.append(replace(alive.pop(path), deleted=event))
            alive[path] = znode
            if event.of("ephemeral") is not True:
                violations.append(Violation(f"{path} was created as a persistent znode", (event.id,), znode.rank))
        elif event.kind is Kind.CHANGED and path in alive:
            alive[path] = replace(alive[path], data=(*alive[path].data, _data(event)))
        elif event.kind is Kind.DELETED and path in alive:
            with_it = closed if closed is not None and closed.session == event.session else None
            znode = replace(alive.pop(path), deleted=event, closed=with_it)
            ended.append(znode)
            if event.session != znode.created.session:
                why = f"{path} of session {znode.created.session} was deleted by session {event.session}"
                violations.append(Violation(why, (znode.created.id, event.id), znode.rank))
    if closed is not None:
        violations += _outlived(closed, alive)
    return [*ended, *alive.values()], violations


def kills(history: History, znodes: Sequence[Znode]) -> list[Kill]:
    """Every kill of the trial, whether it took effect or not."""
    rests = events_of(history, Kind.REST_REACHED)
    found: list[Kill] = []
    for began in events_of(history, Kind.FAULT_BEGAN):
        if began.of("fault") != KILL:
            continue
        its = sessions_of(history).get(str(began.of("target")))  # None: unknown, so its name decides
        own = [one for one in znodes if one.member == began.member and (its is None or one.created.session in its)]
        ids = [one for one in own if one.is_id and one.maybe_there_at(began)]
        owned = [one for one in own if not one.is_id and one.surely_there_at(began)]
        after = [rest for rest in rests if rest.at_us > began.at_us]
        registered = max(ids, key=lambda one: one.rank, default=None)
        found.append(Kill(str(began.member), began, own, registered, owned, after[-1] if after else None))
    return found


@once
def sessions_of(history: History) -> dict[str, set[str]]:
    """Process -> the sessions in which it was connected."""
    found: dict[str, set[str]] = {}
    for event in events_of(history, Kind.CONNECTED):
        if event.session is not None:
            found.setdefault(event.actor, set()).add(event.session)
    return found


def idle_crashes(crashes: Sequence[Kill]) -> list[str]:
    """Kills of registered members that surely owned nothing: doubts, not violations."""
    return [
        f"{crash.member} did not surely own a partition when it was killed, so none could vanish"
        for crash in crashes
        if crash.registered is not None and not crash.owned
    ]


def _znode(path: str, created: Event) -> Znode | None:
    """A new id or owner znode; None for any other path."""
    match path.split("/"):
        case ["", "consumers", group, "ids", member]:
            return Znode(path, group, member, True, created, (_data(created),))
        case ["", "consumers", group, "owners", _, _]:
            return Znode(path, group, created.member or "", False, created, (_data(created),))
    return None


def _data(event: Event) -> str | None:
    data = event.of("data")
    return None if data is None else str(data)


def _outlived(closed: Event, alive: dict[str, Znode]) -> list[Violation]:
    """Znodes of a session that outlived it. (Persistent ones are reported at their creation.)"""
    return [
        Violation(
            f"{path} outlived its session {closed.session}, which closed at zxid {closed.zxid:#x}",
            (znode.created.id, closed.id),
            znode.rank,
        )
        for path, znode in alive.items()
        if znode.created.session == closed.session and znode.created.of("ephemeral") is True
    ]


def _done_by(change: Event, moment: Event | Reply) -> bool:
    """Whether a change came before `moment`: by the zxid of an observer's reply, which covers all changes up to it,
    else by time."""
    if change.zxid is not None and moment.zxid is not None:
        return change.zxid <= moment.zxid
    return change.at_us + TOLERANCE_US < moment.at_us


def _done_after(change: Event, moment: Event | Reply) -> bool:
    if change.zxid is not None and moment.zxid is not None:
        return change.zxid > moment.zxid
    return moment.at_us + TOLERANCE_US < change.at_us
