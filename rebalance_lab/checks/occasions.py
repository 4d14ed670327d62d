"""Changes at which a member had something to give up: without one the order of a rebalance (Z5a) is not tested."""

from __future__ import annotations

from rebalance_lab.checks.lives import lives
from rebalance_lab.checks.missed_watch import member_changes
from rebalance_lab.checks.scope import next_rest
from rebalance_lab.checks.znodes import znodes_of
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session


def occasion(history: History) -> Event | None:
    """The first id that came or went from the first rest on while another member of the group owned a partition,
    and was there, connected and undisturbed until the next rest. None where there is no such change."""
    owners = [znode for znode in znodes_of(history)[0] if not znode.is_id]
    actors = actor_by_session(history)
    for change in member_changes(history):
        rest = next_rest(history, change)
        there = {
            life.actor
            for life in lives(history)
            if rest is not None
            and life.group == change.group
            and life.member != change.member
            and life.undisturbed(change.at_us, rest.at_us)
        }
        if any(znode.surely_there_at(change) and actors.get(znode.created.session) in there for znode in owners):
            return change
    return None
