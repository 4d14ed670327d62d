"""Leader epochs and where they start (the cases of `LeaderEpochFileCacheTest`, Kafka 3.9.1)."""

from __future__ import annotations

import pytest

from rebalance_lab.broker.log.epochs import EpochEnd, LeaderEpochs

UNDEFINED = EpochEnd(-1, -1)


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    found = LeaderEpochs()
    for epoch, offset in entries:
        found.assign(epoch, offset)
    return found


@pytest.mark.parametrize(
    ("assigned", "kept"),
    [
        ([(2, 6), (3, 8)], [(2, 6), (3, 8)]),
        ([(2, 6), (2, 7)], [(2, 6)]),  # the epoch goes on
        ([(2, 6), (2, 5)], [(2, 5)]),
        ([(2, 6), (3, 6)], [(3, 6)]),  # epoch 2 has written nothing
        ([(2, 6), (3, 8), (4, 7)], [(2, 6), (4, 7)]),
        ([(2, 6), (3, 8), (2, 9)], [(2, 9)]),
        ([(1, 0), (2, 6), (1, 7)], [(1, 7)]),
    ],
)
def test_later_entries_win(assigned, kept):
    assert list(epochs(*assigned).entries) == kept


def test_it_says_whether_anything_changed():
    found = epochs((2, 6))
    assert not found.assign(2, 9)
    assert found.assign(3, 9)
    assert not found.truncate_from_end(10)
    assert found.truncate_from_end(9)
    assert not found.truncate_from_start(6)
    assert found.truncate_from_start(7)


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_numbers_are_refused(entry):
    with pytest.raises(ValueError, match="cannot start"):
        epochs(entry)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, UNDEFINED), (1, (1, 6)), (2, (2, 8)), (3, (3, 11)), (4, (3, 11)), (5, (5, 20)), (6, UNDEFINED)],
)
def test_the_end_of_an_epoch_is_where_the_next_one_starts(asked, answer):
    assert epochs((2, 6), (3, 8), (5, 11)).end_of(asked, 20) == answer


@pytest.mark.parametrize(("asked", "answer"), [(1, UNDEFINED), (2, (2, 8)), (4, (3, 11)), (5, (5, 20)), (6, UNDEFINED)])
def test_up_to_2_0_0_the_end_of_an_epoch_before_the_first_was_not_known(asked, answer):
    assert epochs((2, 6), (3, 8), (5, 11)).end_of(asked, 20, before_first=False) == answer


def test_without_epochs_no_end_is_known():
    assert epochs().end_of(0, 20) == UNDEFINED


def test_the_epoch_of_an_offset():
    found = epochs((2, 6), (3, 8))
    assert [found.at(offset) for offset in (5, 6, 7, 8, 100)] == [-1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("end", "kept"), [(12, [(2, 6), (3, 8)]), (8, [(2, 6)]), (9, [(2, 6), (3, 8)]), (6, []), (0, [])]
)
def test_truncation_from_the_end(end, kept):
    found = epochs((2, 6), (3, 8))
    found.truncate_from_end(end)
    assert list(found.entries) == kept


@pytest.mark.parametrize(
    ("start", "kept"),
    [(5, [(2, 6), (3, 8)]), (6, [(2, 6), (3, 8)]), (7, [(2, 7), (3, 8)]), (8, [(3, 8)]), (30, [(3, 30)])],
)
def test_truncation_from_the_start(start, kept):
    found = epochs((2, 6), (3, 8))
    found.truncate_from_start(start)
    assert list(found.entries) == kept
