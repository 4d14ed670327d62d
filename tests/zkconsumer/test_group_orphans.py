"""Owners that nobody holds, and shares that two members see differently (defects S4, S5, F5,
F7, F8), with the lab's cures."""

from __future__ import annotations

from typing import Any

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel import Future
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
OWNERS = "/consumers/g/owners"


# -- S4: release does not look -----------------------------------------------------------------


async def freeze_before_the_release(stage: Stage, **settings: Any) -> None:
    """m1 stands still between stopping its fetchers and deleting its owners, longer than its
    session; m2 claims all; m1 goes on."""
    await stage.prepare()
    await stage.join("m1", consumer_id="1", **settings)
    write = stage.sink.write
    frozen: list[Event] = []

    def freeze(event: Event) -> None:
        write(event)
        if event.kind is Kind.DISOWNED and event.actor == "m1" and not frozen:
            frozen.append(event)
            stage.started["m1"].process.pause()

    stage.sink.write = freeze
    stage.start("m2", consumer_id="2", rebalance_max_retries=10)
    await stage.until(lambda: stage.belief("m2") == [0, 1, 2], "m2 owns all", limit_ms=20_000)
    stage.started["m1"].process.resume()


@BOTH
def test_s4_a_member_that_wakes_deletes_its_successors_owners(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await freeze_before_the_release(stage)
        believed: list[list[int]] = []
        write = stage.sink.write

        def look(event: Event) -> None:
            write(event)
            if event.kind is Kind.OK and event.of("op") == "delete" and event.actor == "m1":
                believed.append(stage.belief("m2"))

        stage.sink.write = look
        await stage.until(lambda: stage.count(Kind.CONNECTED, "m1") == 2, "m1 has a new session")
        await stage.until(lambda: bool(believed), "it goes on with its release")
        assert believed[0] == [0, 1, 2]  # m2 is not told

    Stage(rules=rules).play(story)


def test_s4_leaves_owners_missing_until_the_successors_next_trigger() -> None:
    async def story(stage: Stage) -> None:
        await freeze_before_the_release(stage)
        missing: list[int] = []
        write = stage.sink.write

        def count(event: Event) -> None:
            write(event)
            deleted = event.kind is Kind.OK and event.of("op") == "delete" and event.actor == "m1"
            if deleted and stage.belief("m2") == [0, 1, 2]:
                missing.append(event.n)

        stage.sink.write = count
        await stage.quiet()
        assert missing  # an owner was deleted while m2 believed in it
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}  # m1's registration heals it

    Stage(rules=SHIPPED).play(story)


def test_s4_cured_by_a_look_at_the_owners_session() -> None:
    async def story(stage: Stage) -> None:
        await freeze_before_the_release(stage, check_owner_before_delete="true")
        await stage.quiet()
        told = [each for each in stage.warnings("m1") if "was not made by this session" in str(each)]
        # what came while it stood still is lost with its connection, so it looks at each in its new session
        assert told == [f"{OWNERS}/t/{each} was not made by this session: it is left alone" for each in (0, 1, 2)]
        assert await stage.owners() == {"m1": [0, 1], "m2": [2]}
        await stage.leave("m2")
        assert await stage.owners() == {"m1": [0, 1, 2]}

    Stage(rules=SHIPPED).play(story)


# -- S5, F5: rules that do not agree -----------------------------------------------------------


@BOTH
def test_s5_mixed_assignors_conflict_for_ever(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 4})
        stage.start("c1", consumer_id="c1", assignor="range", rebalance_max_retries=3)
        stage.start("c2", consumer_id="c2", assignor="roundrobin", rebalance_max_retries=3)
        await stage.until(lambda: stage.count(Kind.DECIDED, "c1") > 0 < stage.count(Kind.DECIDED, "c2"), "both dealt")
        await stage.quiet()
        wants = {actor: stage.details(Kind.DECIDED, actor, "wants")[-1] for actor in ("c1", "c2")}
        assert wants == {"c1": [["t", 0], ["t", 1]], "c2": [["t", 1], ["t", 3]]}
        views = [stage.details(Kind.DECIDED, actor, "view")[-1] for actor in ("c1", "c2")]
        assert views[0] == views[1]  # they saw the same
        owners = await stage.owners()
        assert 2 not in [partition for owned in owners.values() for partition in owned]
        conflicts = [e.of("conflicts") for actor in ("c1", "c2") for e in stage.events(Kind.ATTEMPT_FAILED, actor)]
        assert [["t", 1]] in conflicts

    Stage(rules=rules).play(story)


def test_s5_different_ideas_of_internal_topics() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"__consumer_offsets": 4})
        everything = {"__consumer_offsets": 1}
        await stage.join("m1", everything, consumer_id="1")
        await stage.join("m2", everything, consumer_id="2")
        assert await stage.owners("__consumer_offsets") == {"m1": [0, 1], "m2": [2, 3]}  # names are not filtered

    Stage().play(story)


