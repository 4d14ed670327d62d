"""The leaders that each rule chooses: the articles' example, where versions of Kafka differ, and what always holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.leader_election import (
    Election,
    LeaderAndIsr,
    NoLeader,
    Selection,
    controlled_shutdown,
    first_leader,
    offline,
    preferred,
    reassigned,
    without_replicas,
)
from rebalance_lab.wire.cluster import NO_LEADER


def state(leader: int, isr: tuple[int, ...], epoch: int = 4) -> LeaderAndIsr:
    return LeaderAndIsr(leader, epoch, isr)


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    assert first_leader((3, 1, 2), {1, 2}) == Election(LeaderAndIsr(1, 0, (1, 2)), (1, 2))


def test_assignment_order_decides_not_the_isr_s() -> None:
    """Claim E5: assignment [1, 2, 3], ISR [3, 2]."""
    assert offline((1, 2, 3), state(1, (3, 2)), {2, 3}, unclean_allowed=False) == Election(
        LeaderAndIsr(2, 5, (3, 2)), (2, 3)
    )


def test_in_0_8_0_the_isr_s_order_decides() -> None:
    """Claim E5b: `liveBrokersInIsr.head`."""
    elected = offline((1, 2, 3), state(1, (4, 3, 2)), {2, 3}, unclean_allowed=False, selection=Selection.V0_8_0)
    assert elected.leader_and_isr == LeaderAndIsr(3, 5, (3, 2))


def test_a_live_replica_outside_the_isr_is_passed_over() -> None:
    assert offline((1, 2, 3), state(1, (1, 3)), {2, 3}, unclean_allowed=True).leader_and_isr == LeaderAndIsr(3, 5, (3,))


def test_an_unclean_election_is_marked_and_leaves_one_in_sync() -> None:
    elected = offline((1, 2, 3), state(1, (1,)), {2, 3}, unclean_allowed=True)
    assert elected == Election(LeaderAndIsr(2, 5, (2,), recovering=True), (2, 3), unclean=True)


def test_a_clean_election_keeps_what_is_recovering() -> None:
    recovering = LeaderAndIsr(1, 4, (1, 2), recovering=True)
    elected = offline((1, 2), recovering, {2}, unclean_allowed=True)
    assert (elected.unclean, elected.leader_and_isr.recovering) == (False, True)


def test_the_preferred_replica_takes_over_without_a_change_of_the_isr() -> None:
    assert preferred((1, 2), state(2, (2, 1)), {1, 2}) == Election(LeaderAndIsr(1, 5, (2, 1)), (1, 2))


def test_a_reassigned_partition_is_led_by_a_target_replica() -> None:
    assert reassigned((4, 5), state(1, (1, 5)), {1, 4, 5}) == Election(LeaderAndIsr(5, 5, (1, 5)), (4, 5))


@pytest.mark.parametrize(
    ("selection", "leader", "receivers"),
    [
        (Selection.V0_8_0, 3, (1, 2, 3)),
        (Selection.V0_8_2, 3, (1, 2, 3)),
        (Selection.V1_0, 2, (1, 2, 3)),
        (Selection.V1_1, 2, (2, 3)),
        (Selection.V2_1, 2, (1, 2, 3)),
    ],
)
def test_a_controlled_shutdown_in_each_version(selection: Selection, leader: int, receivers: tuple[int, ...]) -> None:
    """Claim E5: with ISR [3, 2, 1] the version decides between its order and the assignment's."""
    elected = controlled_shutdown((1, 2, 3), state(1, (3, 2, 1)), {2, 3}, {1}, selection=selection)
    assert elected == Election(LeaderAndIsr(leader, 5, (3, 2)), receivers)


@pytest.mark.parametrize("selection", [Selection.V0_8_0, Selection.V0_8_2])
def test_a_controlled_shutdown_of_0_8_may_move_to_a_dead_broker(selection: Selection) -> None:
    """`newIsr.headOption`: the head of what stays of the ISR, which nobody asks whether it is live."""
    elected = controlled_shutdown((1, 2, 3), state(1, (3, 2, 1)), {2}, {1}, selection=selection)
    assert elected == Election(LeaderAndIsr(3, 5, (3, 2)), (1, 2))


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (lambda: first_leader((1, 2), {3}), "none of the replicas 1, 2 is live"),
        (lambda: offline((1, 2), state(1, (1,)), {2}, unclean_allowed=False), r"ISR 1, live 2\), and unclean"),
        (lambda: offline((1, 2), state(1, (1,)), set(), unclean_allowed=True), "none of the replicas 1, 2 is live"),
        (lambda: preferred((1, 2), state(2, (1, 2)), {2}), "1 is not live"),
        (lambda: preferred((1, 2), state(2, (2,)), {1, 2}), "1 is not in sync"),
        (lambda: reassigned((3,), state(1, (1, 2)), {1, 2, 3}), "target replicas 3"),
        (lambda: controlled_shutdown((1, 2), state(1, (1,)), {2}, {1}), r"no other in-sync replica is live \(ISR 1\)"),
    ],
)
def test_where_nobody_may_lead(rule: Callable[[], Election], says: str) -> None:
    with pytest.raises(NoLeader, match=says):
        rule()


def test_a_replica_goes_offline() -> None:
    assert without_replicas(state(1, (1, 2)), [2]) == LeaderAndIsr(1, 5, (1,))
    assert without_replicas(state(1, (1, 2)), [1]) == LeaderAndIsr(NO_LEADER, 5, (2,))
    assert without_replicas(state(1, (1, 2)), [3]) is None


def test_the_last_in_sync_replica_stays_but_in_0_8_2_with_unclean_elections() -> None:
    assert without_replicas(state(1, (1,)), [1]) == LeaderAndIsr(NO_LEADER, 5, (1,))
    assert without_replicas(state(1, (1,)), [1], empty_isr_allowed=True) == LeaderAndIsr(NO_LEADER, 5, ())


@st.composite
def partitions(draw: st.DrawFn) -> tuple[tuple[int, ...], LeaderAndIsr, set[int]]:
    assignment = tuple(draw(st.permutations(range(draw(st.integers(1, 5))))))
    isr = tuple(draw(st.lists(st.sampled_from(assignment), min_size=1, unique=True)))
    return assignment, state(draw(st.sampled_from(isr)), isr), draw(st.sets(st.sampled_from(assignment)))


@given(partitions(), st.booleans())
def test_a_leader_is_live_and_in_sync_unless_marked(
    partition: tuple[tuple[int, ...], LeaderAndIsr, set[int]], unclean_allowed: bool
) -> None:
    assignment, current, live = partition
    try:
        elected = offline(assignment, current, live, unclean_allowed=unclean_allowed)
    except NoLeader:
        assert not live if unclean_allowed else not live & set(current.isr)
        return
    after = elected.leader_and_isr
    assert after.leader in live
    assert after.leader in after.isr
    assert after.leader_epoch == current.leader_epoch + 1
    assert set(after.isr) <= live
    assert elected.unclean is (after.leader not in current.isr)
    assert unclean_allowed or set(after.isr) <= set(current.isr)
