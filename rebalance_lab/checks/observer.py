"""The outside observer of Z1: whether it saw the ids and owners that the registry held.

An OBSERVED lists the children of `/consumers/<group>/ids` or `/consumers/<group>/owners/<topic>`. For owners it also
has each znode's data (`owners`) and session (`sessions`, the Stat's ephemeralOwner), which were read a moment later
(`owners_zxid`). Older histories lack these two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rebalance_lab.checks.znodes import Kill, Reply, Violation, Znode, sessions_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, grouped, once
from rebalance_lab.wire.describe import describe
from rebalance_lab.wire.paths import members_path

#: The session of a persistent znode.
NO_SESSION = "0x0"

#: Parent -> name -> the lives of that znode, in the order in which they ended.
_Lives = dict[str, dict[str, list[Znode]]]


def disagreements(history: History, znodes: Sequence[Znode]) -> list[Violation]:
    """Observations that lack a znode which surely existed, show one which surely did not, or show a wrong session or
    wrong data.

    Only members that registered, claimed or started in the trial count, and owner znodes of the sessions of its
    processes. Others may have existed before its first transaction.
    """
    lives: _Lives = {}
    members: set[str] = set()
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event.member is not None:
            members.add(event.member)
            lives.setdefault(members_path(event.group or ""), {}).setdefault(event.member, [])
    for znode in znodes:
        members.add(znode.member)
        lives.setdefault(znode.parent, {}).setdefault(znode.name, []).append(znode)
    connected = {session for its in sessions_of(history).values() for session in its}
    found: list[Violation] = []
    for view in map(View, events_of(history, Kind.OBSERVED)):
        here = lives.get(view.path, {})
        found += [one for name, its in here.items() if (one := _unlike(view, name, its)) is not None]
        found += [_never_held(view, name) for name in view.owned_by(members, connected) if name not in here]
    return found


def unseen_crashes(history: History, crashes: Sequence[Kill]) -> list[str]:
    """Kills before and after which the observer did not see the member's id and owner znodes: doubts, not
    violations."""
    views = _views(history)
    doubts: list[str] = []
    for crash in crashes:
        own = crash.registered
        if own is None:
            doubts.append(f"{crash.member} was not registered when it was killed")
            continue
        if not _seen_before(own, crash, views):
            doubts.append(f"the id of {crash.member} was not observed before its kill")
        if not any(own.surely_gone_by(view.event) for view in views.get(own.parent, ())):
            doubts.append(f"the ids were not observed after {crash.member} was gone")
        if crash.owned and not any(_seen_before(one, crash, views) for one in crash.owned):
            doubts.append(f"the owner znodes of {crash.member} were not observed before its kill")
        if not all(any(one.surely_gone_by(view.event) for view in views.get(one.parent, ())) for one in crash.owned):
            doubts.append(f"the owner znodes of {crash.member} were not observed after it was gone")
    return doubts


def unseen_ends(history: History, znodes: Sequence[Znode]) -> list[str]:
    """Sampled ends that the observer did not confirm, as one doubt: the log does not list what went with the session,
    and no later observation shows the znode absent or in another session."""
    sampled = [znode for znode in znodes if znode.sampled]
    views = _views(history)
    open_ends = [
        znode
        for znode in sampled
        if not any(znode.surely_gone_by(view.event) and not view.shows(znode) for view in views.get(znode.parent, ()))
    ]
    if not open_ends:
        return []
    first = min(open_ends, key=lambda znode: znode.rank)
    more = f" and {len(open_ends) - 1} more" if len(open_ends) > 1 else ""
    return [
        f"sampled: the log does not list what went with session {first.created.session}, and no later observation"
        f" shows that {first.path}{more} had gone"
    ]


class View:
    """The content of an OBSERVED. `after`: when its owners' data were read; None if it has none."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.path = str(event.of("path"))
        children = event.of("children")
        self.names = frozenset(children) if isinstance(children, list | tuple) else frozenset()
        self.owners = _texts(event.of("owners"))
        self.sessions = _texts(event.of("sessions"))
        zxid = event.of("owners_zxid")
        self.after = Reply(event.at_us, zxid) if isinstance(zxid, int) and event.zxid is not None else None

    def owned_by(self, members: Collection[str], sessions: Collection[str]) -> list[str]:
        """The names whose data is a thread id of one of these members, or that one of these sessions holds."""
        return [
            name
            for name, data in self.owners.items()
            if name in self.names
            and (
                describe(f"{self.path}/{name}", data.encode()).member in members or self.sessions.get(name) in sessions
            )
        ]

    def shows(self, znode: Znode) -> bool:
        """Whether it shows this very znode: the name, and as far as recorded the session, or (older histories) the
        data."""
        name = znode.name
        if name not in self.names:
            return False
        if name in self.sessions:
            return self.sessions[name] == znode.created.session
        return name not in self.owners or znode.may_have_held(self.owners[name])


