"""Stretches of time: union, gaps, common part."""

from __future__ import annotations

from rebalance_lab.checks.stretches import Stretch, common, gaps, union


def _stretch(begin: int, end: int) -> Stretch:
    return Stretch(begin, end, ("a", begin), ("a", end))


def test_union_joins_what_touches_and_keeps_the_bounding_events() -> None:
    assert union([_stretch(5, 9), _stretch(0, 3), _stretch(1, 2), _stretch(9, 12), _stretch(20, 21)]) == [
        _stretch(0, 3),
        _stretch(5, 12),
        _stretch(20, 21),
    ]


def test_of_two_that_end_at_once_the_first_keeps_its_end() -> None:
    first, second = Stretch(0, 5, ("a", 0), ("a", 5)), Stretch(1, 5, ("b", 1), ("b", 5))
    assert union([first, second]) == [first]


def test_where_a_stretch_begins_with_the_scope_or_at_its_end_it_bounds_no_gap() -> None:
    beside = [Stretch(1, 4, ("b", 1), ("b", 4)), Stretch(10, 12, ("b", 10), ("b", 12))]
    assert gaps(beside, _stretch(1, 10)) == [Stretch(4, 10, ("b", 4), ("a", 10))]


def test_gaps_are_bounded_by_their_neighbours_or_the_scope() -> None:
    covered = [_stretch(0, 2), _stretch(4, 6), _stretch(8, 9), _stretch(30, 40)]
    assert gaps(covered, _stretch(1, 10)) == [_stretch(2, 4), _stretch(6, 8), _stretch(9, 10)]
    assert gaps([], _stretch(1, 10)) == [_stretch(1, 10)]
    assert gaps([_stretch(0, 10)], _stretch(1, 10)) == []


def test_what_ended_where_the_scope_begins_does_not_bound_a_gap() -> None:
    before = Stretch(0, 1, ("b", 0), ("b", 1))
    assert gaps([before], _stretch(1, 10)) == [_stretch(1, 10)]


def test_common_part() -> None:
    assert common(_stretch(0, 5), _stretch(3, 9)) == _stretch(3, 5)
    assert common(_stretch(0, 5), _stretch(5, 9)) is None


def test_common_part_is_bounded_by_an_event_where_there_is_one() -> None:
    open_ended, scope = Stretch(0, 5, ("a", 0), None), Stretch(0, 5, None, ("a", 5))
    assert common(open_ended, scope) == common(scope, open_ended) == _stretch(0, 5)
