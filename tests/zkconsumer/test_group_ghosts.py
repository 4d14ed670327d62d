"""Members that fail and stay, wait in vain or come twice (defects F1 to F4, F6, F9, F10), and
the lab's cures."""

from __future__ import annotations

from typing import Any

import pytest
from group_stage import GROUP, Stage

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import NodeExists
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
IDS = f"/consumers/{GROUP}/ids"
SESSION_MS, BACKOFF_MS = 4000, 500


async def kill_and_start_again(stage: Stage, retries: int, **settings: Any) -> None:
    """m1 owns all and dies; its successor comes at once, under a new id, while it is still counted."""
    await stage.prepare()
    await stage.join("m1", zookeeper_session_timeout_ms=SESSION_MS, consumer_id="a")
    stage.started["m1"].process.kill()
    stage.start("m2", consumer_id="b", rebalance_max_retries=retries, rebalance_backoff_ms=BACKOFF_MS, **settings)


@BOTH
@pytest.mark.parametrize(("retries", "outcome"), [(4, "failed"), (12, "ok")])
def test_f1_a_budget_shorter_than_the_session_fails(rules: RuleSet, retries: int, outcome: str) -> None:
    async def story(stage: Stage) -> None:
        await kill_and_start_again(stage, retries)
        await stage.until(lambda: stage.count(Kind.REBALANCE_ENDED, "m2") > 0, "the successor's first rebalance")
        assert stage.details(Kind.REBALANCE_ENDED, "m2", "outcome")[0] == outcome
        assert set(stage.details(Kind.ATTEMPT_FAILED, "m2", "reason")) == {"conflict"}

    Stage(rules=rules).play(story)


def test_f2_a_slow_releaser_costs_the_joiner_its_budget() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", lease=LeaseSettings(stop_ms=3000), consumer_id="a")
        await stage.join("m2", rebalance_max_retries=4, consumer_id="b")
        assert stage.details(Kind.REBALANCE_ENDED, "m2", "outcome")[0] == "failed"
        assert stage.details(Kind.ATTEMPT_FAILED, "m2", "conflicts") == [[["t", 2]]] * 4

    Stage().play(story)


@pytest.mark.parametrize(("cure", "failed"), [({}, 1), ({"skip_vanished_members": "true"}, 0)])
def test_f3_a_member_that_vanishes_while_it_is_read_fails_the_attempt_after_the_release(
    cure: dict[str, Any], failed: int
) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", consumer_id="a", **cure)
        await stage.join("m2", consumer_id="b")
        await stage.join("m3", consumer_id="c")
        write = stage.sink.write
        gone: list[Future[Any]] = []

        def vanish(event: Event) -> None:
            write(event)
            first_of_all = event.kind is Kind.INVOKED and event.of("path") == f"{IDS}/g_0" and event.actor == "m1"
            if first_of_all and not gone:
                gone.append(stage.zookeeper.delete(f"{IDS}/g_c"))  # the list is read, its last member is not

        stage.sink.write = vanish
        await stage.zookeeper.create(f"{IDS}/g_0", b'{"pattern":"static","subscription":{}}', ephemeral=True)
        await stage.until(lambda: stage.count(Kind.REBALANCE_ENDED, "m1") == 4, "m1 has rebalanced")
        assert len(gone) == 1
        reasons = stage.details(Kind.ATTEMPT_FAILED, "m1", "why")[-1:] if failed else []
        assert all(f"NoNode: get {IDS}/g_c" in str(why) for why in reasons) and len(reasons) == failed
        attempts = stage.details(Kind.REBALANCE_ENDED, "m1", "attempts")[3]
        assert isinstance(attempts, int) and (attempts > 1) is bool(failed)

    Stage(rules=SHIPPED).play(story)


def test_f4_after_two_sessions_in_a_row_its_own_id_looks_foreign_without_end() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", consumer_id="a")
        await expire_twice(stage)
        await stage.until(lambda: len(stage.warnings("m1")) > 3, "the conflict loop")
        assert all(str(each).startswith("I wrote this conflicted ephemeral node [") for each in stage.warnings("m1"))
        path = f"{IDS}/g_a"
        assert (await stage.zookeeper.get(path)).value.stat.ephemeral_owner == stage.session("m1")
        # its event task stands still: it never hears of anybody again
        heard = stage.count(Kind.NOTIFICATION_HANDLED, "m1")
        stage.start("m2", consumer_id="b")
        await stage.sleep_ms(20_000)
        assert stage.count(Kind.NOTIFICATION_HANDLED, "m1") == heard
        assert await stage.owners() == {"m1": [0, 1, 2]}
        assert stage.details(Kind.REBALANCE_ENDED, "m2", "outcome")[0] == "failed"

    Stage().play(story)


async def expire_twice(stage: Stage) -> None:
    """The second session expires while the first one's handler registers in it."""
    write = stage.sink.write
    sessions = stage.count(Kind.CONNECTED, "m1")

    def expire(event: Event) -> None:
        write(event)
        if event.kind is Kind.CONNECTED and event.actor == "m1" and stage.count(Kind.CONNECTED, "m1") == sessions + 1:
            stage.server.expire(stage.session("m1"))

    stage.sink.write = expire
    stage.server.expire(stage.session("m1"))
    await stage.until(lambda: stage.count(Kind.CONNECTED, "m1") == sessions + 2, "two new sessions")


