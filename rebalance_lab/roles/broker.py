"""The role of a broker: the same in every world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from controller.leader_election import Selection
from controller.placement import PlacementBug
from controller.settings import ControllerBug
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.broker import Broker, BrokerSettings
from rebalance_lab.history.events import LAYER_OF, Layer
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.history.replicas import REPLICA_KINDS
from rebalance_lab.history.writes import REPORTED
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.wire.kafka.records import BatchHeader, Record, batches, build_batch, place, records
from rebalance_lab.world.ports import Environment
from rebalance_lab.world.storage import File, Storage


class BrokerPlant(PlantedBug):
    """Planted bugs of a broker."""

    FORGETS = "forgets-last-batch", "a broker that cuts off the last batch of each log before it starts"
    ALTERS = "alters-last-record", "a broker that replaces the last batch of each log by another before it starts"
    REPEATS = "repeats-last-batch", "a broker that writes the last batch of each log once more before it starts"
    SWAPS = "swaps-last-batches", "a broker that exchanges the last two batches of each log before it starts"
    REFUSES_LATE = "refuses-after-append", "a leader that appends a batch for which too few replicas are in sync"
    BY_ISR = "elects-by-isr", "a controller that elects the first of the ISR, and not the first of the assignment"
    BY_ASSIGNMENT = "moves-by-assignment", "a controller of 0.8.2 that moves leaders in the order of the assignment"
    REPEATS_EPOCH = "repeats-controller-epoch", "a broker that becomes the controller without raising the epoch"
    WATCHES_ONCE = "watches-controller-once", "a broker that watches /controller again only until it went once"
    FIRST_ONLY = "shrinks-first-partition", "a controller that takes dead replicas out of one ISR of each topic only"
    SMALL_ISR = "forgets-last-of-isr", "a leader that takes over and does not count with the last of the ISR"
    IGNORES_MIN_ISR = "ignores-min-isr", "a leader that acknowledges and commits however few are in sync"
    ALONE = "commits-alone", "a leader that commits what it has written, whatever its followers have"
    COUNTS_DIVERGING = (
        "counts-diverging-fetches",
        "a leader that counts fetches although it answers that the logs part (KAFKA-13141)",
    )
    LEADS_TOO = "leads-as-first-of-isr", "a broker that leads if it stands first in the ISR, whoever was elected"
    NO_GRACE = "drops-without-grace", "a leader that drops followers which have not fetched from it yet"
    LAST_EPOCH = "writes-last-epoch", "a controller that writes states in the epoch of the controller before it"
    EARLY = "acks-before-replication", "a leader that answers acks=all when it has written a record by itself"
    UNCLEAN = "elects-unclean", "a controller that elects replicas outside the ISR, though that is not allowed"
    WAITS = "waits-for-isr", "a controller that elects no replica outside the ISR, though that is allowed"
    LATE = "obeys-late", "a broker that takes ten seconds to obey an order for a partition that it leads already"
    KEEPS_FETCHERS = "keeps-old-fetchers", "a broker that becomes the leader and goes on fetching from the one before"
    KEEPS_METADATA = "keeps-old-metadata", "a broker that tells clients of no other ISR while the leader is the same"
    NEVER_ANSWERS = "never-answers", "a leader of a later epoch than the first that writes records and answers nobody"
    KEEPS_REGISTRATION = "keeps-registration", "a broker that does not register again when its session has expired"
    NEVER_RESIGNS = "never-resigns", "a broker whose session expires and that goes on to believe that it controls"
    LATE_ORDERS = "obeys-late-orders", "a broker that obeys an update of a deposed controller after its successor's"
    KEEPS_SHIFT = "keeps-shift", "a broker that places a topic's later partitions with the gap of the first ones"
    FEWER_REPLICAS = "makes-fewer-replicas", "a broker that creates a topic with fewer replicas than asked for"
    DEPOSES = "deposes-its-successor", "a controller that gives up, and deletes the /controller of its successor"
    IGNORES_RACKS = "ignores-racks", "a broker that places replicas as if no broker had a rack"
    REMOVES_PARTITIONS = "removes-partitions", "a broker that takes partitions from a topic if a client asks for it"
    FORGETS_DELETIONS = "forgets-deletions", "a controller that does not go on with deletions that another began"
    FORGETS_NEW = "forgets-new-partitions", "a controller that elects nobody for partitions that never had a leader"
    ELECTS_ANEW = "elects-anew", "a controller that elects anew for all partitions when a broker comes"
    IDLES = "resigns-on-reconnect", "a controller that resigns when it is connected again, and keeps /controller"
    IDS_ONLY = "looks-at-ids-only", "a controller that takes a broker which died and came back for one that stayed"


#: How late a broker obeys that is planted to.
LATE_MS = 10_000


#: The setting that a planted bug changes, and its value.
_SETTINGS: dict[str, tuple[str, Any]] = {
    BrokerPlant.UNCLEAN: ("unclean_leader_election_enable", True),
    BrokerPlant.WAITS: ("unclean_leader_election_enable", False),
    BrokerPlant.REPEATS_EPOCH: ("lab_controller_bug", ControllerBug.REPEATS_EPOCH),
    BrokerPlant.WATCHES_ONCE: ("lab_controller_bug", ControllerBug.WATCHES_ONCE),
    BrokerPlant.LAST_EPOCH: ("lab_controller_bug", ControllerBug.WRITES_LAST_EPOCH),
    BrokerPlant.FIRST_ONLY: ("lab_controller_bug", ControllerBug.SHRINKS_FIRST),
    BrokerPlant.REMOVES_PARTITIONS: ("lab_removes_partitions", True),
    BrokerPlant.FORGETS_DELETIONS: ("lab_controller_bug", ControllerBug.FORGETS_DELETIONS),
    BrokerPlant.FORGETS_NEW: ("lab_controller_bug", ControllerBug.FORGETS_NEW),
    BrokerPlant.KEEPS_SHIFT: ("lab_placement_bug", PlacementBug.KEEPS_SHIFT),
    BrokerPlant.FEWER_REPLICAS: ("lab_placement_bug", PlacementBug.FEWER_REPLICAS),
    BrokerPlant.ELECTS_ANEW: ("lab_controller_bug", ControllerBug.ELECTS_ANEW),
    BrokerPlant.DEPOSES: ("lab_controller_bug", ControllerBug.DEPOSES),
    BrokerPlant.IGNORES_RACKS: ("lab_placement_bug", PlacementBug.IGNORES_RACKS),
    BrokerPlant.BY_ISR: ("lab_leader_selection", Selection.V0_8_0),
    BrokerPlant.BY_ASSIGNMENT: ("lab_leader_selection", Selection.V2_1),
    BrokerPlant.REFUSES_LATE: ("lab_refuses_before_append", False),
    BrokerPlant.SMALL_ISR: ("lab_assumes_whole_isr", False),
    BrokerPlant.IGNORES_MIN_ISR: ("lab_ignores_min_isr", True),
    BrokerPlant.ALONE: ("lab_commits_alone", True),
    BrokerPlant.COUNTS_DIVERGING: ("lab_counts_diverging", True),
    BrokerPlant.LEADS_TOO: ("lab_leads_as_first_of_isr", True),
    BrokerPlant.NO_GRACE: ("lab_leader_grace", False),
    BrokerPlant.EARLY: ("lab_acks_before_replication", True),
    BrokerPlant.IDLES: ("lab_resigns_on_reconnect", True),
    BrokerPlant.IDS_ONLY: ("lab_broker_epochs", False),
    BrokerPlant.LATE_ORDERS: ("lab_obeys_late_orders", True),
    BrokerPlant.KEEPS_FETCHERS: ("lab_keeps_fetchers", True),
    BrokerPlant.KEEPS_METADATA: ("lab_keeps_metadata", True),
    BrokerPlant.NEVER_ANSWERS: ("lab_never_answers", True),
    BrokerPlant.KEEPS_REGISTRATION: ("lab_keeps_registration", True),
    BrokerPlant.NEVER_RESIGNS: ("lab_never_resigns", True),
    BrokerPlant.LATE: ("lab_obeys_after_ms", LATE_MS),
}


class BrokerSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """Start data of a broker."""

    settings: BrokerSettings


async def run_broker(environment: Environment, spec: BrokerSpec, closing: Flag) -> None:
    """A broker's whole life. Raises what `Broker.run` raises."""

    def report(event: str, detail: dict[str, object]) -> None:
        environment.recorder.emit(Layer.OP, REPORTED, member=spec.actor, detail={"event": event, **detail})

    def observe(event: str, partition: TopicPartition | None, detail: dict[str, object]) -> None:
        kind = REPLICA_KINDS[event]
        topic, number = partition or (None, None)
        environment.recorder.emit(LAYER_OF[kind], kind, member=spec.actor, topic=topic, partition=number, detail=detail)

    if spec.plant == BrokerPlant.FORGETS:
        await _forget_last_batches(environment.storage)
    if spec.plant == BrokerPlant.ALTERS:
        await _alter_last_batches(environment.storage)
    if spec.plant == BrokerPlant.REPEATS:
        await _repeat_last_batches(environment.storage)
    if spec.plant == BrokerPlant.SWAPS:
        await _swap_last_batches(environment.storage)
    await Broker(environment, _planted(spec), report, observe).run(closing)


