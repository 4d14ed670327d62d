"""A leader's high watermark falls, or a later leader lacks what was committed (R7, R8).

A leader counts as committed what every replica in sync has. In one leader epoch this offset never falls. In a later
epoch the log of each new leader reaches at least as far as all that was committed in the epochs before, because
the leader was in sync. The high watermark that a broker remembers as a follower may be lower for a while. What was
committed is compared by offsets, in each life of a topic apart; `lost_write` and `replica_divergence` compare records.

Witness: what was committed, and the moment that contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import lived_of, place_of
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import COMMITTED, LEADS, high_watermark_in
from rebalance_lab.history.views import events_of, grouped

Wrong = tuple[str, Event, Event]


def judge(history: History) -> Finding:
    """Measures: `count`, contradictions; `missing`, the most records that a leader lacks; `commits`, moves of a high
    watermark that were looked at; `successions`, leaders that began after a commit."""
    commits = events_of(history, COMMITTED)
    of_life = partial(lived_of, history)
    by_life = grouped(commits, of_life)
    successions = [
        (commit, leader)
        for leader in events_of(history, LEADS)
        if (commit := _before(by_life.get(of_life(leader), ()), leader)) is not None
    ]
    lacking = [(commit, leader) for commit, leader in successions if _lacks(commit, leader) > 0]
    marks = grouped(events_of(history, LEADS, COMMITTED), of_life)
    falls = [wrong for each in marks.values() for wrong in _falls(each)]
    wrong = [*falls, *(_told(*each) for each in lacking)]
    measures = {
        "count": len(wrong),
        "missing": max((_lacks(*each) for each in lacking), default=0),
        "commits": len(commits),
        "successions": len(successions),
    }
    if wrong:
        why, commit, event = wrong[0]
        return violated(why, (commit.id, event.id), measures)
    why = f"leaders had all that was committed before them; successions: {len(successions)}"
    return not_violated(history, why, measures, vacuous=None if commits else "nothing was committed")


def _falls(marks: list[Event]) -> list[Wrong]:
    """High watermarks of one leader epoch that did not rise, from the one with which the leader began."""
    found: list[Wrong] = []
    last: dict[tuple[str, int], Event] = {}
    for event in marks:
        leadership = event.actor, _number(event, "leader_epoch")
        before = last.get(leadership)
        if event.kind is COMMITTED and before is not None and high_watermark_in(event) <= high_watermark_in(before):
            why = (
                f"{place_of(event)}: the high watermark of {event.actor} went from {high_watermark_in(before)} to "
                f"{high_watermark_in(event)} in leader epoch {leadership[1]}"
            )
            found.append((why, before, event))
        if event.kind is COMMITTED or before is None:
            last[leadership] = event
    return found


def _before(commits: Iterable[Event], leader: Event) -> Event | None:
    """The largest offset that was committed in an earlier epoch, also by a broker that heard late of this one."""
    epoch = _number(leader, "leader_epoch")
    earlier = [each for each in commits if _number(each, "leader_epoch") < epoch]
    return max(earlier, key=lambda each: _number(each, "offset"), default=None)


def _lacks(commit: Event, leader: Event) -> int:
    """How many committed records a leader's log ends before."""
    return _number(commit, "offset") - _number(leader, "end_offset")


def _told(commit: Event, leader: Event) -> Wrong:
    why = (
        f"{place_of(leader)}: {commit.actor} committed up to offset {commit.of('offset')} in leader epoch "
        f"{commit.of('leader_epoch')}, and {leader.actor} leads in epoch {leader.of('leader_epoch')} with a log that "
        f"ends at {leader.of('end_offset')}"
    )
    return why, commit, leader


def _number(event: Event, name: str) -> int:
    return int(str(event.of(name)))


CHECK = Check(
    name="leader_completeness",
    compares=(Layer.BELIEF,),
    meaning="A leader's log lacks records that were committed before, or its high watermark falls.",
    together="Consumers could read these records, and the leader of a later epoch does not have them.",
    plants=(Planted("forgets-last-batch", "all-replicas-down", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
