"""When a group has settled, by what its members have told and what the registry says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.history.events import Event, Kind, Layer, encode_lines
from rebalance_lab.testing.group import MemberEvents, gave_up, in_registry, unsettled
from rebalance_lab.testing.registry import Registered
from rebalance_lab.trials.stages.processes.nodes import EventFile

ZXID = 7
ONE, TWO = "g_host-m1-1-a", "g_host-m2-2-b"
BOTH = Registered((ONE, TWO), ZXID)
OWNERS = {0: f"{ONE}-0", 1: f"{TWO}-0"}


class Writer:
    """A member's event file, as it grows."""

    def __init__(self, folder: Path, actor: str, member: str) -> None:
        self.path = folder / f"{actor}.jsonl"
        self.events = MemberEvents(actor, EventFile(self.path))
        self._actor, self._member, self._n = actor, member, 0

    def tell(self, kind: Kind, partition: int | None = None, **detail: object) -> None:
        layer = Layer.BELIEF if kind in {Kind.OWNED, Kind.DISOWNED} else Layer.OP
        event = Event(
            self._actor, self._n, self._n, layer, kind, member=self._member, partition=partition, detail=detail or None
        )
        self._n += 1
        with self.path.open("ab") as file:
            file.write(encode_lines([event]))
        self.events.poll()

    def rebalance(self, *partitions: int, zxid: int = ZXID, outcome: str = "ok") -> None:
        self.tell(Kind.REBALANCE_BEGAN)
        self.tell(Kind.DECIDED, members_zxid=zxid)
        for partition in partitions:
            self.tell(Kind.OWNED, partition)
        self.tell(Kind.REBALANCE_ENDED, outcome=outcome, attempts=4)

    def come(self) -> None:
        self.tell(Kind.MEMBER_STARTED)
        self.tell(Kind.CONNECTED)


@pytest.fixture
def one(tmp_path: Path) -> Writer:
    writer = Writer(tmp_path, "m1", ONE)
    writer.come()
    writer.rebalance(0)
    return writer


@pytest.fixture
def two(tmp_path: Path) -> Writer:
    writer = Writer(tmp_path, "m2", TWO)
    writer.come()
    return writer


def test_members_that_dealt_from_these_ids_and_believe_what_is_registered_are_settled(one: Writer, two: Writer) -> None:
    two.rebalance(1)
    assert (one.events.unrest(), two.events.unrest()) == (None, None)
    assert unsettled([one.events, two.events], [], BOTH, OWNERS, 2) is None


def test_a_member_has_something_to_do_until_its_last_rebalance_has_ended_well(two: Writer, tmp_path: Path) -> None:
    assert MemberEvents("m3", EventFile(tmp_path / "none.jsonl")).unrest() == "it has not come yet"
    assert two.events.unrest() == "it has not rebalanced yet"
    two.rebalance(1)
    two.tell(Kind.REBALANCE_TRIGGERED)
    assert two.events.unrest() == "a rebalance is triggered"
    two.tell(Kind.REBALANCE_BEGAN)
    assert two.events.unrest() == "it rebalances"
    two.tell(Kind.REBALANCE_ENDED, outcome="failed", attempts=4)
    assert two.events.unrest() == "it gave up a rebalance after 4 attempts"
    two.rebalance()
    assert two.events.unrest() is None
    two.tell(Kind.DISCONNECTED)
    assert two.events.unrest() == "it is not connected"


def test_a_member_that_dealt_from_an_older_list_has_not_settled(one: Writer, two: Writer) -> None:
    """It sits on a server that lags: nobody has told it yet."""
    two.rebalance(1, zxid=ZXID - 1)
    assert unsettled([one.events, two.events], [], BOTH, OWNERS, 2) == "m2: it has not dealt from these ids yet"


def test_a_member_that_believes_otherwise_has_not_settled(one: Writer, two: Writer) -> None:
    two.rebalance(0, 1)
    two.tell(Kind.DISOWNED, 1)
    why = unsettled([one.events, two.events], [], BOTH, OWNERS, 2)
    assert why == "m2: it believes that it owns [0], and the registry says [1]"


def test_a_paused_member_counts_for_as_long_as_it_is_registered(one: Writer, two: Writer) -> None:
    two.rebalance(1)
    why = unsettled([one.events], [two.events], BOTH, OWNERS, 2)
    assert why == "m2: it is paused, and registered until its session ends"
    one.rebalance(1, zxid=ZXID + 1)
    owners = {0: f"{ONE}-0", 1: f"{ONE}-0"}
    assert unsettled([one.events], [two.events], Registered((ONE,), ZXID + 1), owners, 2) is None


def test_the_registry_has_to_be_complete_and_of_these_members(one: Writer, two: Writer) -> None:
    two.rebalance(1)
    members = [one.events, two.events]
    assert unsettled(members[:1], [], BOTH, OWNERS, 2) == f"registered, and not a member that runs: {TWO}"
    assert unsettled(members, [], Registered((ONE,), ZXID), {0: f"{ONE}-0"}, 1) == "m2: it is not registered"
    assert unsettled(members, [], BOTH, {0: f"{ONE}-0"}, 2) == "without an owner, or not of the topic: 1"
    why = unsettled(members, [], BOTH, {0: f"{ONE}-0", 1: "g_ghost-3-c-0"}, 2)
    assert why == "partition 1 is owned by g_ghost-3-c-0, who is not registered"


def test_only_what_bears_on_rest_is_news(one: Writer) -> None:
    with one.path.open("ab") as file:
        file.write(encode_lines([Event("m1", 99, 99, Layer.EFFECT, Kind.WORKED)]))
    assert not one.events.poll()
    before_us = one.events.last_change_us
    with one.path.open("ab") as file:
        file.write(encode_lines([Event("m1", 100, 100, Layer.OP, Kind.REBALANCE_TRIGGERED)]))
    assert one.events.poll()
    assert (before_us < 99, one.events.last_change_us) == (True, 100)


def test_a_message_names_ids_owners_and_who_gave_up(one: Writer, two: Writer) -> None:
    two.rebalance(outcome="failed")
    two.rebalance(outcome="failed")
    assert in_registry(BOTH, {0: f"{ONE}-0"}, 2) == f"ids: {ONE}, {TWO}; owners: 0: {ONE}-0, 1: nobody"
    assert in_registry(Registered(), {}, 1) == "ids: none; owners: 0: nobody"
    assert gave_up([one.events, two.events], []) == "gave up a rebalance: m2 (2 times, 4 attempts); paused: nobody"
    assert gave_up([one.events], [two.events]) == "gave up a rebalance: nobody; paused: m2"
