"""All schedules of small partitions: which rules keep their promises, and how soon the others break them."""

from __future__ import annotations

from typing import Any

import pytest
from thorough import only_thorough, usual

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.explore.model import Bounds, Partition, State
from rebalance_lab.explore.plants import RuleBug, planted
from rebalance_lab.explore.properties import CHECKS, Property
from rebalance_lab.explore.search import Ending, Exploration, explore

ALL = tuple(Property)

#: Each with the number of steps in which a committed record is lost.
FAILING = [
    (ReplicationRules.HIGH_WATERMARK, 7),
    (ReplicationRules.KIP_101, 9),
    (ReplicationRules.KIP_279, 9),
    (ReplicationRules.KIP_320_FIRST_TRY, 9),
]


def explored(
    rules: ReplicationRules,
    wanted: tuple[Property, ...] = ALL,
    *,
    forgets: bool = True,
    whole: bool = False,
    **bounds: Any,
) -> Exploration:
    return explore(Partition(rules, Bounds(**bounds), forgets_if_missed=forgets), wanted, whole=whole)


def lengths(found: Exploration) -> dict[str, int]:
    return {each.value: len(example.steps) for each, example in found.counterexamples.items()}


def test_kip_320_keeps_its_promises_under_all_schedules() -> None:
    found = explored(ReplicationRules.KIP_320, records=2, epochs=2)
    assert (found.ending, found.counterexamples) == (Ending.EXHAUSTED, {})
    assert (found.states, found.transitions) == (35_821, 138_358)
    found = explored(ReplicationRules.KIP_320, records=1, epochs=2, crashes=1)
    assert (found.ending, found.counterexamples) == (Ending.EXHAUSTED, {})


def test_no_rules_keep_them_when_power_is_lost() -> None:
    for rules in ReplicationRules:
        found = explored(rules, (Property.COMMITTED,), records=1, epochs=2, power_losses=1)
        assert lengths(found) == {"committed": 4}


@pytest.mark.parametrize(("rules", "steps"), FAILING)
def test_earlier_rules_lose_a_committed_record(rules: ReplicationRules, steps: int) -> None:
    found = explored(rules, (Property.COMMITTED,), records=1, epochs=3)
    assert (found.ending, lengths(found)) == (Ending.FOUND, {"committed": steps})


def test_a_leader_that_has_missed_an_epoch_commits_what_nobody_has() -> None:
    found = explored(ReplicationRules.KIP_320, (Property.COMMITTED,), forgets=False, records=1, epochs=3)
    assert lengths(found) == {"committed": 9}


#: Each with the number of steps in which a committed record is lost.
BUGS = {
    RuleBug.JOINS_EARLY: 10,
    RuleBug.COUNTS_OLD_FETCHES: 9,
    RuleBug.CUTS_AT_LEADER_END: 7,
    RuleBug.COUNTS_DIVERGING: 7,
    RuleBug.IGNORES_PROPOSED: 5,
    RuleBug.UNFENCED_ISR: 5,
    RuleBug.ELECTS_OUT_OF_SYNC: 4,
}


@pytest.mark.parametrize("bug", RuleBug)
def test_every_planted_bug_is_found(bug: RuleBug) -> None:
    partition = Partition(ReplicationRules.KIP_320, Bounds(records=2, epochs=3), forgets_if_missed=True, **planted(bug))
    found = explore(partition, (Property.COMMITTED,))
    assert (found.ending, lengths(found)) == (Ending.FOUND, {"committed": BUGS[bug]})


@pytest.mark.parametrize("rules", ReplicationRules)
def test_answers_that_come_late_break_no_other_promise(rules: ReplicationRules) -> None:
    at_once = explored(rules, records=1, epochs=2)
    late = explored(rules, records=1, epochs=2, late_answers=True)
    assert set(late.counterexamples) == set(at_once.counterexamples)
    assert late.states > at_once.states


def test_a_counterexample_is_a_schedule_from_the_start_to_a_state_without_the_property() -> None:
    partition = Partition(ReplicationRules.HIGH_WATERMARK, Bounds(records=2, epochs=3))
    found = explore(partition, ALL)
    for broken, example in found.counterexamples.items():
        now = example.start
        for step in example.steps:
            assert CHECKS[broken](*partition.values(now))
            assert step in partition.steps(now)
            now = step[1]
        assert not CHECKS[broken](*partition.values(now))


def test_states_that_differ_in_names_only_are_one() -> None:
    partition = Partition(ReplicationRules.KIP_101, Bounds(brokers=3, records=1, epochs=2))
    all_of_them = reachable(partition)
    assert {partition.canonical(each) for each in all_of_them} == reachable(partition, canonical=True)
    assert len(all_of_them) > 2 * len(reachable(partition, canonical=True))


def reachable(partition: Partition, *, canonical: bool = False) -> set[State]:
    def name(state: State) -> State:
        return partition.canonical(state) if canonical else state

    found = {name(partition.start)}
    waiting = list(found)
    while waiting:
        for _, after in partition.steps(waiting.pop()):
            if name(after) not in found:
                found.add(name(after))
                waiting.append(name(after))
    return found


