"""A zombie by hand: the history that the report's tests know to the millisecond."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from rebalance_lab.analysis.ledger import Expected, Judgement, Quantifier, Status
from rebalance_lab.analysis.results import Analysis, Interval, TrialOutcome, Verdict
from rebalance_lab.checks import judge
from rebalance_lab.history.events import LAYER_OF, Event, Kind, session_text
from rebalance_lab.history.files import History, Trial, digest, merge
from rebalance_lab.history.intervals import ownership_intervals

#: What the stories are written for; checks that came later have stories of their own.
STORY_CHECKS = ("belief_overlap", "effect_overlap", "registration", "registry_overlap", "unowned_window")

START_US = 1_000_000_000  # no history begins at 0 on a real host
GROUP = "g1"


@dataclass
class Script:
    """Writes events at seconds from the trial's start."""

    topic: str
    events: list[Event] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    zxid: int = 0

    def emit(self, at_s: float, actor: str, kind: Kind, **fields: Any) -> Event:
        """Fields that an Event lacks go into its detail; `victim_session` is that detail's `session`."""
        n = self.counts.get(actor, 0)
        self.counts[actor] = n + 1
        detail = {name: value for name, value in fields.items() if name not in Event.__struct_fields__}
        if "victim_session" in detail:
            detail["session"] = detail.pop("victim_session")
        known = {name: value for name, value in fields.items() if name in Event.__struct_fields__}
        at_us = START_US + round(at_s * 1_000_000)
        event = Event(actor, n, at_us, LAYER_OF[kind], kind, group=GROUP, detail=detail or None, **known)
        self.events.append(event)
        return event

    def registry(self, at_s: float, kind: Kind, *, new: bool = True, **fields: Any) -> None:
        self.zxid += new
        self.emit(at_s, "zookeeper", kind, zxid=self.zxid, **fields)

    def topic_made(self, at_s: float, partitions: int) -> None:
        data = json.dumps({"version": 1, "partitions": {str(number): [0] for number in range(partitions)}})
        path = f"/brokers/topics/{self.topic}"
        self.registry(at_s, Kind.CREATED, session="0xff", topic=self.topic, path=path, data=data, ephemeral=False)

    def registers(self, at_s: float, name: str, generation: int = 1) -> None:
        subscription = {"version": 1, "subscription": {self.topic: 1}, "pattern": "static", "timestamp": "0"}
        where: dict[str, Any] = {"session": session_of(name, generation), "member": member_id(name)}
        path = f"/consumers/{GROUP}/ids/{member_id(name)}"
        self.registry(at_s, Kind.CREATED, path=path, data=json.dumps(subscription), ephemeral=True, **where)

    def own(self, at_s: float, name: str, partitions: list[int]) -> None:
        for partition in partitions:
            path = f"/consumers/{GROUP}/owners/{self.topic}/{partition}"
            where: dict[str, Any] = {"member": member_id(name), "topic": self.topic, "partition": partition}
            self.registry(at_s - 0.005, Kind.CREATED, session=session_of(name), path=path, ephemeral=True, **where)
            self.emit(at_s, name, Kind.OWNED, **where)

    def disown(self, at_s: float, name: str, partitions: list[int], *, release: bool = True) -> None:
        for partition in partitions:
            where: dict[str, Any] = {"member": member_id(name), "topic": self.topic, "partition": partition}
            self.emit(at_s, name, Kind.DISOWNED, **where)
            if release:
                path = f"/consumers/{GROUP}/owners/{self.topic}/{partition}"
                self.registry(at_s + 0.005, Kind.DELETED, session=session_of(name), path=path, **where)

    def work(self, begin_s: float, end_s: float, name: str, partitions: list[int]) -> None:
        """Reports every 50 ms, the last one at `end_s`."""
        moments = [begin_s + 0.05 * n for n in range(int((end_s - begin_s) / 0.05 + 1e-9))]
        for at_s in [*moments, end_s]:
            for partition in partitions:
                self.emit(at_s, name, Kind.WORKED, member=member_id(name), topic=self.topic, partition=partition)


def member_id(name: str) -> str:
    return f"{GROUP}_host-{name}-1700000000000-{name * 4}"


def session_of(name: str, generation: int = 1) -> str:
    return session_text(0x100000000000000 + generation * 256 + int(name[1:]))


