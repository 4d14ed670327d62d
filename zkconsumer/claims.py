"""The owner znodes of one member: releasing them, claiming them
(`releasePartitionOwnership` and `reflectPartitionOwnershipDecision` of 0.8.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.paths import owner_path
from rebalance_lab.world.errors import NodeExists, NoNode
from rebalance_lab.zkclient import ZkClient
from rebalance_lab.zkclient.helpers import create_ephemeral_expect_conflict
from zkconsumer.lab_settings import LabSettings
from zkconsumer.ownership import Ownership
from zkconsumer.plants import Plant
from zkconsumer.report import Report


@dataclass(frozen=True, slots=True)
class Plan:
    """What a member is about to claim. `owners`: (partition, thread id) in order; `offsets`: partition -> start
    offset."""

    owners: tuple[tuple[TopicPartition, str], ...]
    offsets: Mapping[TopicPartition, int]


class Claims:
    """All that one member writes below `/consumers/<group>/owners`."""

    def __init__(self, client: ZkClient, report: Report, *, group: str, lab: LabSettings, plant: str | None) -> None:
        self._client = client
        self._report = report
        self._group = group
        self._lab = lab
        self._plant = plant
        self._held: Plan | None = None
        self._won: dict[TopicPartition, None] = {}

    @property
    def held(self) -> Plan | None:
        """With keep.claims.on.conflict: the plan of which a part is claimed and kept."""
        return self._held

    @property
    def won(self) -> tuple[TopicPartition, ...]:
        """That part, in the order in which it was claimed."""
        return tuple(self._won)

    async def release(self, ownership: Ownership) -> None:
        """Delete the owner znodes of all that is owned, without a look at their data or session (S4)."""
        ownership.disbelieve()
        for topic in ownership.topics:
            for each in ownership.of(topic):  # none if a new session has cleared them
                await self._delete(each)
            ownership.forget(topic)

    async def take(self, plan: Plan) -> list[TopicPartition]:
        """Try to create *every* owner znode that is not won yet. Returns the conflicts; if there are any, those just
        created are deleted again, latest first (or kept: KEEP_CLAIMS).

        Any other error is raised at once and leaves behind what was created, as in 0.8.2 (F7): owner znodes of a live
        session that are in no member's registry. They go with the session, or when the same member claims them again.
        This has two causes on a live ZooKeeper: another program created `/consumers/G/owners/T` as an ephemeral znode
        (NoChildrenForEphemerals, in every attempt), or deletes it after the member created it and before it creates the
        owner below (NoNode, once).
        """
        conflicts: list[TopicPartition] = []
        try:
            for each, thread in plan.owners:
                if each not in self._won and not await self._create(each, thread):
                    conflicts.append(each)
        except Exception:
            if self._lab.cures.undo_failed_claims:
                await self.let_go()
            self._forget()
            raise
        if not conflicts or self._plant == Plant.IGNORE_CLAIM_CONFLICT:
            self._forget()
            return []
        if self._lab.keep_claims_on_conflict:
            self._held = plan
        elif self._plant == Plant.KEEP_CLAIMS:
            self._forget()
        else:
            await self.let_go()
        return conflicts

    async def let_go(self) -> None:
        """Delete what was won of a plan that could not be won completely, latest first."""
        won = self.won
        self._forget()
        for each in reversed(won):
            await self._delete(each)

    def session_lost(self) -> None:
        """Forget what was held: it went with its session. This does not affect a claim that is under way."""
        if self._held is not None:
            self._forget()

    def _forget(self) -> None:
        self._held, self._won = None, {}

    async def _create(self, each: TopicPartition, thread: str) -> bool:
        try:
            await create_ephemeral_expect_conflict(self._client, self._path(each), thread.encode())
        except NodeExists:
            return False
        self._won[each] = None
        return True

    async def _delete(self, each: TopicPartition) -> None:
        path = self._path(each)
        if self._lab.cures.check_owner_before_delete and not await self._is_ours(path):
            self._report.warned(f"{path} was not made by this session: it is left alone")
            return
        await self._client.delete(path)

    async def _is_ours(self, path: str) -> bool:
        try:
            owner = (await self._client.read(path)).stat.ephemeral_owner
        except NoNode:
            return False
        return owner == self._client.session.session_id

    def _path(self, each: TopicPartition) -> str:
        return owner_path(self._group, each.topic, each.partition)


def pairs(partitions: Iterable[TopicPartition]) -> list[list[object]]:
    """[[topic, partition], …], for histories."""
    return [[each.topic, each.partition] for each in partitions]
