"""keep.claims.on.conflict: members that hold what the others wait for, and what cures them (claim Z16).

Two members join an empty group, the second a little later. The first dealt from a list without
the second and wants all four partitions; the second wants the last two. The first stands still
after its third claim, the second passes it, and each holds what the other waits for.
"""

from __future__ import annotations

from typing import Any

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Event, Kind
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

OWNERS = "/consumers/g/owners/t"
KEEP: dict[str, Any] = {"keep_claims_on_conflict": "true"}
BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
FIRST_HOLDS = {"m1": [0, 1, 2], "m2": [3]}
SHARED = {"m1": [0, 1], "m2": [2, 3]}


async def stagger(stage: Stage, **settings: Any) -> None:
    """m1 joins and stands still once it has claimed t/2; m2 joins and claims; m1 goes on."""
    await stage.prepare(topics={"t": 4})
    write = stage.sink.write

    def stand_still(event: Event) -> None:
        write(event)
        claimed = event.kind is Kind.OK and event.of("op") == "create" and event.of("path") == f"{OWNERS}/2"
        if claimed and event.actor == "m1" and "m2" not in stage.started:
            stage.started["m1"].process.pause()

    stage.sink.write = stand_still
    stage.start("m1", consumer_id="1", zookeeper_session_timeout_ms=8000, **settings)
    await stage.until(lambda: not stage.started["m1"].process.running, "m1 stands still after its third claim")
    stage.start("m2", consumer_id="2", zookeeper_session_timeout_ms=8000, **settings)
    await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m2") == 1, "m2 met m1's claim")
    stage.started["m1"].process.resume()


@BOTH
def test_members_that_keep_what_they_claimed_wait_for_each_other_for_ever(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stagger(stage, **KEEP)
        await stage.until(lambda: stage.count(Kind.REBALANCE_ENDED, "m2") == 1, "m2 has used up its attempts")
        await stage.sleep_ms(60_000)
        assert await stage.owners() == FIRST_HOLDS
        assert (stage.belief("m1"), stage.belief("m2")) == ([], [])  # nobody works on anything
        assert set(stage.details(Kind.REBALANCE_ENDED, "m1", "outcome")) == {"failed"}
        assert set(stage.details(Kind.REBALANCE_ENDED, "m2", "outcome")) == {"failed"}
        last = {actor: stage.events(Kind.ATTEMPT_FAILED, actor)[-1] for actor in ("m1", "m2")}
        assert (last["m1"].of("holds"), last["m1"].of("conflicts")) == ([["t", 0], ["t", 1], ["t", 2]], [["t", 3]])
        assert (last["m2"].of("holds"), last["m2"].of("conflicts")) == ([["t", 3]], [["t", 2]])

    Stage(rules=rules).play(story)


def test_a_member_that_waits_reads_nothing_and_releases_nothing() -> None:
    async def story(stage: Stage) -> None:
        await stagger(stage, **KEEP)
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m2") == 3, "two attempts more")
        since_us = stage.events(Kind.ATTEMPT_FAILED, "m2")[1].at_us
        assert stage.operations("m2", since_us + 1) == [f"create {OWNERS}/2", f"get {OWNERS}/2"]
        assert stage.count(Kind.DECIDED, "m2") == 1

    Stage().play(story)


@BOTH
@pytest.mark.parametrize(
    "cure",
    [
        {},
        {"keep_claims_on_conflict": "true", "release_claims_before_retry": "true"},
        {"keep_claims_on_conflict": "true", "release_claims_on_watch": "true"},
    ],
    ids=["as in 0.8.2", "release before each retry", "release on the watch"],
)
def test_what_cures_it(rules: RuleSet, cure: dict[str, str]) -> None:
    async def story(stage: Stage) -> None:
        await stagger(stage, **cure)
        await stage.quiet()
        assert await stage.owners() == SHARED
        assert (stage.belief("m1"), stage.belief("m2")) == ([0, 1], [2, 3])

    Stage(rules=rules).play(story)


def test_it_ends_when_one_of_them_loses_its_session() -> None:
    async def story(stage: Stage) -> None:
        await stagger(stage, **KEEP)
        await stage.until(lambda: stage.count(Kind.REBALANCE_ENDED, "m2") == 1, "m2 has used up its attempts")
        stage.server.expire(stage.session("m1"))
        await stage.quiet()
        assert await stage.owners() == SHARED

    Stage().play(story)


def test_a_claim_that_succeeds_late_ends_the_waiting() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(1)
        stage.start("m1", **KEEP)
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 2, "two failed attempts")
        assert await stage.owners() == {"m1": [0, 2], "stranger": [1]}
        await stage.zookeeper.delete(f"{OWNERS}/1")
        await stage.quiet()
        assert await stage.owners() == {"m1": [0, 1, 2]}
        assert stage.belief("m1") == [0, 1, 2]
        assert stage.count(Kind.DECIDED, "m1") == 1
        await stage.join("m2", **KEEP)  # and nothing of it stays
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}

    Stage().play(story)


def test_a_member_that_holds_claims_leaves_at_once_when_told_to() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(1)
        stage.start("m1", stop_retrying_on_shutdown="true", **KEEP)
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 1, "a failed attempt")
        stage.started["m1"].closing.raise_()
        await stage.started["m1"].task
        assert await stage.owners() == {"stranger": [1]}

    Stage().play(story)
