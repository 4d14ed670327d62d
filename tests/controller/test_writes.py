"""What a controller writes over in the znode of a topic."""

from __future__ import annotations

import pytest
from controller_stage import Stage

from controller.cluster import Assignment, Topic
from controller.election import Elected
from controller.stimuli import AssignmentsWritten, WriteAssignments
from controller.writes import Writes
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import read_assignment, reassignment_payload
from rebalance_lab.wire.paths import REASSIGNMENT, topic_path

#: Partition 0 moves from broker 1 to 2. The controller knows no other partition.
MOVED = Assignment((2, 1), (2,), (1,))
MOVE = WriteAssignments("t", Topic({0: (1,)}).with_assignments({0: MOVED}), {0: MOVED})


async def there(stage: Stage) -> dict[int, tuple[int, ...]]:
    return dict(read_assignment("t", await stage.data(topic_path("t"))).replicas)


def writes(stage: Stage, *, keeps_additions: bool) -> Writes:
    return Writes(stage.other, Elected(1, None), keeps_additions=keeps_additions)


@pytest.mark.parametrize(("keeps_additions", "left"), [(False, {0: (2, 1)}), (True, {0: (2, 1), 1: (3,)})])
def test_a_partition_that_another_has_added(keeps_additions: bool, left: dict[int, tuple[int, ...]]) -> None:
    async def story(stage: Stage) -> None:
        await stage.write_topic("t", {0: (1,), 1: (3,)})
        found = await writes(stage, keeps_additions=keeps_additions).write_assignments(MOVE)
        assert found == AssignmentsWritten("t", {0: MOVED})
        assert await there(stage) == left

    Stage().play(story)


def test_one_that_is_added_between_the_read_and_the_write_stays_too(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    async def story(stage: Stage) -> None:
        await stage.write_topic("t", {0: (1,)})
        it = writes(stage, keeps_additions=True)
        read = it._added

        async def added(wanted: WriteAssignments) -> tuple[dict[int, tuple[int, ...]], int]:
            reads.append(await read(wanted))
            if len(reads) == 1:
                await stage.write_topic("t", {0: (1,), 1: (3,)}, grow=True)
            return reads[-1]

        monkeypatch.setattr(it, "_added", added)
        await it.write_assignments(MOVE)
        assert await there(stage) == {0: (2, 1), 1: (3,)}

    Stage().play(story)
    assert reads == [({}, 0), ({1: (3,)}, 1)]


@pytest.mark.parametrize("keeps_additions", [False, True])
def test_a_topic_that_is_gone_is_not_written(keeps_additions: bool) -> None:
    async def story(stage: Stage) -> None:
        found = await writes(stage, keeps_additions=keeps_additions).write_assignments(MOVE)
        assert found == AssignmentsWritten("t", {0: MOVED}, written=False)
        assert not await stage.there(topic_path("t"))

    Stage().play(story)


def test_what_cannot_be_read_is_written_over() -> None:
    async def story(stage: Stage) -> None:
        await stage.create(topic_path("t"), b"nonsense")
        await writes(stage, keeps_additions=True).write_assignments(MOVE)
        assert await there(stage) == {0: (2, 1)}

    Stage().play(story)


def test_growth_is_undone_even_if_what_others_add_is_kept() -> None:
    async def story(stage: Stage) -> None:
        await stage.write_topic("t", {0: (1,), 1: (3,)})
        undo = WriteAssignments("t", Topic({0: (1,)}), {})
        assert await writes(stage, keeps_additions=True).write_assignments(undo) == AssignmentsWritten("t", {})
        assert await there(stage) == {0: (1,)}

    Stage().play(story)


@pytest.mark.parametrize("left", [{}, {TopicPartition("t", 0): (1, 2)}])
def test_what_is_left_of_a_request_is_written_over_one_version_or_any(
    left: dict[TopicPartition, tuple[int, ...]],
) -> None:
    async def story(stage: Stage) -> None:
        it = writes(stage, keeps_additions=False)
        await stage.create(REASSIGNMENT, b"request")
        assert not await it.trim(left, 7)
        assert await stage.data(REASSIGNMENT) == b"request"
        assert await it.trim(left)
        if left:
            assert await stage.data(REASSIGNMENT) == reassignment_payload(left.items())
        else:
            assert not await stage.there(REASSIGNMENT)
            assert await it.trim(left)  # what is gone is done

    Stage().play(story)