def test_a_search_ends_at_its_limit() -> None:
    found = explore(Partition(ReplicationRules.KIP_320, Bounds()), ALL, most_states=1000)
    assert found.ending is Ending.LIMIT
    assert 1000 <= found.states < 1100


def test_a_search_of_the_whole_goes_on_after_a_counterexample() -> None:
    bounds = Bounds(brokers=2, records=2, epochs=3)
    found = explore(Partition(ReplicationRules.HIGH_WATERMARK, bounds), ALL, whole=True)
    assert found.ending is Ending.EXHAUSTED
    assert Property.COMMITTED in found.counterexamples
    assert found.states > found.counterexamples[Property.COMMITTED].states


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "steps"), FAILING)
def test_earlier_rules_lose_it_as_soon_within_larger_bounds(rules: ReplicationRules, steps: int) -> None:
    found = explored(rules, (Property.COMMITTED,), records=3, epochs=3)
    assert lengths(found) == {"committed": steps}


#: All states with one record and three epochs, all steps from them, and the steps to the first loss.
WHOLE = [
    (ReplicationRules.HIGH_WATERMARK, 141_740, 663_614, {"committed": 7}),
    (ReplicationRules.KIP_101, 162_569, 747_673, {"committed": 9}),
    (ReplicationRules.KIP_279, 147_326, 671_133, {"committed": 9}),
    (ReplicationRules.KIP_320_FIRST_TRY, 124_880, 577_461, {"committed": 9}),
    (ReplicationRules.KIP_320, 94_948, 425_404, {}),
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("rules", "states", "transitions", "lost"), usual([WHOLE[0], WHOLE[-1]], WHOLE))
def test_the_whole_space_of_each_rule_set(
    rules: ReplicationRules, states: int, transitions: int, lost: dict[str, int]
) -> None:
    found = explored(rules, (Property.COMMITTED,), whole=True, records=1, epochs=3)
    assert (found.ending, found.states, found.transitions) == (Ending.EXHAUSTED, states, transitions)
    assert lengths(found) == lost


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("rules", "parted"),
    [
        (ReplicationRules.HIGH_WATERMARK, {"agreement": 9}),
        (ReplicationRules.KIP_101, {"agreement": 11}),
        (ReplicationRules.KIP_279, {"agreement": 11}),
        (ReplicationRules.KIP_320_FIRST_TRY, {}),  # of kip-320, the test with three records says it
    ],
)
def test_logs_diverge_until_fetches_say_where_they_part(rules: ReplicationRules, parted: dict[str, int]) -> None:
    found = explored(rules, (Property.AGREEMENT,), records=2, epochs=3)
    assert (found.ending, lengths(found)) == (Ending.FOUND if parted else Ending.EXHAUSTED, parted)


def test_logs_diverge_sooner_if_a_follower_does_not_truncate_for_the_same_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KAFKA-7164, which the lab's kip-101 does not have."""
    resumes = property(lambda rules: rules is ReplicationRules.KIP_101)
    monkeypatch.setattr(ReplicationRules, "resumes_after_same_leader", resumes)
    found = explored(ReplicationRules.KIP_101, (Property.AGREEMENT,), records=2, epochs=3)
    assert lengths(found) == {"agreement": 8}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("rules", "records", "parted"),
    [(ReplicationRules.KIP_101, 3, {"agreement": 11}), (ReplicationRules.KIP_279, 2, {})],
)
def test_the_mistake_of_kip_101_alone_is_gone_with_kip_279(
    rules: ReplicationRules, records: int, parted: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-6361. Without the fence of KIP-320, both part as soon by another schedule."""
    monkeypatch.setattr(ReplicationRules, "fences", property(lambda _: True))
    found = explored(rules, (Property.AGREEMENT,), records=records, epochs=3)
    assert (found.ending, lengths(found)) == (Ending.FOUND if parted else Ending.EXHAUSTED, parted)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("rules", usual([ReplicationRules.KIP_320], list(ReplicationRules)))
def test_answers_that_come_late_change_no_verdict_in_three_epochs(rules: ReplicationRules) -> None:
    """With one record `agreement` is never broken."""
    others = {each for each in Property if each is not Property.AGREEMENT}
    found = explored(rules, tuple(others), records=1, epochs=3, late_answers=True)
    assert set(found.counterexamples) == (set() if rules is ReplicationRules.KIP_320 else others)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        ({"epochs": 3, "crashes": 1}, 437_092),
        ({"epochs": 3, "late_fetches": True}, 502_889),
        ({"epochs": 4}, 790_635),
    ],
    ids=["a crash", "late fetches", "four epochs"],
)
def test_kip_320_keeps_its_promises_with_one_record(bounds: dict[str, Any], states: int) -> None:
    found = explored(ReplicationRules.KIP_320, records=1, **bounds)
    assert (found.ending, found.states, found.counterexamples) == (Ending.EXHAUSTED, states, {})


@pytest.mark.slow
@only_thorough
@pytest.mark.timeout(900)
def test_kip_320_keeps_its_promises_with_three_records() -> None:
    found = explored(ReplicationRules.KIP_320, records=3, epochs=3)
    assert (found.ending, found.counterexamples) == (Ending.EXHAUSTED, {})
    assert (found.states, found.transitions) == (2_189_032, 10_567_292)
