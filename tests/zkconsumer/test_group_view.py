"""What a member reads of its group: all registrations at once, or one by one, and what fails either."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.registration import Registration, registration_payload
from rebalance_lab.world.errors import NoNode, ZooKeeperError
from rebalance_lab.world.ports import Children, Node, Stat
from zkconsumer.group_view import GroupView, Snapshot

IDS = "/consumers/g/ids"
STAT = Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, pzxid=77)
MEMBER = registration_payload(Registration((("t", 1),), timestamp_ms=1))


class Client:
    """Serves znodes; `hidden` are listed and not there."""

    def __init__(self, members: dict[str, bytes], hidden: Sequence[str] = ()) -> None:
        self.requests: list[str] = []
        self._nodes = {f"{IDS}/{name}": data for name, data in members.items() if name not in hidden}
        self._nodes["/brokers/topics/t"] = b'{"partitions":{"0":[0]}}'
        self._members = tuple(sorted(members))

    async def children(self, path: str) -> Children:
        self.requests.append(f"children {path}")
        if path != IDS or not self._members:
            raise NoNode("children", path)
        return Children(self._members, STAT)

    async def read(self, path: str) -> Node:
        self.requests.append(f"get {path}")
        if path not in self._nodes:
            raise NoNode("get", path)
        return Node(self._nodes[path], STAT)

    async def read_all(self, paths: Sequence[str]) -> tuple[Node | ZooKeeperError, ...]:
        self.requests.append(f"multi_read {len(paths)}")
        return tuple(Node(self._nodes[each], STAT) if each in self._nodes else NoNode("get", each) for each in paths)


def snapshot(client: Client, **flags: bool) -> Snapshot:
    found: list[Snapshot] = []

    async def story() -> None:
        view = GroupView(client, group="g", consumer_id="a", exclude_internal=True, **flags)  # type: ignore[arg-type]
        found.append(await view.snapshot())

    simulation = Simulation(1)
    simulation.run(story())
    simulation.close()
    return found[0]


@pytest.mark.parametrize(
    ("multi_read", "requests"), [(True, ["multi_read 2"]), (False, [f"get {IDS}/a", f"get {IDS}/b"])]
)
def test_members_are_read_multi_read_or_one_by_one(multi_read: bool, requests: list[str]) -> None:
    client = Client({"a": MEMBER, "b": MEMBER})
    seen = snapshot(client, multi_read=multi_read)
    assert (seen.members, seen.members_zxid) == (("a", "b"), 77)
    assert seen.context.threads == {"t": ("a-0", "b-0")}
    listed = f"children {IDS}"
    assert client.requests == [f"get {IDS}/a", "get /brokers/topics/t", listed, *requests, listed]


@pytest.mark.parametrize("multi_read", [True, False])
def test_a_member_that_vanished_fails_it_or_is_left_out(multi_read: bool) -> None:
    members = {"a": MEMBER, "b": MEMBER, "c": MEMBER}
    with pytest.raises(NoNode, match=f"get {IDS}/b"):
        snapshot(Client(members, hidden=["b"]), multi_read=multi_read)
    seen = snapshot(Client(members, hidden=["b"]), multi_read=multi_read, skip_vanished=True)
    assert seen.context.threads == {"t": ("a-0", "c-0")}


@pytest.mark.parametrize("multi_read", [True, False])
def test_a_member_that_nobody_can_read_fails_it(multi_read: bool) -> None:
    with pytest.raises(KafkaException, match=r"error constructing TopicCount : \*4\*old"):
        snapshot(Client({"a": MEMBER, "b": b"*4*old"}), multi_read=multi_read, skip_vanished=True)


def test_a_list_that_is_not_there_fails_at_the_last_look_only() -> None:
    client = Client({})
    client._nodes[f"{IDS}/a"] = MEMBER
    with pytest.raises(NoNode):  # for 0.8.2's log, which does not forgive it
        snapshot(client)
    assert client.requests.count(f"children {IDS}") == 2