def test_f4_cured_by_looking_at_the_session() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", consumer_id="a", check_session_of_own_node="true")
        await expire_twice(stage)
        await stage.quiet()
        assert stage.warnings("m1") == []
        await stage.join("m2", consumer_id="b", check_session_of_own_node="true")
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}
        twin = stage.start("m3", consumer_id="a", check_session_of_own_node="true")
        with pytest.raises(NodeExists, match=r"create /consumers/g/ids/g_a"):  # and a twin is told at once
            await twin.task

    Stage().play(story)


# -- ghosts ---------------------------------------------------------------------------------


@BOTH
def test_f9a_a_ghost_claims_later_and_what_it_owns_stalls(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await kill_and_start_again(stage, retries=2, queued_max_message_chunks="3")
        await stage.until(lambda: stage.belief("m2") == [0, 1, 2], "the ghost's watcher claims it all")
        assert stage.details(Kind.REBALANCE_ENDED, "m2", "outcome") == ["failed", "ok"]
        assert await stage.owners() == {"m2": [0, 1, 2]}
        await stage.sleep_ms(5000)
        worked = stage.events(Kind.WORKED, "m2")  # one queue, three chunks, and nobody reads them
        assert [event.partition for event in worked] == [0, 1, 2]
        await stage.sleep_ms(5000)
        assert stage.count(Kind.WORKED, "m2") == 3

    Stage(rules=rules).play(story)


@BOTH
def test_f9a_cured_by_a_new_connector(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", zookeeper_session_timeout_ms=SESSION_MS)
        stage.started["m1"].process.kill()
        cure: dict[str, Any] = {"restart_after_failure": "true"}
        ghost = stage.start("m2", rebalance_max_retries=2, rebalance_backoff_ms=BACKOFF_MS, **cure).member.consumer_id
        await stage.until(lambda: stage.belief("m2") == [0, 1, 2], "it owns all")
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(2000)
        assert stage.worked("m2", since_us) == [0, 1, 2]
        ids = [event.member for event in stage.events(Kind.MEMBER_STARTED, "m2")]
        assert ids[0] == ghost and len(set(ids)) == len(ids) > 1
        assert stage.started["m2"].member.consumer_id == ids[-1]
        assert stage.count(Kind.MEMBER_CLOSED, "m2") == len(ids) - 1
        assert await stage.registered() == ["m2"]
        await stage.leave("m2")
        assert stage.count(Kind.MEMBER_CLOSED, "m2") == len(ids)

    Stage(rules=rules).play(story)


def test_f9b_a_ghost_of_the_watcher_is_idle_until_somebody_else_moves() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_max_retries=1)
        await make_the_watcher_fail(stage)
        assert stage.belief("m1") == []
        await stage.sleep_ms(30_000)
        assert await stage.owners() == {}
        await stage.join("m2")
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(200)
        assert stage.worked("m1", since_us) == [0, 1]  # its streams were returned long ago

    Stage().play(story)


async def make_the_watcher_fail(stage: Stage) -> None:
    """m1 rebalances after a release, and meets an owner that is gone again soon after."""
    write = stage.sink.write
    done: list[Future[Any]] = []

    def hold(event: Event) -> None:
        write(event)
        if event.kind is Kind.DECIDED and event.actor == "m1" and not done:
            done.append(stage.zookeeper.create("/consumers/g/owners/t/0", b"stranger-0", ephemeral=True))

    rounds = stage.count(Kind.REBALANCE_ENDED, "m1")
    stage.sink.write = hold
    await stage.zookeeper.set("/brokers/topics/t", b'{"version":1,"partitions":{"0":[0],"1":[0],"2":[0]}}')
    await stage.until(lambda: stage.count(Kind.REBALANCE_ENDED, "m1") > rounds, "m1 has failed")
    assert stage.details(Kind.REBALANCE_ENDED, "m1", "outcome")[-1] == "failed"
    await stage.zookeeper.delete("/consumers/g/owners/t/0")
    await stage.quiet()


def test_f9b_cured_by_a_new_connector() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_max_retries=1, restart_after_failure="true")
        await make_the_watcher_fail(stage)
        assert await stage.owners() == {"m1": [0, 1, 2]}

    Stage().play(story)


def test_f6_what_is_kept_without_work_is_given_up_by_a_new_connector() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_max_retries=1, restart_after_failure="true")
        id_path = f"{IDS}/{stage.started['m1'].member.consumer_id}"
        await stage.zookeeper.delete(id_path)
        await stage.quiet()
        assert await stage.registered() == ["m1"]
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(200)
        assert stage.worked("m1", since_us) == [0, 1, 2]

    Stage().play(story)


def test_a_member_told_to_leave_between_two_connectors_leaves() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        stage.start("m1", rebalance_max_retries=1, rebalance_backoff_ms=5000, restart_after_failure="true")
        await stage.until(lambda: stage.count(Kind.MEMBER_CLOSED, "m1") == 1, "the first connector has gone")
        asked_us = stage.tasks.now_us()
        stage.started["m1"].closing.raise_()
        await stage.started["m1"].task
        assert stage.tasks.now_us() == asked_us
        assert stage.count(Kind.MEMBER_STARTED, "m1") == 1

    Stage().play(story)


def test_f10_cured_by_looking_at_the_flag_before_each_attempt() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        stage.start("m1", rebalance_backoff_ms=2000, stop_retrying_on_shutdown="true")
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 1, "the first attempt failed")
        asked_us = stage.tasks.now_us()
        stage.started["m1"].closing.raise_()
        await stage.started["m1"].task
        assert stage.tasks.now_us() - asked_us <= 2_100_000  # the back-off that had begun
        (ended,) = stage.events(Kind.REBALANCE_ENDED, "m1")
        assert (ended.of("outcome"), ended.of("attempts")) == ("shutdown", 1)

    Stage().play(story)
