"""duty_target, on histories written by hand: brokers 1 and 2, and a topic t with one partition on both."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.duties import DUTY, FOLDERS_READ, LOOK, Target
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.writes import REPORTED

TOPIC = "/brokers/topics/t"
STATE = f"{TOPIC}/partitions/0/state"

SETTINGS = "/config/topics/t"

CREATED = Target(brokers=(1, 2), topics={"t": {0: (1, 2)}}, topic="t", settings={"t": {"retention.ms": "1000"}})
DELETED = Target(brokers=(1, 2), topics={}, topic="t")


def assignment(*replicas: int) -> str:
    return json.dumps({"version": 2, "partitions": {"0": replicas}, "adding_replicas": {}, "removing_replicas": {}})


def state(leader: int, *isr: int) -> str:
    return json.dumps({"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": 0, "isr": isr})


def settings(retention_ms: str) -> str:
    return json.dumps({"version": 1, "config": {"retention.ms": retention_ms}})


#: What an inspector sees of CREATED.
SEEN: dict[str, Any] = {
    "children": {
        "/brokers/ids": ["1", "2"],
        "/brokers/topics": ["t"],
        "/config/topics": ["t"],
        "/admin": ["delete_topics"],
        "/admin/delete_topics": [],
    },
    "data": {TOPIC: assignment(1, 2), STATE: state(1, 1, 2), SETTINGS: settings("1000")},
    "metadata": {each: {"brokers": [1, 2], "topics": {"t": {"0": [1, [1, 2], [1, 2]]}}} for each in ("1", "2")},
}


class Duties(Story):
    def __init__(self, target: Target = CREATED, duty: str = "create-topic") -> None:
        super().__init__()
        self._zxid = 0
        self.asked = self.add(
            100,
            "runner",
            Kind.FAULT_BEGAN,
            detail={"fault": DUTY, "target": "b1", "duty": duty, "wanted": target.detail()},
        )
        self.add(101, "runner", Kind.FAULT_BIT, detail={"fault": DUTY, "of": self.asked[1], "proof": "asked"})
        self.add(102, "runner", Kind.FAULT_ENDED, detail={"fault": DUTY, "of": self.asked[1]})

    def znode(self, ms: int, path: str, data: str = "", kind: Kind = Kind.CREATED) -> EventId:
        self._zxid += 1
        return self.add(ms, "zookeeper", kind, detail={"path": path, "data": data}, zxid=self._zxid)

    def look(self, ms: int, seen: dict[str, Any]) -> EventId:
        return self.add(ms, "i1", Kind.OK, detail={"op": LOOK, **seen})

    def folders(self, ms: int, broker: int, *names: str) -> EventId:
        return self.add(ms, "runner", FOLDERS_READ, member=f"b{broker}", detail={"folders": list(names)})

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["duty_target"].judge(self.history())


def seen_with(*path: str | int, value: object) -> dict[str, Any]:
    """SEEN with another value in one place; None takes it away."""
    seen = deepcopy(SEEN)
    *above, last = path
    place: Any = seen
    for each in above:
        place = place[each]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return seen


def created(seen: dict[str, Any] = SEEN, folders: tuple[str, ...] = ("t-0",)) -> tuple[Duties, EventId, EventId]:
    """A topic that is created, what is seen of it in the end, and the folders of broker 2."""
    story = Duties()
    story.znode(110, TOPIC, assignment(1, 2))
    story.znode(112, STATE, state(1, 1, 2))
    story.look(150, seen_with("children", "/brokers/topics", value=[]))  # an earlier look counts for nothing
    look = story.look(200, seen)
    story.folders(201, 1, "t-0")
    return story, look, story.folders(201, 2, *folders)


def test_a_duty_that_is_done() -> None:
    story, _, _ = created()
    assert story.found() == Finding(
        Outcome.CLEAN,
        "create-topic is done, once, wherever one looks",
        (),
        {"count": 0, "topics": 1, "brokers": 2},
    )


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (seen_with("children", "/brokers/ids", value=["1"]), "the brokers [1] are registered, and [1, 2] should be"),
        (seen_with("children", "/admin/delete_topics", value=["t"]), "the request to delete t is still there"),
        (
            seen_with("children", "/admin", value=["delete_topics", "reassign_partitions"]),
            "/admin/reassign_partitions is still there",
        ),
        (seen_with("children", "/brokers/topics", value=[]), "there are the topics [], and there should be ['t']"),
        (seen_with("children", "/config/topics", value=["t", "u"]), "the settings of u are still there"),
        (
            seen_with("data", SETTINGS, value=settings("1")),
            "t has the settings {'retention.ms': '1'}, and should have {'retention.ms': '1000'}",
        ),
        (
            seen_with("data", SETTINGS, value=None),
            "t has the settings {}, and should have {'retention.ms': '1000'}",
        ),
        (seen_with("data", STATE, value=None), "t-0 has no state"),
        (seen_with("data", STATE, value=state(1, 1)), "t-0 has the ISR [1], and [1, 2] should be in sync"),
        (seen_with("data", STATE, value=state(3, 1, 2)), "t-0 is led by 3, which is none of [1, 2]"),
        (seen_with("metadata", "2", value=None), "b2 tells nothing"),
        (seen_with("metadata", "2", "brokers", value=[2]), "b2 tells clients of the brokers [2]"),
        (seen_with("metadata", "2", "topics", value={}), "b2 tells clients of the topics []"),
        (seen_with("metadata", "2", "topics", "t", value={}), "b2 does not tell clients of t-0"),
        (
            seen_with("metadata", "2", "topics", "t", "0", value=[2, [1, 2], [1, 2]]),
            "b2 tells clients that 2 leads t-0 with the ISR [1, 2], and ZooKeeper has 1 and [1, 2]",
        ),
        (
            seen_with("metadata", "2", "topics", "t", "0", value=[1, [2, 1], [1, 2]]),
            "b2 tells clients of the replicas [2, 1] of t-0",
        ),
        (
            seen_with("metadata", "2", "topics", "t", "1", value=[1, [1, 2], [1, 2]]),
            "b2 tells clients of the partitions [1] of t",
        ),
    ],
)
def test_each_place_is_looked_at(seen: dict[str, Any], why: str) -> None:
    story, look, _ = created(seen)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.asked, look))
    assert why == finding.why.removeprefix("create-topic: ")


def test_other_replicas_than_were_asked_for() -> None:
    story, _, _ = created(seen_with("data", TOPIC, value=assignment(2, 1)))
    assert story.found().why == "create-topic: t has the replicas {0: (2, 1)}, and should have {0: (1, 2)}"


def test_a_reassignment_that_is_not_finished() -> None:
    half = json.loads(assignment(1, 2)) | {"removing_replicas": {"0": [3]}}
    story, _, _ = created(seen_with("data", TOPIC, value=json.dumps(half)))
    assert story.found().why == "create-topic: t has replicas that are being added or removed"


@pytest.mark.parametrize(
    ("folders", "why"),
    [
        ((), "b2 has no log of t-0"),
        (("t-0", "t-1"), "b2 still has a log of t-1"),
    ],
)
def test_the_disks_are_looked_at(folders: tuple[str, ...], why: str) -> None:
    story, _, folder = created(folders=folders)
    finding = story.found()
    assert (finding.why, finding.witness) == (f"create-topic: {why}", (story.asked, folder))


def test_folders_that_are_about_to_go() -> None:
    story, _, _ = created(folders=("t-0", f"t-1.{'0' * 32}-delete"))
    assert story.found().outcome is Outcome.CLEAN


def test_a_preferred_leader() -> None:
    target = Target(brokers=(1, 2), topics={"t": {0: (2, 1)}}, topic="t", preferred=("t",))
    story = Duties(target, "preferred-election")
    seen = seen_with("data", TOPIC, value=assignment(2, 1))
    for each in ("1", "2"):
        seen["metadata"][each]["topics"]["t"]["0"] = [1, [2, 1], [1, 2]]
    story.look(200, seen)
    for broker in (1, 2):
        story.folders(201, broker, "t-0")
    assert story.found().why == "preferred-election: t-0 is led by 1, and should be by 2"


def deleted() -> Duties:
    story = Duties(DELETED, "delete-topic")
    story.znode(50, TOPIC, assignment(1, 2))
    story.znode(52, STATE, state(1, 1, 2))
    story.znode(110, STATE, kind=Kind.DELETED)
    seen = deepcopy(SEEN)
    seen["children"]["/brokers/topics"] = seen["children"]["/config/topics"] = []
    seen["data"] = {}
    for each in seen["metadata"].values():
        each["topics"] = {}
    story.look(200, seen)
    for broker in (1, 2):
        story.folders(201, broker)
    return story


def test_a_topic_that_is_gone() -> None:
    story = deleted()
    story.znode(112, TOPIC, kind=Kind.DELETED)
    assert story.found().outcome is Outcome.CLEAN


def test_a_topic_that_came_back_for_a_moment() -> None:
    story = deleted()
    gone = story.znode(112, TOPIC, kind=Kind.DELETED)
    back = story.znode(120, TOPIC, assignment(1, 2))
    story.znode(130, TOPIC, kind=Kind.DELETED)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (gone, back))
    assert finding.why == "delete-topic: t was as wanted, and was changed again"
    assert finding.measures["count"] == 2  # it was deleted twice, too


def test_a_state_that_is_deleted_and_created_anew() -> None:
    """For a moment nobody knows who is in sync."""
    story, _, _ = created()
    gone = story.znode(120, STATE, kind=Kind.DELETED)
    story.znode(121, STATE, state(1, 1, 2))
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.asked, gone))
    assert finding.why == "create-topic: the state of t-0 was deleted, and the partition is to stay"
    assert finding.measures["count"] == 2  # it was created twice, too


def test_a_state_that_is_deleted_twice() -> None:
    story = deleted()
    story.znode(111, STATE, state(1, 1, 2))
    again = story.znode(112, STATE, kind=Kind.DELETED)
    finding = story.found()
    assert (finding.outcome, finding.witness[1]) == (Outcome.VIOLATED, again)
    assert finding.why == f"delete-topic: {STATE} was deleted twice"


def by_the_next(killed_ms: int, *, done_ms: int = 0, folders: int = 2, halts: str = "", target: str = "b1") -> Finding:
    """Broker 1 was asked at 100 ms. The topic is as wanted in a look at `done_ms`, if that is given, and after which so
    many folders were listed, and in the end. `halts`: who halts, a moment before the kill."""
    story = Duties()
    story.znode(110, TOPIC, assignment(1, 2))
    story.znode(112, STATE, state(1, 1, 2))
    story.look(130, seen_with("children", "/admin/delete_topics", value=["t"]))
    for broker in (1, 2):
        story.folders(131, broker, "t-0")
    if done_ms:
        story.look(done_ms, SEEN)
        for broker in range(1, folders + 1):
            story.folders(done_ms + 1, broker, "t-0")
    if halts:
        story.add(killed_ms - 1, halts, REPORTED, detail={"event": "halts", "number": 3})
    story.killed(killed_ms, target)
    story.look(killed_ms + 100, SEEN)
    for broker in (1, 2):
        story.folders(killed_ms + 101, broker, "t-0")
    story.rest(killed_ms + 200)
    return CHECKS["duty_target"].judge(story.history())


def test_what_only_a_successor_does() -> None:
    finding = by_the_next(15_100)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == "create-topic: b1 had 15.000 s for it, and was killed before it was done"
    assert [each[0] for each in finding.witness] == ["runner", "runner"]


@pytest.mark.parametrize(
    "finding",
    [
        by_the_next(15_099),  # it had too little time
        by_the_next(20_000, halts="b1"),
        by_the_next(20_000, done_ms=19_000),
        by_the_next(20_000, target="b2"),
    ],
)
def test_what_the_controller_does_itself_or_could_not_do(finding: Finding) -> None:
    assert finding.outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    "finding",
    [
        by_the_next(20_000, done_ms=20_001),
        by_the_next(20_000, done_ms=19_000, folders=1),
        by_the_next(20_000, halts="b2"),
    ],
)
def test_a_look_after_the_kill_or_of_some_disks_or_the_halt_of_another_do_not_count(finding: Finding) -> None:
    assert finding.outcome is Outcome.VIOLATED


def shut_down(leader: int, *, duty: str = "controlled-shutdown", halts_ms: int = 0, moved_ms: int = 0) -> Finding:
    """Broker 2 goes at 150 ms, which leads t-0 if `leader` is 2, until `moved_ms` if that is given."""
    target = Target(brokers=(1,), topics={"t": {0: (1, 2)}})
    story = Duties(target, duty)
    story.znode(50, STATE, state(leader, 1, 2))
    if halts_ms:
        story.add(halts_ms, "b1", REPORTED, detail={"event": "halts", "number": 3})
    if moved_ms:
        story.znode(moved_ms, STATE, state(1, 1), Kind.CHANGED)
    story.znode(150, "/brokers/ids/2", kind=Kind.DELETED)
    seen = deepcopy(SEEN)
    seen["children"]["/brokers/ids"] = ["1"]
    seen["data"][STATE] = state(1, 1)
    seen["metadata"] = {"1": {"brokers": [1], "topics": {"t": {"0": [1, [1, 2], [1]]}}}}
    story.look(200, seen)
    story.folders(201, 1, "t-0")
    return story.found()


def test_a_broker_that_leads_until_it_is_gone_has_crashed() -> None:
    finding = shut_down(2)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == "controlled-shutdown: b2 went, and was the leader of t-0"
    assert shut_down(2, moved_ms=160).outcome is Outcome.VIOLATED
    assert shut_down(2, halts_ms=155).outcome is Outcome.VIOLATED


def test_a_broker_that_leads_nothing_when_it_goes() -> None:
    assert shut_down(1).outcome is Outcome.CLEAN
    assert shut_down(2, moved_ms=140).outcome is Outcome.CLEAN


def test_the_last_broker_of_a_cluster_that_is_taken_down_leads_to_its_end() -> None:
    story = Duties(Target(brokers=(1,), topics={"t": {0: (1, 2)}}), "controlled-shutdown")
    story.znode(50, STATE, state(2, 1, 2))
    story.phase(140, "closing")
    story.znode(150, "/brokers/ids/2", kind=Kind.DELETED)
    assert "b2 went" not in story.found().why


def test_a_broker_may_lead_to_its_end_if_it_fails_or_if_the_controller_has_halted() -> None:
    assert shut_down(2, duty="broker-fails").outcome is Outcome.CLEAN
    assert shut_down(2, halts_ms=120).outcome is Outcome.CLEAN


def test_what_other_topics_do_counts_for_nothing() -> None:
    story, _, _ = created()
    for ms in (120, 130):
        story.znode(ms, "/brokers/topics/t2", assignment(1, 2))
        story.znode(ms + 1, "/brokers/topics/t2", kind=Kind.DELETED)
    assert story.found().outcome is Outcome.CLEAN


def test_without_a_look_nothing_is_known() -> None:
    story = Duties()
    story.folders(201, 1, "t-0")
    assert (story.found().outcome, story.found().why) == (
        Outcome.UNKNOWN,
        "nobody has looked at the cluster after the duty",
    )


def test_a_trial_without_a_duty() -> None:
    story = Story()
    story.rest(9000)
    assert not CHECKS["duty_target"].applies(story.history())