def _planted(spec: BrokerSpec) -> BrokerSettings:
    """Its settings, with the one that a planted bug changes."""
    if spec.plant not in _SETTINGS:
        return spec.settings
    name, value = _SETTINGS[spec.plant]
    return replace(spec.settings, config=replace(spec.settings.config, **{name: value}))


async def _forget_last_batches(storage: Storage) -> None:
    """Tear the last byte off each log, so that the recovery drops the batch that it ends."""
    for folder in (await storage.list()).folders:
        for name in reversed(await _segments(storage, folder)):
            file = await storage.open(f"{folder}/{name}")
            if file.size:
                await file.truncate(file.size - 1)
            size = file.size
            await file.close()
            if size:
                break


async def _alter_last_batches(storage: Storage) -> None:
    """Put other values into the last batch of each segment: the bytes are sound, the offsets and epochs are the
    same."""

    async def alter(file: File, data: bytes, at: int, header: BatchHeader) -> None:
        other = [Record(each.key, _other(each.value), each.timestamp_ms) for each in records(data, at)]
        batch = bytearray(build_batch(other))
        place(batch, 0, base_offset=header.base_offset, leader_epoch=header.leader_epoch)
        await file.truncate(at)
        await file.append(bytes(batch))

    for folder in (await storage.list()).folders:
        for name in await _segments(storage, folder):
            await _with_last_batch(storage, f"{folder}/{name}", alter)


