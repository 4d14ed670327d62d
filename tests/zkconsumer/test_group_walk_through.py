"""The articles' walk-through (claim Z3), and who rebalances when (Z7a)."""

from __future__ import annotations

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Kind
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)


@BOTH
@pytest.mark.parametrize("seed", range(5))
def test_the_walk_through(rules: RuleSet, seed: int) -> None:
    seen = []

    async def story(stage: Stage) -> None:
        await stage.prepare()
        for actor in ("m1", "m2", "m3", "m4"):
            await stage.join(actor)
            seen.append(await stage.owners())
        for actor in ("m1", "m2", "m3"):
            await stage.leave(actor)
            seen.append(await stage.owners())

    Stage(seed=seed, rules=rules).play(story)
    assert seen == [
        {"m1": [0, 1, 2]},
        {"m1": [0, 1], "m2": [2]},
        {"m1": [0], "m2": [1], "m3": [2]},
        {"m1": [0], "m2": [1], "m3": [2]},
        {"m2": [0], "m3": [1], "m4": [2]},
        {"m3": [0, 1], "m4": [2]},
        {"m4": [0, 1, 2]},
    ]


@BOTH
def test_belief_registry_and_effect_agree_at_rest(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        for actor in ("m1", "m2"):
            await stage.join(actor)
        since_us = stage.tasks.now_us()
        await stage.sleep_ms(200)
        for actor, owned in {"m1": [0, 1], "m2": [2]}.items():
            assert (await stage.owners())[actor] == owned
            assert stage.belief(actor) == owned
            assert stage.worked(actor, since_us) == owned

    Stage(rules=rules).play(story)


@BOTH
def test_a_join_makes_everyone_rebalance_once_and_tells_the_others_only(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        for actor in ("m1", "m2", "m3"):
            await stage.join(actor)
        assert [stage.count(Kind.REBALANCE_BEGAN, actor) for actor in ("m1", "m2", "m3")] == [3, 2, 1]
        assert [stage.count(Kind.NOTIFICATION_QUEUED, actor) for actor in ("m1", "m2", "m3")] == [2, 1, 0]

    Stage(rules=rules).play(story)


def test_four_over_three_differs_between_the_rules() -> None:
    seen = {}

    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 4})
        for actor in ("m1", "m2", "m3"):
            await stage.join(actor)
        seen[stage.rules.name] = await stage.owners()

    for rules in (DESCRIBED, SHIPPED):
        Stage(rules=rules).play(story)
    assert seen == {
        "described": {"m1": [0, 1], "m2": [2, 3]},  # N = ceil(4/3): one idles (Z5b)
        "shipped": {"m1": [0, 1], "m2": [2], "m3": [3]},
    }


def test_several_topics_and_streams() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 4, "u": 2})
        await stage.join("m1", {"t": 2, "u": 1})
        await stage.join("m2", {"t": 1})
        # threads on t: m1-0, m1-1, m2-0; 4 partitions: 2, 1, 1
        assert await stage.owners("t") == {"m1": [0, 1, 2], "m2": [3]}
        assert await stage.owners("u") == {"m1": [0, 1]}
        owned = stage.events(Kind.OWNED, "m1")[-5:]
        threads = [(event.topic, event.partition, str(event.of("thread"))[-2:]) for event in owned]
        assert threads == [("t", 0, "-0"), ("t", 1, "-0"), ("t", 2, "-1"), ("u", 0, "-0"), ("u", 1, "-0")]

    Stage(rules=SHIPPED).play(story)


def test_an_empty_subscription_owns_nothing_and_disturbs_everyone() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1")
        await stage.join("m2", {})
        assert await stage.owners() == {"m1": [0, 1, 2]}
        assert await stage.registered() == ["m1", "m2"]
        assert stage.count(Kind.REBALANCE_BEGAN, "m1") == 2

    Stage().play(story)


def test_the_assignor_can_be_chosen() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 4})
        for actor in ("m1", "m2", "m3"):
            await stage.join(actor, assignor="ceil")
        assert await stage.owners() == {"m1": [0, 1], "m2": [2, 3]}

    Stage(rules=SHIPPED).play(story)


def test_the_same_seed_tells_the_same_story() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        for actor in ("m1", "m2"):
            await stage.join(actor)

    first, again = (Stage(seed=7).play(story).sink.events for _ in range(2))
    assert len(first) > 100 and first == again