def deal(partitions: int, members: int) -> list[list[int]]:
    size = -(-partitions // members)
    return [list(range(partitions))[place * size : (place + 1) * size] for place in range(members)]


def _begin(script: Script, partitions: int) -> None:
    script.emit(0, "runner", Kind.TRIAL_BEGAN)
    script.topic_made(0.05, partitions)
    for place, name in enumerate(("m1", "m2", "m3")):
        at_s = 0.10 + 0.05 * place
        script.emit(at_s, name, Kind.MEMBER_STARTED, member=member_id(name), host=f"host-{name}")
        script.registry(at_s + 0.01, Kind.SESSION_OPENED, session=session_of(name), timeout_ms=2000)
        script.emit(at_s + 0.02, name, Kind.CONNECTED, session=session_of(name))
        script.registers(at_s + 0.03, name)
        script.emit(at_s + 0.10, name, Kind.REBALANCE_BEGAN, member=member_id(name))
    for name, share in zip(("m1", "m2", "m3"), deal(partitions, 3), strict=True):
        script.own(0.50, name, share)
        script.emit(0.52, name, Kind.REBALANCE_ENDED, member=member_id(name), outcome="ok")


def _end(script: Script, shares: dict[str, list[int]], sessions: dict[str, str]) -> None:
    script.emit(10.8, "runner", Kind.REST_REACHED, phase="after")
    script.emit(11.0, "runner", Kind.PHASE, name="closing")
    for name, share in shares.items():
        script.disown(11.1, name, share)
        script.emit(11.12, name, Kind.MEMBER_CLOSED, member=member_id(name))
        script.registry(11.13, Kind.SESSION_CLOSED, session=sessions[name], ephemerals=1, sampled=False)
        path = f"/consumers/{GROUP}/ids/{member_id(name)}"
        gone: dict[str, Any] = {"member": member_id(name), "session": sessions[name], "with_session": True}
        script.registry(11.13, Kind.DELETED, path=path, new=False, **gone)
    script.emit(11.2, "runner", Kind.TRIAL_ENDED)


def control_events(topic: str, partitions: int) -> tuple[Event, ...]:
    script = Script(topic)
    _begin(script, partitions)
    shares = dict(zip(("m1", "m2", "m3"), deal(partitions, 3), strict=True))
    for name, share in shares.items():
        script.work(0.52, 11.1, name, share)
    _end(script, shares, {name: session_of(name) for name in shares})
    return merge(script.events)


def zombie_events(topic: str, partitions: int) -> tuple[Event, ...]:
    """m1 is paused from 3 to 8 s; its session ends at 5.5 s; the others have everything from
    5.6 s on; m1 works until 8.42 s and believes until 8.36 s."""
    script = Script(topic)
    _begin(script, partitions)
    old, pairs, new = deal(partitions, 3), deal(partitions, 2), deal(partitions, 3)
    victim = {"fault": "pause", "target": "m1", "member": member_id("m1")}
    for name, share in zip(("m1", "m2", "m3"), old, strict=True):
        script.work(0.52, 2.98 if name == "m1" else 5.52, name, share)
    details = {"must_outlast_session": True, "planned_ms": 5000, "victim_session": session_of("m1")}
    began = script.emit(3.0, "runner", Kind.FAULT_BEGAN, **victim, **details)
    script.emit(3.01, "runner", Kind.FAULT_BIT, **victim, of=began.n, proof="/proc/4711/stat says T")
    script.registry(5.5, Kind.SESSION_CLOSED, session=session_of("m1"), ephemerals=1 + len(old[0]), sampled=False)
    gone: dict[str, Any] = {"member": member_id("m1"), "session": session_of("m1"), "with_session": True, "new": False}
    script.registry(5.5, Kind.DELETED, path=f"/consumers/{GROUP}/ids/{member_id('m1')}", **gone)
    for partition in old[0]:
        path = f"/consumers/{GROUP}/owners/{topic}/{partition}"
        script.registry(5.5, Kind.DELETED, topic=topic, partition=partition, path=path, **gone)
    for name, share in (("m2", old[1]), ("m3", old[2])):
        script.disown(5.53, name, share)
    for name, share in (("m2", pairs[0]), ("m3", pairs[1])):
        script.own(5.6, name, share)
        script.emit(5.61, name, Kind.REBALANCE_ENDED, member=member_id(name), outcome="ok")
        script.work(5.61, 8.5, name, share)
    script.emit(8.0, "runner", Kind.FAULT_ENDED, **victim, of=began.n)
    script.work(8.02, 8.42, "m1", old[0])
    script.emit(8.35, "m1", Kind.EXPIRED, member=member_id("m1"), session=session_of("m1"))
    script.disown(8.36, "m1", old[0], release=False)
    script.registry(8.39, Kind.SESSION_OPENED, session=session_of("m1", 2), timeout_ms=2000)
    script.emit(8.4, "m1", Kind.CONNECTED, session=session_of("m1", 2))
    script.registers(8.41, "m1", 2)
    for name, share in (("m2", pairs[0]), ("m3", pairs[1])):
        script.disown(8.52, name, share)
    for name, share in zip(("m1", "m2", "m3"), new, strict=True):
        script.own(8.9, name, share)
        script.emit(8.91, name, Kind.REBALANCE_ENDED, member=member_id(name), outcome="ok")
        script.work(8.92, 11.1, name, share)
    shares = dict(zip(("m1", "m2", "m3"), new, strict=True))
    _end(script, shares, {"m1": session_of("m1", 2), "m2": session_of("m2"), "m3": session_of("m3")})
    return merge(script.events)


def trial_of(name: str, topic: str, partitions: int, *, control: bool = False, world: str = "processes") -> Trial:
    events = control_events if control else zombie_events
    return Trial(
        id=name,
        scenario="zombie",
        world=world,
        subject="zk",
        rules="described",
        seed=7,
        control=control,
        parameters={
            "group": GROUP, "topic": topic, "partitions": partitions, "members": 3, "session_timeout_ms": 2000,
            "tick_ms": 500, "rebalance_backoff_ms": 500, "rebalance_max_retries": 4, "pause_ms": 5000,
            "work_period_ms": 50, "assignor": "",
        },
        boot_ids=("0f0f",),
        versions={"rebalance-lab": "0.1.0", "python": "3.11", "zookeeper": "3.9.4"},
        history_sha256=digest(events(topic, partitions)),
    )  # fmt: skip


def analysed(histories: dict[str, History], verdicts: tuple[Verdict, ...]) -> Analysis:
    """What Spark's tables would say: the checks' own findings and intervals."""
    outcomes, intervals = [], []
    for history in histories.values():
        trial = history.trial
        for check, finding in judge(history).items():
            if check not in STORY_CHECKS:
                continue
            longest_us, number = finding.measures.get("longest_us", 0), finding.measures.get("count", 0)
            outcomes.append(
                TrialOutcome(
                    trial.id, trial.scenario, trial.world, trial.rules, trial.seed, trial.control, trial.plant,
                    check, finding.outcome.value, finding.why, finding.witness, longest_us, number,
                )
            )  # fmt: skip
        for each in ownership_intervals(history):
            place = (each.group, each.topic, each.partition)
            bounds = (each.begin_us, each.end_us)
            intervals.append(Interval(trial.id, each.layer.value, each.member, *place, *bounds, each.begin, each.end))
    trials = tuple(history.trial for history in histories.values())
    return Analysis(verdicts, tuple(outcomes), tuple(intervals), trials)


def verdict(claim: str, status: str, *, witness: str | None = None, statement: str = "") -> Verdict:
    came = {"as expected": "reproduced", "surprise": "refuted"}.get(status, status)
    return Verdict(
        claim=claim,
        reading="all",
        statement=statement or "A member paused past its session goes on working beside its successor",
        quantifier=Quantifier.EXISTS,
        expected=Expected.REPRODUCED,
        verdict=Judgement(came),
        status=Status(status),
        live=0 if witness is None else 1,
        simulated=0 if witness is None else 20,
        witness=witness,
        replay=None if witness is None else f"rebalance-lab replay {witness} --store trials",
        why="both overlaps in 1 live and 20 simulated trials" if witness else "its scenario is not built yet",
    )


@dataclass(frozen=True)
class Case:
    analysis: Analysis
    histories: dict[str, History]


@cache
def zombie_case(topic: str = "t1", partitions: int = 6) -> Case:
    """A zombie and its control, and a verdict of each status."""
    histories = {
        name: History(trial_of(name, topic, partitions, control="control" in name), events(topic, partitions))
        for name, events in (("zombie-s7", zombie_events), ("zombie-s7-control", control_events))
    }
    verdicts = (
        verdict("E1", "not run", statement="The first broker to create /controller is controller"),
        verdict("Z10", "as expected", witness="zombie-s7"),
        verdict("Z1", "unknown", statement="A member registers its id; when the session ends, it vanishes"),
        verdict("Z16", "surprise", statement="Members that keep what they claimed deadlock"),
    )
    return Case(analysed(histories, verdicts), histories)


def case_with_sister() -> Case:
    """The zombie, its control, and the same zombie simulated."""
    case = zombie_case()
    sister = History(trial_of("sim-7", "t1", 6, world="simulated"), case.histories["zombie-s7"].events)
    histories = {**case.histories, "sim-7": sister}
    return Case(analysed(histories, case.analysis.verdicts), histories)
