"""Members under trouble: conflicts, ghosts, missing znodes, lost replies, shutdown at bad moments."""

from __future__ import annotations

from itertools import pairwise

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Event, Kind
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)


def test_a_conflict_undoes_the_claim_and_is_tried_again() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(1)
        stage.start("m1")
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 2, "two failed attempts")
        assert stage.details(Kind.ATTEMPT_FAILED, "m1", "why") == ["owned by others: t/1"] * 2
        assert await stage.owners() == {"stranger": [1]}
        assert stage.belief("m1") == []
        changes = [each.replace("/consumers/g/owners/t", "") for each in stage.operations("m1") if "owners/t/" in each]
        one = ["create /0", "create /1", "get /1", "create /2", "delete /2", "delete /0"]
        assert changes[-len(one) :] == one  # all are tried, the latest is undone first
        await stage.zookeeper.delete("/consumers/g/owners/t/1")
        await stage.quiet()
        assert await stage.owners() == {"m1": [0, 1, 2]}
        assert stage.details(Kind.REBALANCE_ENDED, "m1", "attempts") == [3]
        began = stage.events(Kind.ATTEMPT_BEGAN, "m1")
        pauses_ms = [(after.at_us - before.at_us) // 1000 for before, after in pairwise(began)]
        assert all(500 <= pause < 550 for pause in pauses_ms)

    Stage().play(story)


def test_a_member_that_never_wins_stays_as_a_ghost_and_comes_alive_at_the_next_trigger() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        await stage.join("m1", rebalance_max_retries=2)
        ghost = stage.started["m1"].member.consumer_id
        assert stage.warnings("m1") == [f"{ghost} can't rebalance after 2 retries"]
        assert stage.details(Kind.REBALANCE_ENDED, "m1", "outcome") == ["failed"]
        assert await stage.registered() == ["m1"]
        assert await stage.owners() == {"stranger": [0]}
        await stage.zookeeper.delete("/consumers/g/owners/t/0")
        await stage.quiet()
        assert await stage.owners() == {}  # owner znodes are watched by nobody
        await stage.join("m2")
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}

    Stage().play(story)


def test_retries_exhausted_in_the_watcher_are_logged_and_no_more() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_max_retries=1)
        await stage.zookeeper.set("/brokers/ids/0", b"no broker")
        await stage.join("m2", rebalance_max_retries=1)
        m1 = stage.started["m1"].member.consumer_id
        assert stage.warnings("m1") == [f"error during syncedRebalance: {m1} can't rebalance after 1 retries"]
        why = "KafkaException: Failed to parse the broker info from zookeeper: no broker"
        assert stage.details(Kind.ATTEMPT_FAILED, "m1", "why") == [why]
        # F6: nothing was released, the fetchers are stopped
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(300)
        assert await stage.owners() == {"m1": [0, 1, 2]}
        assert stage.belief("m1") == [0, 1, 2]
        assert stage.worked("m1", since_us) == []

    Stage().play(story)


def test_no_attempts_at_all() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_max_retries=0)
        ghost = stage.started["m1"].member.consumer_id
        assert stage.warnings("m1") == [f"{ghost} can't rebalance after 0 retries"]
        assert stage.count(Kind.ATTEMPT_BEGAN, "m1") == 0

    Stage().play(story)


def test_own_id_missing_fails_attempts_before_anything_is_given_up() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_max_retries=2)
        consumer_id = stage.started["m1"].member.consumer_id
        await stage.zookeeper.delete(f"/consumers/g/ids/{consumer_id}")
        await stage.quiet()
        reasons = stage.details(Kind.ATTEMPT_FAILED, "m1", "why")
        assert len(reasons) == 2 and all(
            str(why).startswith("NoNode: NoNode: get /consumers/g/ids/") for why in reasons
        )
        assert await stage.owners() == {"m1": [0, 1, 2]}
        assert stage.count(Kind.DISOWNED, "m1") == 0

    Stage().play(story)