def _unlike(view: View, name: str, lives: Sequence[Znode]) -> Violation | None:
    """How a view differs from the lives of one znode, if it does."""
    by_time = view.event.zxid is None
    there = next((znode for znode in lives if znode.surely_there_at(view.event)), None)
    if there is not None and name not in view.names:
        why = f"the outside observer did not see {there.path}, which existed"
        return Violation(why, (there.created.id, view.event.id), there.rank, by_time)
    if name in view.names and not any(znode.maybe_there_at(view.event) for znode in lives):
        return _surplus(view, name, lives)
    return None if view.after is None else _unlike_owner(view, view.after, name, lives)


def _surplus(view: View, name: str, lives: Sequence[Znode]) -> Violation:
    """The violation of a view that shows a znode which did not exist."""
    gone = [znode for znode in lives if znode.surely_gone_by(view.event)]
    if not gone or gone[-1].deleted is None:
        return _never_held(view, name, by_time=view.event.zxid is None and bool(lives))
    last = gone[-1]
    by_time = view.event.zxid is None
    if last.sampled and last.closed is not None:
        why = f"the outside observer saw {last.path} after its session {last.created.session} had closed"
        return Violation(why, (last.created.id, last.closed.id, view.event.id), last.rank, by_time)
    why = f"the outside observer saw {last.path}, which had gone"
    return Violation(why, (last.created.id, gone[-1].deleted.id, view.event.id), last.rank, by_time)


def _never_held(view: View, name: str, *, by_time: bool = False) -> Violation:
    why = f"the outside observer saw {view.path}/{name}, which the registry had never held"
    return Violation(why, (view.event.id,), view.event.zxid or 0, by_time)


def _unlike_owner(view: View, after: Reply, name: str, lives: Sequence[Znode]) -> Violation | None:
    """How an owner's session or data, read until `after`, differ from all that it may have had."""
    there = next((one for one in lives if one.surely_there_at(view.event) and one.surely_there_at(after)), None)
    if name not in view.sessions:
        if there is None:
            return None
        why = f"the outside observer could not read {there.path}, which existed"
        return Violation(why, (there.created.id, view.event.id), there.rank)
    held, data = view.sessions[name], view.owners.get(name, "")
    possible = [one for one in lives if not one.surely_gone_by(view.event) and one.maybe_there_by(after)]
    if not possible or any(held == _session_of(one) and one.may_have_held(data) for one in possible):
        return None
    last = possible[-1]
    why = f"the outside observer saw {last.path} of session {held} with data {data!r};"
    why += f" in the registry it has session {_session_of(last)} and data {last.data[-1]!r}"
    return Violation(why, (last.created.id, view.event.id), last.rank)


def _session_of(znode: Znode) -> str | None:
    return znode.created.session if znode.created.of("ephemeral") is True else NO_SESSION


def _seen_before(znode: Znode, crash: Kill, views: Mapping[str, Sequence[View]]) -> bool:
    """Whether it was observed before the kill, while it surely existed."""
    return any(
        view.shows(znode) and znode.surely_there_at(view.event) and view.event.at_us <= crash.began.at_us
        for view in views.get(znode.parent, ())
    )


@once
def _views(history: History) -> dict[str, list[View]]:
    """Path -> what was observed of it."""
    return grouped(map(View, events_of(history, Kind.OBSERVED)), lambda view: view.path)


def _texts(value: object) -> dict[str, str]:
    return {str(name): str(each) for name, each in value.items()} if isinstance(value, dict) else {}
