"""Writes of offsets in a spaced change (`checks.operations`), as `herd_cost` holds them against their bound."""

from __future__ import annotations

import pytest
from test_check_herd_cost import CHECK, WRITES, join, one_at_rest

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.history.events import Kind


def commits(*paths: str, rules: str = "real", made: tuple[str, ...] = (), made_ms: float = 1500) -> Finding:
    """m1 writes these offsets in a join to one of a group that reads one partition; `made`: the registry's CREATED."""
    story = join(one_at_rest(rules=rules), rules=rules)
    for path in paths:
        story.asks(1500, "m1", "set", f"/consumers/g/offsets{path}")
    for path in made:
        at = f"/consumers/g/offsets{path}"
        story.registry(made_ms, Kind.CREATED, at, "0x1", group="g", detail={"ephemeral": False})
    return CHECK.judge(story.history())


def test_offsets_that_real_members_commit_are_counted_apart() -> None:
    finding = commits("/t/0")
    assert (finding.outcome, finding.measures["join_1_commits"]) == (Outcome.CLEAN, 1)
    assert commits("").measures["join_1_commits"] == 1  # their parent
    assert commits("x").outcome is Outcome.VIOLATED


def test_what_members_of_the_lab_write_there_are_writes() -> None:
    finding = commits("/t/0", rules="shipped")
    assert (finding.outcome, "join_1_commits" in finding.measures) == (Outcome.VIOLATED, False)
    assert finding.why == f"a join in a group of 1 cost {WRITES + 1} writes ({WRITES} expected)"


@pytest.mark.parametrize(
    ("made", "most"), [((), 1), (("/t",), 1), (("",), 1), (("/t/0",), 3), (("/t", "/t/0"), 3), (("", "/t/0"), 5)]
)
def test_a_partition_is_committed_once_and_the_first_time_with_its_parents(made: tuple[str, ...], most: int) -> None:
    """Kafka 0.8.2.2, ZkUtils.updatePersistentPath; ZkClient 0.3, createPersistent."""
    assert commits(*["/t/0"] * most, made=made).outcome is Outcome.CLEAN
    finding = commits(*["/t/0"] * (most + 1), made=made)
    assert finding.why == f"a join in a group of 1 cost {most + 1} writes of offsets (at most {most} expected)"


@pytest.mark.parametrize(("ms", "outcome"), [(998, "clean"), (997, "violated"), (3002, "clean"), (3003, "violated")])
def test_a_commit_is_the_first_if_its_znode_was_made_in_the_change(ms: float, outcome: str) -> None:
    assert commits("/t/0", "/t/0", "/t/0", made=("/t/0",), made_ms=ms).outcome == outcome
