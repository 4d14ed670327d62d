"""When a group has settled: read from what its members record, not from how long nothing was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.rest import RestTracker
from rebalance_lab.testing.registry import Registered
from rebalance_lab.trials.stages.processes.nodes import EventFile


@dataclass(slots=True)
class MemberEvents:
    """What a member has written to its event file so far. `poll` reads on.

    `consumer`: its id. `dealt_from`: which list of ids its latest attempt dealt from.
    `outcome`: of its latest rebalance that has ended. `gave_up`: how many failed, and
    `attempts`: how often the last of them was tried. `believes`: partitions it thinks it owns.
    """

    actor: str
    file: EventFile
    tracker: RestTracker = field(default_factory=RestTracker)
    consumer: str | None = None
    dealt_from: int | None = None
    outcome: str | None = None
    gave_up: int = 0
    attempts: int = 0
    believes: dict[int, None] = field(default_factory=dict)

    def poll(self) -> bool:
        """True: something came that bears on whether it is at rest."""
        news = [self._take(event) for event in self.file.poll()]
        return any(news)

    def _take(self, event: Event) -> bool:
        bears = self.tracker.feed(event)
        match event.kind:
            case Kind.MEMBER_STARTED:
                self.consumer = event.member
            case Kind.DECIDED:
                zxid = event.of("members_zxid")
                self.dealt_from = zxid if isinstance(zxid, int) else None
            case Kind.REBALANCE_ENDED:
                self._ended(event)
            case Kind.OWNED if event.partition is not None:
                self.believes[event.partition] = None
            case Kind.DISOWNED if event.partition is not None:
                self.believes.pop(event.partition, None)
            case _:
                return bears
        return True

    def _ended(self, event: Event) -> None:
        self.outcome = str(event.of("outcome"))
        if self.outcome == "failed":
            attempts = event.of("attempts")
            self.gave_up += 1
            self.attempts = attempts if isinstance(attempts, int) else 0

    @property
    def last_change_us(self) -> int:
        return self.tracker.last_change_us

    def unrest(self) -> str | None:
        """Why it has something to do yet, by itself; None when it has not."""
        state = self.tracker.nodes.get(self.actor)
        if state is None:
            return "it has not come yet"
        busy = state.busy({})
        if busy is not None:
            return busy
        if self.outcome is None:
            return "it has not rebalanced yet"
        return None if self.outcome == "ok" else f"it gave up a rebalance after {self.attempts} attempts"

    def disagrees(self, registered: Registered, owners: Mapping[int, str]) -> str | None:
        """Why it does not know what the registry says; None when it does."""
        if self.consumer not in registered.ids:
            return "it is not registered"
        if self.dealt_from != registered.zxid:
            return "it has not dealt from these ids yet"
        mine = sorted(each for each, thread in owners.items() if consumer_of(thread) == self.consumer)
        if mine != sorted(self.believes):
            return f"it believes that it owns {sorted(self.believes)}, and the registry says {mine}"
        return None


def consumer_of(thread: str) -> str:
    """The consumer id in a thread id (`<consumer id>-<i>`)."""
    return thread.rpartition("-")[0]


def unsettled(
    running: Sequence[MemberEvents],
    paused: Sequence[MemberEvents],
    registered: Registered,
    owners: Mapping[int, str],
    partitions: int,
) -> str | None:
    """Why the registry and the members are not at one; None when they are. `paused`: members that
    stand still; they count for as long as they are registered."""
    for member in paused:
        if member.consumer in registered.ids:
            return f"{member.actor}: it is paused, and registered until its session ends"
    strangers = sorted(set(registered.ids) - {member.consumer for member in running})
    if strangers:
        return f"registered, and not a member that runs: {', '.join(strangers)}"
    wrong = sorted({*range(partitions)} ^ set(owners))
    if wrong:
        return f"without an owner, or not of the topic: {', '.join(map(str, wrong))}"
    for partition, thread in sorted(owners.items()):
        if consumer_of(thread) not in registered.ids:
            return f"partition {partition} is owned by {thread}, who is not registered"
    for member in running:
        why = member.disagrees(registered, owners)
        if why is not None:
            return f"{member.actor}: {why}"
    return None


def in_registry(registered: Registered, owners: Mapping[int, str], partitions: int) -> str:
    """For the message of a timeout: who is registered, and who owns what."""
    owned = [f"{each}: {owners.get(each, 'nobody')}" for each in sorted({*range(partitions), *owners})]
    return f"ids: {', '.join(registered.ids) or 'none'}; owners: {', '.join(owned) or 'none'}"


def gave_up(members: Sequence[MemberEvents], paused: Sequence[MemberEvents]) -> str:
    """For the same: who gave up, and who stands still."""
    tired = [f"{each.actor} ({each.gave_up} times, {each.attempts} attempts)" for each in members if each.gave_up]
    still = [each.actor for each in paused]
    return f"gave up a rebalance: {', '.join(tired) or 'nobody'}; paused: {', '.join(still) or 'nobody'}"
