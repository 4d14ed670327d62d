"""A history written by hand: one call an event, the time in ms first, so that a test reads as
a table. Actor m1 is member `g_m1` of group g; the topic is t. Ids are (actor, n), n from 0.

A story is complete unless told otherwise: the runner's TRIAL_ENDED stands at its end, each session that registers or
claims is some process's (`_members`), and a story without a fault is a control."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalance_lab.history.events import LAYER_OF, Event, EventId, Kind
from rebalance_lab.history.files import History, Trial, merge

PARAMETERS = {
    "group": "g",
    "topic": "t",
    "partitions": 1,
    "members": 2,
    "session_timeout_ms": 2000,
    "tick_ms": 500,
    "rebalance_backoff_ms": 500,
    "rebalance_max_retries": 4,
    "work_period_ms": 50,
}


class Story:
    def __init__(
        self,
        *,
        boot_ids: tuple[str, ...] = ("boot",),
        world: str = "simulated",
        control: bool | None = None,
        ended: bool = True,
        recorded: bool = True,
        wall_drift_us: int = 0,
        **parameters: Any,
    ) -> None:
        self.events: list[Event] = []
        self._boot_ids = boot_ids
        self._world = world
        self._control = control
        self._ended = ended
        self._recorded = recorded
        self._wall_drift_us = wall_drift_us
        self._parameters = {name: value for name, value in {**PARAMETERS, **parameters}.items() if value is not None}
        self._n: Counter[str] = Counter()
        self._zxid = 0

    def history(self) -> History:
        faulty = any(event.kind is Kind.FAULT_BEGAN for event in self.events)
        trial = Trial(
            id="story",
            scenario="story",
            world=self._world,
            subject="zk",
            rules="described",
            seed=1,
            control=not faulty if self._control is None else self._control,
            parameters=self._parameters,
            boot_ids=self._boot_ids,
            wall_drift_us=self._wall_drift_us,
        )
        return History(trial, merge([*self.events, *self._members(), *self._end()]))

    def _end(self) -> list[Event]:
        """TRIAL_ENDED with the last event; the story itself may go on."""
        if not self._ended:
            return []
        last_us = max((event.at_us for event in self.events), default=0)
        kind = Kind.TRIAL_ENDED
        return [Event(actor="runner", n=self._n["runner"], at_us=last_us, layer=LAYER_OF[kind], kind=kind)]

    def _members(self) -> list[Event]:
        """Of each member that registered or claimed, and that the story connects nowhere: its process connected in all
        its sessions, with its last event. If nobody started the member, a process of its own did, which connected
        at the beginning and ended at once."""
        connected = {event.actor for event in self.events if event.kind is Kind.CONNECTED}
        known = {event.session for event in self.events if event.kind is Kind.CONNECTED}
        known |= {
            event.member for event in self.events if event.kind is Kind.MEMBER_STARTED and event.actor in connected
        }
        found: dict[str, list[Event]] = {}
        for event in self.events if self._recorded else ():
            if event.kind is Kind.CREATED and event.member is not None and not {event.session, event.member} & known:
                found.setdefault(event.member, []).append(event)
        return [event for its in found.values() for event in self._process(its)]

    def _process(self, created: Sequence[Event]) -> Iterator[Event]:
        """Of the member that made these znodes."""
        started = {event.member: event.actor for event in self.events if event.kind is Kind.MEMBER_STARTED}
        member = created[0].member
        actor = started.get(member, f"process-{member}")
        at_us = max((event.at_us for event in self.events if event.actor == actor), default=0)
        life = [(Kind.CONNECTED, session) for session in dict.fromkeys(event.session for event in created)]
        if member not in started:
            life = [(Kind.MEMBER_STARTED, None), *life, (Kind.MEMBER_CLOSED, None)]
            at_us = min(event.at_us for event in self.events)
        for n, (kind, session) in enumerate(life, self._n[actor]):
            who, group = (None, None) if kind is Kind.CONNECTED else (member, created[0].group)
            yield Event(actor, n, at_us, LAYER_OF[kind], kind, who, session, group)

    def add(self, ms: float, actor: str, kind: Kind, **fields: Any) -> EventId:
        fields = {"group": "g", **fields}
        event = Event(actor=actor, n=self._n[actor], at_us=round(ms * 1000), layer=LAYER_OF[kind], kind=kind, **fields)
        self._n[actor] += 1
        self.events.append(event)
        return event.id

    # -- a member -----------------------------------------------------------------------------

    def member(self, ms: float, actor: str, kind: Kind, **fields: Any) -> EventId:
        return self.add(ms, actor, kind, member=f"g_{actor}", **fields)

    def owned(self, ms: float, actor: str, partition: int = 0, **more: Any) -> EventId:
        return self.member(ms, actor, Kind.OWNED, topic="t", partition=partition, **more)

    def disowned(self, ms: float, actor: str, partition: int = 0) -> EventId:
        return self.member(ms, actor, Kind.DISOWNED, topic="t", partition=partition)

    def worked(self, actor: str, *times_ms: float, partition: int = 0, last: bool = False) -> None:
        """`last`: these are reports at a stop."""
        detail = {"last": True} if last else None
        for ms in times_ms:
            self.member(ms, actor, Kind.WORKED, topic="t", partition=partition, detail=detail)

    def started(self, ms: float, actor: str) -> EventId:
        return self.member(ms, actor, Kind.MEMBER_STARTED)

    def closed(self, ms: float, actor: str) -> EventId:
        return self.member(ms, actor, Kind.MEMBER_CLOSED)

    def rebalanced(self, ms: float, actor: str, outcome: str = "ok") -> EventId:
        return self.member(ms, actor, Kind.REBALANCE_ENDED, detail={"outcome": outcome})

    # -- the runner ---------------------------------------------------------------------------

    def fault(self, ms: float, name: str, target: str, session: str = "0x1", *, outlast: bool = False) -> EventId:
        detail = {"fault": name, "target": target, "session": session, "must_outlast_session": outlast}
        return self.add(ms, "runner", Kind.FAULT_BEGAN, member=f"g_{target}", detail=detail)

    def bit(self, ms: float, name: str, target: str, began: EventId) -> EventId:
        detail = {"fault": name, "target": target, "of": began[1], "proof": "seen"}
        return self.add(ms, "runner", Kind.FAULT_BIT, detail=detail)

    def ended(self, ms: float, name: str, target: str, began: EventId) -> EventId:
        return self.add(ms, "runner", Kind.FAULT_ENDED, detail={"fault": name, "target": target, "of": began[1]})

    def killed(self, ms: float, target: str) -> EventId:
        """A kill that bit; three events of the runner."""
        began = self.fault(ms, "kill", target)
        self.bit(ms, "kill", target, began)
        self.ended(ms, "kill", target, began)
        return began

    def paused(self, ms: float, until_ms: float, target: str) -> EventId:
        """A pause that bit; three events of the runner."""
        began = self.fault(ms, "pause", target)
        self.bit(ms, "pause", target, began)
        self.ended(until_ms, "pause", target, began)
        return began

    def phase(self, ms: float, name: str) -> EventId:
        return self.add(ms, "runner", Kind.PHASE, detail={"name": name})

    def rest(self, ms: float) -> EventId:
        return self.add(ms, "runner", Kind.REST_REACHED, detail={"phase": "p"})

    def rest_missed(self, ms: float, why: str, **detail: Any) -> EventId:
        return self.add(ms, "runner", Kind.REST_MISSED, detail={"phase": "p", "why": why, **detail})

    def observed(self, ms: float, *actors: str, zxid: int | None = None) -> EventId:
        detail = {"path": "/consumers/g/ids", "children": [f"g_{actor}" for actor in actors]}
        return self.add(ms, "runner", Kind.OBSERVED, zxid=zxid, detail=detail)

    def observed_owners(
        self, ms: float, owners: Mapping[int, str], sessions: Mapping[int, str] | None = None, zxid: int | None = None
    ) -> EventId:
        """The owner znodes of topic t: partition -> actor, and partition -> session, read at once."""
        threads = {str(number): f"g_{actor}-0" for number, actor in owners.items()}
        detail: dict[str, Any] = {"path": "/consumers/g/owners/t", "children": list(threads), "owners": threads}
        if sessions is not None:
            detail |= {"sessions": {str(number): each for number, each in sessions.items()}, "owners_zxid": zxid}
        return self.add(ms, "runner", Kind.OBSERVED, topic="t", zxid=zxid, detail=detail)

    # -- the registry: each call takes the next zxid, or the one given --------------------------

    def registry(self, ms: float, kind: Kind, path: str | None, session: str, **fields: Any) -> EventId:
        zxid = fields.pop("zxid", None)
        self._zxid = self._zxid + 1 if zxid is None else int(zxid)
        detail = {**fields.pop("detail", {}), **({} if path is None else {"path": path})}
        return self.add(ms, "zookeeper", kind, session=session, zxid=self._zxid, detail=detail, **fields)

    def elsewhere(self, ms: float, up_to: int) -> None:
        """Transactions that concern no group, as many as it takes for the last zxid to be `up_to`."""
        while self._zxid < up_to:
            self.registry(ms, Kind.CREATED, f"/elsewhere/{self._zxid}", "0x99", group=None)

    def created_id(self, ms: float, actor: str, session: str, *, ephemeral: bool = True, **more: Any) -> EventId:
        path, detail = f"/consumers/g/ids/g_{actor}", {"ephemeral": ephemeral}
        return self.registry(ms, Kind.CREATED, path, session, member=f"g_{actor}", detail=detail, **more)

    def deleted_id(self, ms: float, actor: str, session: str, **more: Any) -> EventId:
        return self.registry(ms, Kind.DELETED, f"/consumers/g/ids/g_{actor}", session, member=f"g_{actor}", **more)

    def owner(self, kind: Kind, ms: float, actor: str, partition: int, session: str | None, **more: Any) -> EventId:
        """Without a session in that of the actor: of m1 0x1."""
        more.setdefault("detail", {"ephemeral": True} if kind is Kind.CREATED else {})
        path = f"/consumers/g/owners/t/{partition}"
        session = session or f"0x{actor.removeprefix('m')}"
        return self.registry(ms, kind, path, session, member=f"g_{actor}", topic="t", partition=partition, **more)

    def created(self, ms: float, actor: str, partition: int = 0, session: str | None = None, **more: Any) -> EventId:
        return self.owner(Kind.CREATED, ms, actor, partition, session, **more)

    def deleted(self, ms: float, actor: str, partition: int = 0, session: str | None = None, **more: Any) -> EventId:
        return self.owner(Kind.DELETED, ms, actor, partition, session, **more)

    def changed(self, ms: float, actor: str, partition: int = 0, session: str | None = None, **more: Any) -> EventId:
        return self.owner(Kind.CHANGED, ms, actor, partition, session, **more)

    def session_closed(self, ms: float, session: str, *, sampled: bool | None = False, **more: Any) -> EventId:
        """`sampled`: whether the log did not list what went; None: as histories were before they said so."""
        detail = {} if sampled is None else {"sampled": sampled}
        return self.registry(ms, Kind.SESSION_CLOSED, None, session, detail=detail, **more)


def joined(**told: Any) -> Story:
    """m1 (session 0x1) and m2 (0x2) registered; m1 owns t/0; ids and owners seen from outside at 500 ms."""
    story = Story(**told)
    story.created_id(100, "m1", "0x1")  # zookeeper/0
    story.created_id(200, "m2", "0x2")  # zookeeper/1
    story.created(300, "m1", session="0x1")  # zookeeper/2
    story.observed(500, "m1", "m2")  # runner/0
    story.observed_owners(500, {0: "m1"})  # runner/1
    return story
