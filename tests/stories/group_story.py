"""A history of groups, written by hand: members with their registrations and rebalances, changes
with a rest before and after. As in `history_story` times are in ms, and member g_m1 of group g is
actor m1; its session is 0x1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from history_story import Story

from rebalance_lab.history.events import EventId, Kind

#: (topic, partition)s; or partitions of topic t.
Wants = Sequence[int | tuple[str, int]]


def session_of(actor: str) -> str:
    return f"0x{actor.removeprefix('m')}"


def pairs(wants: Wants) -> list[list[object]]:
    return [["t", each] if isinstance(each, int) else list(each) for each in wants]


class GroupStory(Story):
    """Events of a member are those that a real one records, in its order."""

    # -- members ------------------------------------------------------------------------------

    def comes(self, ms: float, actor: str, *, group: str = "g", rules: str = "shipped", **detail: object) -> EventId:
        """MEMBER_STARTED and CONNECTED; returns the former."""
        member = f"{group}_{actor}"
        started = self.add(
            ms, actor, Kind.MEMBER_STARTED, member=member, group=group, detail={"rules": rules, **detail}
        )
        self.add(ms, actor, Kind.CONNECTED, group=None, session=session_of(actor))
        return started

    def registers(
        self,
        ms: float,
        actor: str,
        *,
        group: str = "g",
        streams: Mapping[str, int] | None = None,
        pattern: str = "static",
        session: str | None = None,
        kind: Kind = Kind.CREATED,
    ) -> EventId:
        """The registry's CREATED, or CHANGED, of its id."""
        payload = {"version": 1, "subscription": dict(streams or {"t": 1}), "pattern": pattern, "timestamp": "1"}
        return self.registry(
            ms,
            kind,
            f"/consumers/{group}/ids/{group}_{actor}",
            session or session_of(actor),
            member=f"{group}_{actor}",
            group=group,
            detail={"ephemeral": True, "data": json.dumps(payload)},
        )

    def joins(self, ms: float, actor: str, **registration: object) -> EventId:
        """It comes and registers at once; returns the registry's CREATED."""
        group = str(registration.get("group", "g"))
        self.comes(ms, actor, group=group, rules=str(registration.pop("rules", "shipped")))
        return self.registers(ms, actor, **registration)  # type: ignore[arg-type]

    def goes(self, ms: float, actor: str, *, group: str = "g") -> EventId:
        """Its id goes with its session; returns the registry's DELETED."""
        path = f"/consumers/{group}/ids/{group}_{actor}"
        detail = {"with_session": True}
        return self.registry(
            ms, Kind.DELETED, path, session_of(actor), member=f"{group}_{actor}", group=group, detail=detail
        )

    def claims(self, ms: float, actor: str, *partitions: int, topic: str = "t", group: str = "g") -> list[EventId]:
        return [self._owner(Kind.CREATED, ms, actor, each, topic, group, ephemeral=True) for each in partitions]

    def releases(self, ms: float, actor: str, *partitions: int, topic: str = "t", group: str = "g") -> list[EventId]:
        return [self._owner(Kind.DELETED, ms, actor, each, topic, group) for each in partitions]

    def _owner(
        self, kind: Kind, ms: float, actor: str, partition: int, topic: str, group: str, **detail: object
    ) -> EventId:
        return self.registry(
            ms,
            kind,
            f"/consumers/{group}/owners/{topic}/{partition}",
            session_of(actor),
            member=f"{group}_{actor}",
            group=group,
            topic=topic,
            partition=partition,
            detail=detail,
        )

    # -- rebalances ---------------------------------------------------------------------------

    def begins(self, ms: float, actor: str, *, by: str = "watcher", group: str = "g") -> EventId:
        """REBALANCE_BEGAN and the first ATTEMPT_BEGAN; returns the former."""
        began = self._step(ms, actor, Kind.REBALANCE_BEGAN, group, by=by)
        self._step(ms, actor, Kind.ATTEMPT_BEGAN, group)
        return began

    def ends(self, ms: float, actor: str, outcome: str = "ok", *, attempts: int = 1, group: str = "g") -> EventId:
        return self._step(ms, actor, Kind.REBALANCE_ENDED, group, outcome=outcome, attempts=attempts)

    def rebalances(
        self, ms: float, until_ms: float, actor: str, outcome: str = "ok", *, by: str = "watcher", group: str = "g"
    ) -> EventId:
        """One rebalance of one attempt, with a decision of which nothing is told; returns its REBALANCE_BEGAN. It reads
        the members if the story tells what the actor asks, or how often."""
        began = self.begins(ms, actor, by=by, group=group)
        told = {event.kind for event in self.events if event.actor == actor and event.of("op") != "close"}
        if Kind.OPERATIONS in told:
            self.counted(ms, actor, get=7)
        elif told & {Kind.INVOKED, Kind.OK, Kind.FAILED_OP}:
            self.reads(ms, actor, f"/consumers/{group}/ids")
        self._step(ms, actor, Kind.DECIDED, group)
        self.ends(until_ms, actor, outcome, group=group)
        return began

    def attempts(self, ms: float, actor: str) -> EventId:
        """A further attempt begins."""
        return self._step(ms, actor, Kind.ATTEMPT_BEGAN, "g")

    def decides(self, ms: float, actor: str, wants: Wants) -> EventId:
        return self._step(ms, actor, Kind.DECIDED, "g", members=2, members_zxid=1, view="0" * 16, wants=pairs(wants))

    def fails(self, ms: float, actor: str, reason: str = "conflict", conflicts: Wants = ()) -> EventId:
        """An attempt has failed."""
        return self._step(ms, actor, Kind.ATTEMPT_FAILED, "g", why="as told", reason=reason, conflicts=pairs(conflicts))

    def meets(self, ms: float, actor: str, conflicts: Wants) -> EventId:
        """Its attempt fails as others own these partitions: ZooKeeper has refused to create their owner znodes."""
        for _ in conflicts:
            self.refused(ms, actor)
        return self.fails(ms, actor, conflicts=conflicts)

    def _step(self, ms: float, actor: str, kind: Kind, group: str, **detail: object) -> EventId:
        return self.add(ms, actor, kind, member=f"{group}_{actor}", group=group, detail=detail or None)

    # -- operations ---------------------------------------------------------------------------

    def asks(
        self, ms: float, actor: str, op: str, path: str, *, watch: bool = False, zxid: int = 0, **detail: object
    ) -> EventId:
        """INVOKED and OK of one operation, answered at `zxid`; returns the former."""
        more = {"op": op, "path": path, **({"watch": True} if watch else {}), **detail}
        asked = self.add(ms, actor, Kind.INVOKED, group=None, session=session_of(actor), detail=more)
        answer = {"op": op, "path": path, "of": asked[1]}
        self.add(ms, actor, Kind.OK, group=None, session=session_of(actor), zxid=zxid, detail=answer)
        return asked

    def reads(self, ms: float, actor: str, ids: str = "/consumers/g/ids", *, zxid: int = 0) -> EventId:
        """What an attempt with two members reads before it decides, the list of members first; returns its INVOKED."""
        listed = self.asks(ms, actor, "children", ids, zxid=zxid)
        for member in ("g_m1", "g_m2"):
            self.asks(ms, actor, "get", f"{ids}/{member}")
        for path in ("/brokers/ids", "/brokers/topics", "/brokers/ids", "/brokers/ids", "/brokers/ids", "/brokers/ids"):
            self.asks(ms, actor, "exists", path)
        return listed

    def counted(self, ms: float, actor: str, **counts: int) -> EventId:
        """With operations counted instead of each recorded."""
        detail = {"since_us": round(ms * 1000) - 1, "counts": counts, "failed": 0, "unknown": 0}
        return self.add(ms, actor, Kind.OPERATIONS, group=None, detail=detail)

    def told(self, ms: float, actor: str, path: str = "/consumers/g/ids") -> EventId:
        """A watch fires."""
        return self.add(ms, actor, Kind.WATCH_FIRED, group=None, detail={"path": path, "event": "child"})

    def triggers(self, ms: float, actor: str, path: str = "/consumers/g/ids") -> EventId:
        """Its watcher is told to rebalance."""
        return self._step(ms, actor, Kind.REBALANCE_TRIGGERED, "g", path=path)

    def reacts(self, ms: float, until_ms: float, actor: str, path: str = "/consumers/g/ids", group: str = "g") -> None:
        """Its watch fires, and it rebalances at once."""
        self.told(ms, actor, path)
        self.triggers(ms, actor, path)
        self.rebalances(ms, until_ms, actor, group=group)

    def refused(self, ms: float, actor: str, *, code: int = -110) -> EventId:
        """The registry's FAILED: ZooKeeper refuses a write of the actor, by default as the znode exists."""
        return self.registry(ms, Kind.FAILED, None, session_of(actor), group=None, detail={"code": code})

    # -- the runner ---------------------------------------------------------------------------

    def announces(self, ms: float, name: str, **detail: object) -> EventId:
        """A PHASE with more than its name."""
        return self.add(ms, "runner", Kind.PHASE, detail={"name": name, **detail})

    def owners_seen(self, ms: float, owners: Mapping[int, str], *, topic: str = "t", group: str = "g") -> EventId:
        """What the outside observer read: partition -> actor."""
        threads = {str(number): f"{group}_{actor}-0" for number, actor in owners.items()}
        detail = {"path": f"/consumers/{group}/owners/{topic}", "children": list(threads), "owners": threads}
        return self.add(ms, "runner", Kind.OBSERVED, group=group, topic=topic, detail=detail)

    def topic(self, ms: float, name: str, partitions: int, kind: Kind = Kind.CREATED) -> EventId:
        payload = {"version": 1, "partitions": {str(number): [0] for number in range(partitions)}}
        detail = {"data": json.dumps(payload), "ephemeral": False}
        return self.registry(ms, kind, f"/brokers/topics/{name}", "0xff", group=None, topic=name, detail=detail)

    def broker(self, ms: float, number: int, kind: Kind = Kind.CREATED) -> EventId:
        return self.registry(ms, kind, f"/brokers/ids/{number}", "0xff", group=None, detail={"ephemeral": False})
