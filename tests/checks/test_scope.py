"""Where checks about changes look: from the first rest until the phase `closing`."""

from __future__ import annotations

import pytest
from history_story import Story

from rebalance_lab.checks.phases import closing_us, judged_period, next_rest, rests_of
from rebalance_lab.history.events import Event, EventId
from rebalance_lab.history.files import History


def event(history: History, wanted: EventId) -> Event:
    return next(each for each in history.events if each.id == wanted)


def test_a_group_that_never_rested_has_no_scope() -> None:
    story = Story()
    story.phase(10, "joining")
    story.phase(900, "closing")
    story.rest(950)  # all are gone: that is no rest of the group
    assert judged_period(story.history()) is None


def test_a_history_that_is_cut_off_is_looked_at_to_its_end() -> None:
    story = Story()
    first = story.rest(100)
    last = story.owned(700, "m1")
    history = story.history()
    period = judged_period(history)
    assert period is not None
    assert (period.rest.id, period.end_us, period.end) == (first, 700_000, None)
    assert period.holds(event(history, last))
    assert closing_us(history) == (700_000, None)
    assert closing_us(Story(ended=False).history()) == (0, None)


@pytest.mark.parametrize(
    ("ms", "inside"), [(97.999, False), (98, True), (100, True), (898, True), (898.001, False), (900, False)]
)
def test_what_is_told_2_ms_too_early_is_of_what_follows(ms: float, inside: bool) -> None:
    story = Story()
    story.rest(100)
    change = story.created(ms, "m1")
    closing = story.phase(900, "closing")
    history = story.history()
    period = judged_period(history)
    assert period is not None
    assert period.end == closing
    assert period.holds(event(history, change)) is inside


def test_the_rest_of_a_phase_may_be_of_the_same_microsecond() -> None:
    story = Story()
    first = story.rest(100)
    phase = story.phase(100, "one joins")
    second = story.rest(100)
    history = story.history()
    assert [rest.id for rest in rests_of(history)] == [first, second]
    found = next_rest(history, event(history, phase))
    assert found is not None
    assert found.id == second
    assert next_rest(history, event(history, second)) is None


def test_a_rest_that_was_missed_is_not_the_next_phase_s() -> None:
    story = Story()
    missed = story.phase(100, "one joins")
    story.rest_missed(200, "m2: it rebalances")
    unended = story.phase(200, "another joins")
    last = story.phase(300, "a third joins")
    rest = story.rest(400)
    history = story.history()
    found = [next_rest(history, event(history, phase)) for phase in (missed, unended, last)]
    assert [each and each.id for each in found] == [None, None, rest]


def test_a_rest_that_was_missed_and_came_later_was_missed() -> None:
    story = Story()
    phase = story.phase(100, "one joins")
    story.rest_missed(200, "m2: it rebalances")
    story.rest(300)
    history = story.history()
    assert next_rest(history, event(history, phase)) is None
