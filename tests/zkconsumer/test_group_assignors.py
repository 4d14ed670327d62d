"""Round robin in a running group: what each member reads decides what it takes (defect S5)."""

from __future__ import annotations

from typing import Any

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Kind
from zkconsumer.contexts import group_threads
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)

ROUND_ROBIN: dict[str, Any] = {"partition_assignment_strategy": "roundrobin", "rebalance_max_retries": 2}


def other(actor: str) -> str:
    """The second of two members. Which of them wins a race for a claim is not the point here."""
    return {"m1": "m2", "m2": "m1"}[actor]


def assert_fails(stage: Stage, actor: str, why: str) -> None:
    """The last rebalance failed, each attempt for this reason."""
    assert stage.details(Kind.REBALANCE_ENDED, actor, "outcome")[-1] == "failed"
    assert stage.details(Kind.ATTEMPT_FAILED, actor, "why") == [why] * 2


@BOTH
def test_partitions_are_dealt_in_turn_over_topics(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"A": 3, "B": 3})
        await stage.join("m1", {"B": 1, "A": 1}, **ROUND_ROBIN)
        await stage.join("m2", {"A": 1, "B": 1}, **ROUND_ROBIN)
        assert await stage.owners("A") == {"m1": [0, 2], "m2": [1]}
        assert await stage.owners("B") == {"m1": [1], "m2": [0, 2]}

    Stage(rules=rules).play(story)


@BOTH
def test_unequal_streams_stop_the_whole_group_after_it_gave_up_what_it_owned(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"A": 2, "B": 2})
        await stage.join("m1", {"A": 1, "B": 1}, **ROUND_ROBIN)
        await stage.join("m2", {"A": 1, "B": 2}, **ROUND_ROBIN)
        assert [await stage.owners(topic) for topic in ("A", "B")] == [{}, {}]
        for actor in ("m1", "m2"):
            assert stage.details(Kind.REBALANCE_ENDED, actor, "outcome")[-1] == "failed"
            why = str(stage.details(Kind.ATTEMPT_FAILED, actor, "why")[-1])
            assert why.startswith(
                "RequirementFailed: requirement failed: Round-robin assignment is allowed only if all"
            )

    Stage(rules=rules).play(story)


def test_topics_of_equal_hash_in_another_order_are_claimed_twice_for_ever() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"Aa": 1, "BB": 1})
        await stage.join("m1", {"Aa": 1, "BB": 1}, **ROUND_ROBIN)
        await stage.join("m2", {"BB": 1, "Aa": 1}, **ROUND_ROBIN)
        assert await stage.owners("Aa") == {}
        ((winner, owned),) = (await stage.owners("BB")).items()
        assert owned == [0]
        assert_fails(stage, other(winner), "owned by others: BB/0")

    Stage().play(story)


def test_range_beside_round_robin_claim_one_partition_twice_and_leave_one_out() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 4})
        await stage.join("m1", partition_assignment_strategy="range", rebalance_max_retries=2)
        await stage.join("m2", **ROUND_ROBIN)
        ((winner, owned),) = (await stage.owners()).items()
        assert owned == {"m1": [0, 1], "m2": [1, 3]}[winner]
        assert_fails(stage, other(winner), "owned by others: t/1")

    Stage().play(story)


def test_threads_stand_in_javas_order_also_beyond_the_basic_plane() -> None:
    # UTF-16: a surrogate (D83D) sorts before U+FFFD; by code points it is the other way round
    found = group_threads([{"t": ("g_\ufffd-0", "g_\U0001f600-0")}, {"t": ("g_b-0",)}])
    assert found == {"t": ("g_b-0", "g_\U0001f600-0", "g_\ufffd-0")}
    assert group_threads([{"t": ("c-2", "c-10")}]) == {"t": ("c-10", "c-2")}
