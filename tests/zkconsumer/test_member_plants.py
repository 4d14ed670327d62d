"""Each planted bug does what its name says, and only there."""

from __future__ import annotations

import pytest
from group_stage import GROUP, Stage

from rebalance_lab.history.events import Kind
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP
from rebalance_lab.trials.scenario import plants_of
from zkconsumer.plants import Plant


def test_every_plant_can_be_asked_for_by_name() -> None:
    assert set(Plant) <= set(plants_of(ZK_GROUP))
    assert all(each.meaning.startswith("member: ") for each in Plant)


def test_ignore_claim_conflict_believes_in_what_another_holds() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(1)
        await stage.join("m1", plant=Plant.IGNORE_CLAIM_CONFLICT)
        assert stage.belief("m1") == [0, 1, 2]
        assert await stage.owners() == {"m1": [0, 2], "stranger": [1]}

    Stage().play(story)


def test_work_through_rebalance_goes_on_with_what_it_gave_up() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=Plant.WORK_THROUGH_REBALANCE)
        await stage.join("m2")
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(200)
        assert stage.belief("m1") == [0, 1]
        assert stage.worked("m1", since_us) == [0, 1, 2]
        assert stage.worked("m2", since_us) == [2]
        await stage.leave("m1")  # a member that left works no more, bug or not
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(200)
        assert stage.worked("m1", since_us) == []

    Stage().play(story)


def test_never_claim_last_leaves_one_partition_to_nobody() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=Plant.NEVER_CLAIM_LAST)
        await stage.join("m2", plant=Plant.NEVER_CLAIM_LAST)
        assert await stage.owners() == {"m1": [0, 1]}
        assert stage.belief("m2") == []

    Stage().play(story)


def test_persistent_registration_outlives_its_member() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=Plant.PERSISTENT_REGISTRATION)
        await stage.leave("m1")
        assert await stage.registered() == ["m1"]
        assert await stage.owners() == {}

    Stage().play(story)


def test_ignore_watch_never_hears_who_comes() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=Plant.IGNORE_WATCH)
        await stage.join("m2")
        await stage.add_broker(7)
        await stage.quiet()
        assert stage.count(Kind.REBALANCE_BEGAN, "m1") == 1
        assert stage.belief("m1") == [0, 1, 2]
        assert stage.count(Kind.REBALANCE_BEGAN, "m2") == 2  # it came, and the broker did

    Stage().play(story)


def test_leave_orphan_keeps_an_owner_znode_that_it_knows_nothing_of() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=Plant.LEAVE_ORPHAN)
        assert stage.belief("m1") == [0, 1]
        assert await stage.owners() == {"m1": [0, 1, 2]}

    Stage().play(story)


def test_claim_before_release_claims_first() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.join("m2", plant=Plant.CLAIM_BEFORE_RELEASE)
        since_us = stage.tasks.now_us()
        await stage.leave("m1")
        assert stage.belief("m2") == [0, 1, 2]
        writes = [text for text in stage.operations("m2", since_us) if text.split()[0] in ("create", "delete")]
        path = f"/consumers/{GROUP}/owners/t"
        firsts = [f"create {path}/0", f"create {path}/1", f"create {path}/2", f"delete {path}/2"]
        assert writes[: len(firsts)] == firsts

    Stage().play(story)


def test_keep_claims_does_not_give_back_what_it_claimed_before_a_conflict() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(1)
        stage.start("m1", plant=Plant.KEEP_CLAIMS)
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 1, "a failed attempt")
        assert await stage.owners() == {"m1": [0, 2], "stranger": [1]}
        assert stage.details(Kind.ATTEMPT_FAILED, "m1", "holds") == [None]  # it does not say so

    Stage().play(story)


def test_rebalance_unasked_rebalances_once_for_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=Plant.REBALANCE_UNASKED)
        await stage.sleep_ms(10_000)
        assert stage.details(Kind.REBALANCE_BEGAN, "m1", "by") == ["create", "watcher"]
        assert stage.count(Kind.REBALANCE_TRIGGERED, "m1") == 0

    Stage().play(story)


@pytest.mark.parametrize("plant", [None, "two-owners"])
def test_plants_of_others_are_no_concern_of_a_member(plant: str | None) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", plant=plant)
        await stage.leave("m1")
        assert await stage.registered() == []
        assert stage.count(Kind.OWNED, "m1") == 3

    Stage().play(story)