@BOTH
def test_no_brokers_is_success_with_nothing_and_a_watch(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(brokers=0)
        await stage.join("m1")
        assert stage.warnings("m1") == ["no brokers found when trying to rebalance."]
        assert stage.details(Kind.REBALANCE_ENDED, "m1", "outcome") == ["ok"]
        assert await stage.owners() == {}
        await stage.add_broker(0)
        await stage.quiet()
        assert await stage.owners() == {"m1": [0, 1, 2]}
        before = stage.count(Kind.REBALANCE_BEGAN, "m1")
        await stage.add_broker(1)  # from now on each broker is heard, in both rule sets
        await stage.quiet()
        assert stage.count(Kind.REBALANCE_BEGAN, "m1") == before + 1

    Stage(rules=rules).play(story)


def test_the_same_consumer_id_twice_waits_until_the_first_has_left() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", consumer_id="twin")
        stage.start("m2", consumer_id="twin")
        await stage.sleep_ms(5000)
        warnings = stage.warnings("m2")
        assert len(warnings) == 3  # at once, after 2 s, after 4 s: without end
        assert str(warnings[0]).startswith("I wrote this conflicted ephemeral node [{")
        assert str(warnings[0]).endswith(
            "}] at /consumers/g/ids/g_twin a while back in a different session, "
            "hence I will backoff for this node to be deleted by Zookeeper and retry"
        )
        assert stage.count(Kind.REBALANCE_BEGAN, "m2") == 0
        await stage.leave("m1")
        await stage.until(lambda: stage.belief("m2") == [0, 1, 2], "the second twin owns all")

    Stage().play(story)


@pytest.mark.parametrize("path", ["/consumers/g/ids/", "/consumers/g/owners/t/1"])
def test_a_reply_lost_after_the_create_was_applied_is_success(path: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.leave("m1")  # the parents are there now
        lost: list[Event] = []

        def lose(event: Event) -> None:
            create = event.actor == "m2" and event.kind is Kind.INVOKED and event.of("op") == "create"
            if create and str(event.of("path")).startswith(path) and not lost:
                lost.append(event)
                stage.server.lose_next_reply(stage.session("m2"))

        write = stage.sink.write

        def written(event: Event) -> None:
            write(event)
            lose(event)

        stage.sink.write = written
        await stage.join("m2")
        assert [event.of("error") for event in stage.events(Kind.INFO, "m2")] == ["ConnectionLoss"]
        failed = [(event.of("op"), event.of("error")) for event in stage.events(Kind.FAILED_OP, "m2")]
        assert ("create", "NodeExists") in failed
        assert stage.count(Kind.ATTEMPT_FAILED, "m2") == 0
        assert await stage.owners() == {"m2": [0, 1, 2]}

    Stage().play(story)


def test_shutdown_during_back_off_waits_for_all_remaining_attempts() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        stage.start("m1", rebalance_backoff_ms=2000)
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 1, "the first attempt failed")
        asked_us = stage.tasks.now_us()
        stage.started["m1"].closing.raise_()
        await stage.started["m1"].task
        waited_ms = (stage.tasks.now_us() - asked_us) // 1000
        assert 7900 <= waited_ms <= 8200  # four back-offs, one of them begun
        reasons = stage.details(Kind.ATTEMPT_FAILED, "m1", "why")
        assert reasons == ["owned by others: t/0", *["the member is shutting down"] * 3]
        assert stage.details(Kind.REBALANCE_ENDED, "m1", "outcome") == ["shutdown"]
        assert await stage.registered() == []

    Stage().play(story)


def test_shutdown_while_it_waits_for_its_own_id() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", consumer_id="twin")
        stage.start("m2", consumer_id="twin")
        await stage.until(lambda: bool(stage.warnings("m2")), "the conflict loop")
        stage.started["m2"].closing.raise_()
        await stage.started["m2"].task
        assert stage.count(Kind.MEMBER_CLOSED, "m2") == 1
        assert await stage.owners() == {"m1": [0, 1, 2]}

    Stage().play(story)


def test_a_clean_leave_ends_work_then_belief_then_the_session() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.leave("m1")
        last_work = stage.events(Kind.WORKED, "m1")[-1]
        last_belief = stage.events(Kind.DISOWNED, "m1")[-1]
        closing = next(e for e in stage.events(Kind.INVOKED, "m1") if e.of("op") == "close")
        assert last_work.n < last_belief.n < closing.n < stage.events(Kind.MEMBER_CLOSED, "m1")[0].n
        assert stage.count(Kind.DISOWNED, "m1") == 3
        deletes = [each for each in stage.operations("m1") if each.startswith("delete")]
        assert deletes == []  # the session's end removes the znodes, nothing else
        assert await stage.registered() == []

    Stage().play(story)
