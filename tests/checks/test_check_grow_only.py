"""grow_only, on histories written by hand. Key k1 has partition 1 of 2, and 2 of 3; k5 has partition 0 of both."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.keyed import CONSUME_KEYED, PRODUCE_KEYED, RESIZE
from rebalance_lab.wire.kafka.partitioner import partition_for


class Keyed(Story):
    """Topic t, which has 2 partitions at first."""

    def __init__(self, *, control: bool = False) -> None:
        super().__init__(control=control)
        self._zxid = 0
        self._records: list[tuple[int, int, str, int]] = []
        self.first = self.has(10, 2)
        if not control:
            began = self.add(15, "runner", Kind.FAULT_BEGAN, detail={"fault": "resize", "target": "k1"})
            for kind in (Kind.FAULT_BIT, Kind.FAULT_ENDED):
                detail = {"fault": "resize", "target": "k1", "of": began[1], "proof": "answers"}
                self.add(16, "runner", kind, detail=detail)

    def has(self, ms: int, partitions: int, last: Sequence[int] = (1,)) -> EventId:
        """`last`: the replicas of the last partition."""
        self._zxid += 1
        replicas = {str(each): [1] for each in range(partitions - 1)} | {str(partitions - 1): list(last)}
        data = json.dumps({"version": 1, "partitions": replicas})
        kind = Kind.CREATED if self._zxid == 1 else Kind.CHANGED
        return self.add(ms, "zookeeper", kind, detail={"path": "/brokers/topics/t", "data": data}, zxid=self._zxid)

    def wrote(self, ms: int, number: int, key: str, partition: int, offset: int, *, read: bool = True) -> EventId:
        if read:
            self._records.append((partition, offset, key, number))
        detail = {"op": PRODUCE_KEYED, "number": number, "key": key, "partition": partition, "offset": offset}
        return self.add(ms, "k1", Kind.OK, topic="t", detail=detail)

    def resize(self, ms: int, partitions: int, error: str | None = None) -> tuple[EventId, EventId]:
        asked = self.add(ms, "k1", Kind.INVOKED, topic="t", detail={"op": RESIZE, "partitions": partitions})
        detail = {"op": RESIZE, "of": asked[1], "partitions": partitions, **({} if error is None else {"error": error})}
        return asked, self.add(ms + 4, "k1", Kind.OK if error is None else Kind.FAILED_OP, topic="t", detail=detail)

    def grown(self) -> None:
        """Both keys are written, the topic grows, and both are written again."""
        self.wrote(20, 1, "k1", 1, 0)
        self.wrote(21, 2, "k5", 0, 0)
        self.resize(30, 3)
        self.has(32, 3)
        self.wrote(40, 3, "k1", 2, 0)
        self.wrote(41, 4, "k5", 0, 1)

    def found(self, more: Sequence[tuple[int, int, str, int]] = ()) -> Finding:
        self.read = self.add(
            80, "k1", Kind.OK, topic="t", detail={"op": CONSUME_KEYED, "records": [*self._records, *more]}
        )
        self.rest(9000)
        return CHECKS["grow_only"].judge(self.history())


def test_where_the_keys_are() -> None:
    assert [partition_for(key, count) for count in (2, 3) for key in (b"k1", b"k5")] == [1, 0, 2, 0]


@pytest.mark.parametrize("last", [(), (1, 2), (2, 1, 3)])
def test_a_new_partition_with_another_number_of_replicas(last: tuple[int, ...]) -> None:
    story = Keyed()
    story.wrote(20, 1, "k1", 1, 0)
    story.resize(30, 3)
    grown = story.has(32, 3, last)
    story.wrote(40, 3, "k1", 2, 0)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.first, grown))
    assert finding.why == f"partition 2 was added with the replicas {list(last)}, and partition 0 has 1"


def test_growth_moves_one_key_and_shrinking_is_refused() -> None:
    story = Keyed()
    story.grown()
    story.resize(50, 2, "INVALID_PARTITIONS")
    assert story.found() == Finding(
        Outcome.CLEAN,
        "1 of 2 keys moved, when there were more partitions, and no partition went",
        (),
        {"count": 0, "moved": 1, "stayed": 1, "refused": 1},
    )


def test_no_key_has_moved() -> None:
    story = Keyed()
    story.wrote(20, 1, "k5", 0, 0)
    assert (story.found().outcome, story.found().why) == (Outcome.UNKNOWN, "no key has moved")


def test_the_control() -> None:
    story = Keyed(control=True)
    story.wrote(20, 1, "k1", 1, 0)
    assert story.found().outcome is Outcome.CLEAN


def test_a_key_that_moves_without_growth() -> None:
    story = Keyed()
    first = story.wrote(20, 1, "k1", 1, 0)
    moved = story.wrote(30, 2, "k1", 0, 0)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (first, moved))
    assert finding.why == "number 2 of key k1 is in partition 0, where no number of partitions puts it"


def test_a_key_that_moves_back() -> None:
    story = Keyed()
    story.grown()
    back = story.wrote(50, 5, "k1", 1, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness[1]) == (Outcome.VIOLATED, back)


def test_a_partition_out_of_order() -> None:
    story = Keyed()
    story.grown()
    first = story.wrote(50, 5, "k1", 2, 7)
    second = story.wrote(51, 6, "k1", 2, 6)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (first, second))
    assert finding.why == "number 6 of key k1 is in partition 2 before number 5, which was sent before it"


def test_a_topic_that_shrinks() -> None:
    story = Keyed()
    story.grown()
    story.resize(50, 2)
    shrunk = story.has(52, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.first, shrunk))
    assert finding.measures["count"] == 2  # and it was answered without an error


@pytest.mark.parametrize(
    ("partitions", "error", "told"),
    [
        (2, None, "2 partitions were asked for, of a topic with 3: answered without an error"),
        (2, "POLICY_VIOLATION", "2 partitions were asked for, of a topic with 3: answered POLICY_VIOLATION"),
        (4, "INVALID_PARTITIONS", "4 partitions were asked for, of a topic with 3: answered INVALID_PARTITIONS"),
    ],
)
def test_answers_that_are_wrong(partitions: int, error: str | None, told: str) -> None:
    story = Keyed()
    story.grown()
    witness = story.resize(50, partitions, error)
    finding = story.found()
    assert (finding.outcome, finding.why, finding.witness) == (Outcome.VIOLATED, told, witness)


def test_a_controller_that_has_moved_has_answered_nothing() -> None:
    story = Keyed()
    story.grown()
    story.resize(50, 4, "NOT_CONTROLLER")
    assert story.found().outcome is Outcome.CLEAN


def test_a_record_that_is_lost() -> None:
    story = Keyed()
    story.grown()
    lost = story.wrote(50, 5, "k5", 0, 2, read=False)
    finding = story.found([(0, 2, "k5", 6)])
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (lost, story.read))


def test_a_trial_without_keys() -> None:
    story = Story()
    story.rest(9000)
    assert not CHECKS["grow_only"].applies(story.history())


def test_nothing_was_read() -> None:
    story = Keyed()
    story.grown()
    story.rest(9000)
    finding = CHECKS["grow_only"].judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "the topic was not read after the writes")


def test_a_key_that_moves_before_the_topic_grows() -> None:
    story = Keyed()
    first = story.wrote(20, 1, "k1", 1, 0)
    soon = story.wrote(28, 3, "k1", 2, 0)
    story.resize(30, 3)
    story.has(32, 3)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (first, soon))


def test_a_key_that_stays_long_after_the_topic_has_grown() -> None:
    story = Keyed()
    story.grown()
    first = story.wrote(22, 5, "k9", partition_for(b"k9", 2), 7)
    late = story.wrote(6000, 6, "k9", partition_for(b"k9", 2), 8)
    assert partition_for(b"k9", 2) != partition_for(b"k9", 3)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (first, late))


@pytest.mark.parametrize(
    ("doubtful", "outcome"), [(False, Outcome.VIOLATED), (True, Outcome.CLEAN)], ids=["known", "in doubt"]
)
def test_a_record_that_is_there_again_after_a_later_one(doubtful: bool, outcome: Outcome) -> None:
    story = Keyed()
    story.grown()
    story.wrote(42, 5, "k5", 0, 2)
    if doubtful:
        story.add(43, "k1", Kind.INFO, topic="t", detail={"op": PRODUCE_KEYED, "number": 4, "key": "k5"})
    finding = story.found([(0, 3, "k5", 4)])
    assert finding.outcome is outcome
    if not doubtful:
        assert finding.why == "number 4 of key k5 is in partition 0 at offset 3, and also in partition 0"


def test_partitions_that_get_other_replicas() -> None:
    story = Keyed()
    story.grown()
    data = json.dumps({"version": 1, "partitions": {"0": [2], "1": [1], "2": [1]}})
    path = "/brokers/topics/t"
    turned = story.add(50, "zookeeper", Kind.CHANGED, detail={"path": path, "data": data}, zxid=9)
    finding = story.found()
    assert (finding.outcome, finding.witness[1]) == (Outcome.VIOLATED, turned)
    assert finding.why == "partition 0 had the replicas [1], and then [2]"


@pytest.mark.parametrize(
    ("unanswered", "outcome"), [(True, Outcome.CLEAN), (False, Outcome.VIOLATED)], ids=["unanswered", "none before"]
)
def test_an_earlier_request_may_be_carried_out_late(unanswered: bool, outcome: Outcome) -> None:
    story = Keyed()
    story.wrote(20, 1, "k1", 1, 0)
    if unanswered:
        story.add(24, "k1", Kind.INFO, topic="t", detail={"op": RESIZE, "partitions": 3})
    story.resize(30, 3, "INVALID_PARTITIONS")
    story.has(32, 3)
    story.wrote(40, 3, "k1", 2, 0)
    assert story.found().outcome is outcome
