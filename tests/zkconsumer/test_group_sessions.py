"""Sessions that end while their member lives, or with it (claims Z1, Z10)."""

from __future__ import annotations

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.zkclient import ZkTimeoutException
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)


@BOTH
def test_a_killed_member_vanishes_with_its_session_and_its_share_moves(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.join("m2")
        stage.started["m1"].process.kill()
        assert await stage.registered() == ["m1", "m2"]
        await stage.until(lambda: stage.belief("m2") == [0, 1, 2], "the survivor owns all")
        assert await stage.registered() == ["m2"]
        assert await stage.owners() == {"m2": [0, 1, 2]}

    Stage(rules=rules).play(story)


@BOTH
@pytest.mark.parametrize("seed", range(5))
def test_an_expired_member_registers_again_and_the_group_settles(rules: RuleSet, seed: int) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.join("m2")
        stage.server.expire(stage.session("m1"))
        await stage.until(lambda: stage.count(Kind.CONNECTED, "m1") == 2, "a new session")
        await stage.quiet()
        assert await stage.registered() == ["m1", "m2"]
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}
        assert [stage.belief(actor) for actor in ("m1", "m2")] == [[0, 1], [2]]
        assert "session" in stage.details(Kind.REBALANCE_BEGAN, "m1", "by")

    Stage(seed=seed, rules=rules).play(story)


def test_the_new_session_handler_forgets_belief_but_goes_on_working() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.join("m2")
        stage.started["m1"].process.pause()
        await stage.until(lambda: stage.belief("m2") == [0, 1, 2], "the survivor owns all")
        woke_us = stage.tasks.now_us()
        stage.started["m1"].process.resume()
        await stage.until(lambda: stage.count(Kind.EXPIRED, "m1") == 1, "it learns of its expiry")
        await stage.quiet()
        expired = stage.events(Kind.EXPIRED, "m1")[0]
        disowned = next(e for e in stage.events(Kind.DISOWNED, "m1") if e.n > expired.n)
        worked = [e for e in stage.events(Kind.WORKED, "m1") if woke_us <= e.at_us < disowned.at_us]
        assert worked[0].at_us == woke_us  # it works before it can know
        assert {event.partition for event in worked} == {0, 1}
        own = next(e for e in stage.events(Kind.REBALANCE_BEGAN, "m1") if e.of("by") == "session")
        assert expired.n < disowned.n < own.n
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}

    Stage().play(story)


def test_work_outlives_belief_until_the_rebalance_stops_it() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", consumer_id="one")
        stage.server.expire(stage.session("m1"))
        # Somebody takes its id: registering again loops, while the fetchers were never stopped.
        await stage.zookeeper.create("/consumers/g/ids/g_one", b"{}", ephemeral=True)
        await stage.until(lambda: bool(stage.warnings("m1")), "the conflict loop")
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(1000)
        assert stage.belief("m1") == []
        assert stage.worked("m1", since_us) == [0, 1, 2]
        await stage.zookeeper.delete("/consumers/g/ids/g_one")
        await stage.until(lambda: stage.belief("m1") == [0, 1, 2], "back again")

    Stage().play(story)


def test_expiry_fires_every_listener_once_after_the_handler() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        stage.server.expire(stage.session("m1"))
        await stage.until(lambda: stage.count(Kind.EXPIRED, "m1") == 1, "it learns of its expiry")
        assert stage.details(Kind.NOTIFICATION_QUEUED, "m1", "what") == [
            "New session event",
            "Children of /consumers/g/ids changed",
            "Children of /brokers/ids changed",
            "Data of /brokers/topics/t changed",
        ]
        await stage.quiet()
        by = stage.details(Kind.REBALANCE_BEGAN, "m1", "by")
        assert by[:2] == ["create", "session"]
        assert set(by[2:]) == {"watcher"} and len(by) <= 4  # one, sometimes two
        queued, handled = (stage.events(k, "m1") for k in (Kind.NOTIFICATION_QUEUED, Kind.NOTIFICATION_HANDLED))
        assert [event.n for event in queued] == [event.of("of") for event in handled]

    Stage().play(story)


def test_a_session_that_expires_in_the_middle_of_a_claim_heals() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.leave("m1")
        expired: list[Event] = []
        write = stage.sink.write

        def expire(event: Event) -> None:
            write(event)
            claim = event.actor == "m2" and event.of("op") == "create" and event.of("path") == "/consumers/g/owners/t/1"
            if claim and not expired:
                expired.append(event)
                stage.server.expire(stage.session("m2"))

        stage.sink.write = expire
        await stage.join("m2")
        # t/0 went with the old session, t/1 and t/2 were claimed in the new one: the member
        # believes in all three, until the handler's rebalance gives them up and starts again.
        failed = [(e.of("op"), e.of("path"), e.of("error")) for e in stage.events(Kind.FAILED_OP, "m2")]
        assert ("delete", "/consumers/g/owners/t/0", "NoNode") in failed
        assert [event.partition for event in stage.events(Kind.OWNED, "m2")][:6] == [0, 1, 2, 0, 1, 2]
        assert await stage.owners() == {"m2": [0, 1, 2]}
        assert stage.belief("m2") == [0, 1, 2]

    Stage().play(story)


def test_a_lost_connection_within_the_session_changes_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        stage.server.break_connection(stage.session("m1"))
        await stage.until(lambda: stage.count(Kind.CONNECTED, "m1") == 2, "connected again")
        await stage.quiet()
        assert stage.count(Kind.REBALANCE_BEGAN, "m1") == 1
        assert stage.count(Kind.DISOWNED, "m1") == 0

    Stage().play(story)


def test_a_member_without_a_server_says_so() -> None:
    async def story(stage: Stage) -> None:
        started = stage.start("m1", zookeeper_connection_timeout_ms=700)
        stage.server.hold_connections(started.process)
        with pytest.raises(ZkTimeoutException, match=r"^Unable to connect to zookeeper server within timeout: 700$"):
            await started.task

    Stage().play(story)
