"""Views: worked out once, in the history's order, and no part of the history."""

from __future__ import annotations

import pickle

from history_story import Story
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import of_kinds
from rebalance_lab.history.views import beliefs, closing_phase, effects, events_of, once, owners, registry

KINDS = [Kind.OWNED, Kind.DISOWNED, Kind.WORKED, Kind.REST_REACHED, Kind.PHASE]


def _story(kinds: list[Kind]) -> History:
    story = Story()
    for ms, kind in enumerate(kinds):
        story.member(ms // 2, f"m{ms % 3}", kind, topic="t", partition=0)
    return story.history()


@given(st.lists(st.sampled_from(KINDS)), st.sets(st.sampled_from(KINDS)))
def test_events_of_some_kinds_keep_the_history_s_order(kinds: list[Kind], wanted: set[Kind]) -> None:
    history = _story(kinds)
    assert events_of(history, *sorted(wanted)) == of_kinds(history.events, frozenset(wanted))


def test_a_view_is_computed_once_for_each_history() -> None:
    asked: list[str] = []

    @once
    def view(history: History) -> int:
        asked.append(history.trial.id)
        return len(history.events)

    one, other = _story([Kind.OWNED]), _story([Kind.OWNED, Kind.DISOWNED])
    assert [view(one), view(other), view(one), view(other)] == [2, 3, 2, 3]
    assert len(asked) == 2


def test_views_are_no_part_of_the_history() -> None:
    history, fresh = _story(KINDS), _story(KINDS)
    for view in (beliefs, owners, effects, registry, closing_phase):
        view(history)
    assert history == fresh
    assert history.__dict__ and not fresh.__dict__
    assert pickle.loads(pickle.dumps(history)).__dict__ == {}


def test_the_closing_phase_is_the_first_of_that_name() -> None:
    story = Story()
    story.phase(1, "joining")
    closing = story.phase(2, "closing")
    story.phase(3, "closing")
    found = closing_phase(story.history())
    assert found is not None
    assert found.id == closing
    assert closing_phase(Story().history()) is None
