"""Servers that put a member's znodes into the session of another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from counterfeit import trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.world.simulated.authority import Authority
from rebalance_lab.zkclient import ZkClient
from zkconsumer.claims import Claims, Plan
from zkconsumer.ownership import Ownership

_create, _delete, _WRITES = Authority._create, Authority._delete, Authority._WRITES
_subscribe, _TAKE = ZkClient.subscribe_child_changes, Claims.take


@contextmanager
def elsewhere(is_it: Callable[[str], bool], neighbour: Callable[[str], bool] = lambda path: False) -> Iterator[None]:
    """The znodes whose path `is_it` are made and deleted in the session that made the first znode that is a
    `neighbour`; without one, in the runner's, which makes the first of all."""
    sessions: list[int] = []
    neighbours: list[int] = []

    def host(path: str, session: Any) -> Any:
        return SimpleNamespace(id=(neighbours or sessions)[0]) if is_it(path) else session

    def create(server, session, cxid, asked):
        sessions.append(session.id)
        if neighbour(asked.path):
            neighbours.append(session.id)
        return _create(server, host(asked.path, session), cxid, asked)

    def delete(server, session, cxid, asked):
        return _delete(server, host(asked.path, session), cxid, asked)

    forged = {_create: create, _delete: delete}
    with patch.object(Authority, "_WRITES", {kind: forged.get(write, write) for kind, write in _WRITES.items()}):
        yield


def sleepers(
    scenario: str, asleep: tuple[str, ...], deaf: Callable[[str], bool], **settings: str
) -> Callable[[int], History]:
    """Some members do not watch the paths that they are `deaf` to, and are registered in a neighbour's session."""

    def sleeps(name: str) -> bool:
        return any(f"host-{each}-" in name for each in asleep)

    def is_id(path: str) -> bool:
        return path.startswith("/consumers/") and "/ids/" in path

    async def subscribe(self: ZkClient, path: str, listener: Any) -> object:
        if sleeps(self._settings.member) and deaf(path):
            return None
        return await _subscribe(self, path, listener)

    def false(seed: int) -> History:
        with (
            elsewhere(lambda path: is_id(path) and sleeps(path), lambda path: is_id(path) and not sleeps(path)),
            patch.object(ZkClient, "subscribe_child_changes", subscribe),
        ):
            return trial(scenario, seed, settings=settings)

    return false


async def _release(claims: Claims, ownership: Ownership) -> None:
    """All but partition 0, which counts as claimed already."""
    ownership.disbelieve()
    for each in [each for topic in ownership.topics for each in ownership.of(topic)]:
        if each.partition == 0:
            claims._won[each] = None
        else:
            await claims._delete(each)
    ownership.clear()


async def _take(claims: Claims, plan: Plan) -> list[TopicPartition]:
    """What it kept and no longer wants it gives up first."""
    for each in set(claims.won) - {each for each, _ in plan.owners}:
        del claims._won[each]
        await claims._delete(each)
    return await _TAKE(claims, plan)


def keeps_one_in_a_pool(seed: int) -> History:
    """Z5a: owner znodes of t1/0 stand in the runner's session, and who gets t1/0 again keeps it through the
    rebalance."""
    with (
        elsewhere(lambda path: path.endswith("/owners/t1/0")),
        patch.object(Claims, "release", _release),
        patch.object(Claims, "take", _take),
    ):
        return trial("walkthrough", seed)
