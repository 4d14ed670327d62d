"""One attempt of a real member's rebalance, as it proceeds: what it read, what it wants, and why it fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from rebalance_lab.history.rebalances import AttemptFailure
from rebalance_lab.roles.real.packets import Packet
from rebalance_lab.wire.paths import members_path
from rebalance_lab.wire.view_digest import view_digest

#: (group, zxid a server had reached) -> zxid of the latest change of the group's members until then.
MembersZxid = Callable[[str, int], int]

#: The assignors of 0.8.2 log their input, each in its own words.
_RANGE = re.compile(r"Consumer \S+ rebalancing the following partitions: \w+\((.*?)\) for topic (\S+) with consumers: ")
_ROUND_ROBIN = re.compile(r"Consumer \S+ rebalancing the following partitions for topic (\S+): \w+\((.*?)\)")
_CLAIMED = re.compile(r"waiting for the partition ownership to be deleted: (\d+)")

_PATH_PARTS = 6


@dataclass(slots=True)
class Attempt:
    """`released`: it has given up what it had, and now reads what it will decide from. `registrations`: the members
    whose registrations it has read since: first its own (AssignmentContext.myTopicThreadIds), then one by one those of
    the list of members from which it decides (ZkUtils.getConsumersPerTopic). `lists`: the lists of members that came
    between its own registration and the next: its own list, and any that a listener read in the meantime."""

    number: int
    group: str
    released: bool = False
    registrations: list[str] = field(default_factory=list)
    lists: list[Packet] = field(default_factory=list)
    topics: dict[str, tuple[int, ...]] = field(default_factory=dict)
    wants: list[tuple[str, int]] = field(default_factory=list)
    conflicts: list[tuple[str, int]] = field(default_factory=list)
    refused: tuple[str, int] | None = None
    decided: bool = False
    succeeded: bool = False
    error: str | None = None

    def saw(self, packet: Packet) -> None:
        """Process a reply that came while the attempt ran. The log names no thread. The client's event thread also
        reads the list of members (ZkClient does so for a listener), but never registrations."""
        parent, _, name = packet.path.rpartition("/")
        ids = members_path(self.group)
        if packet.path == ids and packet.operation == "children":
            if len(self.registrations) == 1 and packet.error is None:
                self.lists.append(packet)
        elif parent == ids and packet.operation == "get":
            if self.released and packet.error is None:
                self.registrations.append(name)
        elif (place := owner_or_offset(packet.path, self.group, "offsets")) is not None:
            if packet.operation == "get" and self.topics and place not in self.wants:
                self.wants.append(place)
        elif (place := owner_or_offset(packet.path, self.group, "owners")) is not None:
            refused = packet.operation == "create" and packet.error == "NodeExists"
            self.refused = place if refused else self.refused

    def heard(self, message: str) -> None:
        """Process a line of an assignor or of the claim."""
        if (found := _RANGE.search(message)) is not None:
            self.topics[found[2]] = _numbers(found[1])
        elif (found := _ROUND_ROBIN.search(message)) is not None:
            self.topics[found[1]] = _numbers(found[2])
        elif _CLAIMED.search(message) is not None and self.refused is not None:
            self.conflicts.append(self.refused)

    def decision(self, members_zxid: MembersZxid) -> dict[str, object] | None:
        """The detail of DECIDED, as `zkconsumer.rebalance` records it; None if the attempt did not get that far. It has
        no `members_zxid` if the log does not show from which list the member decided."""
        members = tuple(sorted(set(self.registrations[1:])))
        if not members or not self.topics:
            return None
        fitting = [seen for seen in self.lists if seen.names == members]
        zxids = {members_zxid(self.group, seen.zxid) for seen in fitting}
        return {
            "members": len(members),
            **({"members_zxid": zxids.pop()} if len(zxids) == 1 else {}),
            "view": view_digest(members, self.topics),
            "wants": [list(place) for place in self.wants],
        }

    def _reason(self, shutting_down: bool) -> AttemptFailure:
        if self.error is None and self.conflicts:
            return AttemptFailure.CONFLICT
        return AttemptFailure.SHUTDOWN if shutting_down and self.error is None else AttemptFailure.ERROR

    def failure(self, *, shutting_down: bool) -> dict[str, object]:
        """The detail of ATTEMPT_FAILED."""
        reason = self._reason(shutting_down)
        names = ", ".join(f"{topic}/{partition}" for topic, partition in self.conflicts)
        why = self.error or (f"owned by others: {names}" if names else "the log does not tell")
        return {
            "attempt": self.number,
            "why": "the member is shutting down" if reason is AttemptFailure.SHUTDOWN else why,
            "reason": reason,
            "conflicts": [list(place) for place in self.conflicts],
        }


def owner_or_offset(path: str, group: str, what: str) -> tuple[str, int] | None:
    """(topic, partition) of `/consumers/<group>/<what>/<topic>/<partition>`, else None."""
    parts = path.split("/")
    if len(parts) != _PATH_PARTS or parts[1:4] != ["consumers", group, what] or not parts[5].isdigit():
        return None
    return parts[4], int(parts[5])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(each) for each in text.split(",") if each.strip()))