@pytest.mark.parametrize(("assignor", "owned"), [("roundrobin", {}), ("range", {"m1": [0], "m2": [1]})])
def test_f5_round_robin_stops_a_group_whose_topics_differ_range_does_not(
    assignor: str, owned: dict[str, list[int]]
) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 2, "u": 1})
        settings = {"assignor": assignor, "rebalance_max_retries": 2}
        await stage.join("m1", {"t": 1}, consumer_id="1", **settings)
        assert await stage.owners() == {"m1": [0, 1]}
        await stage.join("m2", {"t": 1, "u": 1}, consumer_id="2", **settings)
        assert await stage.owners() == owned  # with round robin nobody owns anything any more
        reasons = {e.of("reason") for e in stage.events(Kind.ATTEMPT_FAILED, "m1")}
        assert reasons == ({"error"} if assignor == "roundrobin" else set())

    Stage(rules=SHIPPED).play(story)


# -- F7, F8: owners in nobody's registry -------------------------------------------------------


async def interrupted_claim(stage: Stage, **settings: Any) -> None:
    """m1 claims t and u, and cannot create an owner of u: another program's ephemeral znode stands
    in the place of the topic."""
    await stage.prepare(topics={"t": 2, "u": 1})
    for path in ("/consumers", "/consumers/g", OWNERS):
        await stage.zookeeper.create(path, b"")
    await stage.zookeeper.create(f"{OWNERS}/u", b"", ephemeral=True)
    await stage.join("m1", {"t": 1, "u": 1}, rebalance_max_retries=2, consumer_id="1", **settings)
    reasons = [str(why).partition(" (session")[0] for why in stage.details(Kind.ATTEMPT_FAILED, "m1", "why")]
    assert reasons == [f"NoChildrenForEphemerals: NoChildrenForEphemerals: create {OWNERS}/u/0"] * 2


@BOTH
def test_f7_an_interrupted_claim_leaves_owners_that_nobody_deletes(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await interrupted_claim(stage)
        assert await stage.owners() == {"m1": [0, 1]}
        assert stage.belief("m1") == []
        await stage.join("m2", {"t": 1}, rebalance_max_retries=3, consumer_id="2")
        conflicts = stage.details(Kind.ATTEMPT_FAILED, "m2", "conflicts")
        assert conflicts == [[["t", 1]]] * 3
        # what keeps it from ending well has gone, m1 rebalances, and its orphan still stands
        await stage.zookeeper.delete(f"{OWNERS}/u")
        await stage.zookeeper.set("/brokers/topics/u", b'{"version":1,"partitions":{"0":[0]}}')
        await stage.quiet()
        assert stage.belief("m1") == [0]
        assert await stage.owners() == {"m1": [0, 1]}
        await stage.leave("m1")  # with its session it goes
        assert await stage.owners() == {"m2": [0, 1]}

    Stage(rules=rules).play(story)


def test_f7_cured_by_undoing_what_was_claimed() -> None:
    async def story(stage: Stage) -> None:
        await interrupted_claim(stage, undo_failed_claims="true")
        assert await stage.owners() == {}
        await stage.join("m2", {"t": 1}, consumer_id="2")
        assert await stage.owners() == {"m2": [1]}

    Stage().play(story)


def test_f8_a_registry_that_is_cleared_too_late_forgets_owners_of_the_new_session() -> None:
    """The event task reads for a notification when the session expires; the watcher's rebalance
    ends its claim in the new session before the new-session handler has its turn."""

    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 4})
        await stage.join("m1", consumer_id="1")
        write = stage.sink.write
        joined: list[Future[Any]] = []
        expired: list[Event] = []

        def disturb(event: Event) -> None:
            write(event)
            claims = event.kind is Kind.INVOKED and event.of("op") == "create" and event.of("path") == f"{OWNERS}/t/2"
            if claims and event.actor == "m1" and not joined:
                another = b'{"pattern":"static","subscription":{"t":1}}'
                joined.append(stage.zookeeper.create("/consumers/g/ids/g_9", another))
            if event.kind is Kind.NOTIFICATION_QUEUED and joined and not expired:
                expired.append(event)
                stage.server.expire(stage.session("m1"))

        stage.sink.write = disturb
        await touch_topic(stage)
        await stage.until(lambda: stage.count(Kind.CONNECTED, "m1") == 2, "a new session")
        await stage.quiet()
        believed = [(event.kind, event.partition) for event in stage.sink.events if event.layer == "belief"]
        claimed = [*((Kind.OWNED, each) for each in range(4)), *((Kind.DISOWNED, each) for each in range(4))]
        assert believed[8:16] == claimed  # it took all, and forgot it: two of them are gone
        assert stage.belief("m1") == [0, 1]
        orphans = await stage.owners()
        assert orphans["m1"][:2] == [0, 1] and len(orphans["m1"]) > 2
        await touch_topic(stage)
        await stage.quiet()
        assert await stage.owners() == orphans  # no rebalance of its own finds them
        paths = [f"{OWNERS}/t/{each}" for each in orphans["m1"]]
        sessions = {(await stage.zookeeper.get(path)).value.stat.ephemeral_owner for path in paths}
        assert sessions == {stage.session("m1")}

    Stage(rules=SHIPPED).play(story)


async def touch_topic(stage: Stage) -> None:
    """Write the topic's data once more: everybody who subscribes rebalances."""
    data = (await stage.zookeeper.get("/brokers/topics/t")).value.data
    await stage.zookeeper.set("/brokers/topics/t", data)