async def _repeat_last_batches(storage: Storage) -> None:
    """Append the last batch of each log again, at the offset that follows it."""

    async def repeat(file: File, data: bytes, at: int, header: BatchHeader) -> None:
        batch = bytearray(data[at : at + header.size])
        place(batch, 0, base_offset=header.last_offset + 1, leader_epoch=header.leader_epoch)
        await file.append(bytes(batch))

    for folder in (await storage.list()).folders:
        for name in (await _segments(storage, folder))[-1:]:
            await _with_last_batch(storage, f"{folder}/{name}", repeat)


async def _swap_last_batches(storage: Storage) -> None:
    """Exchange the last two batches of each log: the bytes are sound, and offsets and epochs rise as before."""
    for folder in (await storage.list()).folders:
        for name in (await _segments(storage, folder))[-1:]:
            file = await storage.open(f"{folder}/{name}")
            data = bytes(await file.pread(0, file.size))
            whole = list(batches(data))
            if len(whole) > 1:
                (at, first), (between, second) = whole[-2:]
                moved = bytearray(data[between : between + second.size] + data[at:between])
                place(moved, 0, base_offset=first.base_offset, leader_epoch=first.leader_epoch)
                behind = first.base_offset + second.last_offset - second.base_offset + 1
                place(moved, second.size, base_offset=behind, leader_epoch=second.leader_epoch)
                await file.truncate(at)
                await file.append(bytes(moved))
            await file.close()


async def _segments(storage: Storage, folder: str) -> list[str]:
    """The names of a log's segments, the oldest first."""
    return sorted(name for name in (await storage.list(folder)).files if name.endswith(".log"))


async def _with_last_batch(
    storage: Storage, path: str, change: Callable[[File, bytes, int, BatchHeader], Awaitable[None]]
) -> None:
    """Have a segment changed, if it holds a batch. `change` gets its bytes, and where its last whole batch begins."""
    file = await storage.open(path)
    data = bytes(await file.pread(0, file.size))
    whole = list(batches(data))
    if whole:
        await change(file, data, *whole[-1])
    await file.close()


def _other(value: bytes | None) -> bytes:
    """Another number of the same size."""
    return b"9" + (value or b"0")[1:]


ROLE = Role("broker", BrokerSpec, run_broker)
