"""Produce: a client's batches into the logs that this broker leads (`ReplicaManager.appendRecords`).

acks=0: no answer; an error closes the connection, which is all that the client can notice. acks=1: the leader has
written it. acks=-1 (all): it is committed, or the client's time is over and nobody knows. Versions before 3 carry
message sets of 0.8 to 0.10, which this broker does not read.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.results import Appended
from rebalance_lab.broker.partition import Partition
from rebalance_lab.broker.refused import CloseConnection, Refused
from rebalance_lab.kernel import TimedOut
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from rebalance_lab.wire.kafka.records import HEADER_BYTES, Compression
from rebalance_lab.wire.kafka.schema import Versions

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1

#: Where a batch says which format it has, and the last byte of its attributes; the bits that name the compression.
_MAGIC_AT, _ATTRIBUTES_END, _COMPRESSION = 16, 22, 0b111
_MAGIC = 2

#: The first version whose batches may be compressed by zstd (KIP-110).
_ZSTD_SINCE = 7


@dataclass(frozen=True, slots=True)
class _Written:
    partition: Partition
    appended: Appended
    leader_epoch: int


Outcome = _Written | Refused | LogError


async def handle(parts: Parts, call: Call) -> ProduceResponse | None:
    request = call.request
    outcomes: dict[TopicPartition, Outcome] = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            partition = TopicPartition(topic.name, data.index)
            outcomes[partition] = await _appended(parts, partition, data, request.acks, call.version)
    if request.acks == ACKS_NONE:
        _close_on_error(outcomes)
        return None
    if parts.config.lab_never_answers and any(_is_of_a_later_leader(each) for each in outcomes.values()):
        await parts.tasks.flag("an answer that is never sent").wait()
    if request.acks == ACKS_ALL and not parts.config.lab_acks_before_replication:
        outcomes |= await _uncommitted(parts, outcomes, request.timeout_ms)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                name=topic.name,
                partition_responses=tuple(
                    _response(data.index, outcomes[TopicPartition(topic.name, data.index)])
                    for data in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


async def _appended(
    parts: Parts, partition: TopicPartition, data: PartitionProduceData, acks: int, version: int
) -> Outcome:
    if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
        return Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}: use 0, 1 or -1 (all)")
    try:
        _check_format(data.records or b"", version)
        replica = parts.replicas.led(partition)
        appended = await replica.append(data.records or b"", all_in_sync=acks == ACKS_ALL)
        return _Written(replica, appended, replica.leader_epoch)
    except (Refused, LogError) as error:
        return error


def _is_of_a_later_leader(outcome: Outcome) -> bool:
    return isinstance(outcome, _Written) and outcome.leader_epoch > 0


def _check_format(data: bytes, version: int) -> None:
    """Whether a request of this version may hold these bytes (`ProduceRequest.validateRecords`). Raises Refused, with
    errors that clients do not retry."""
    if len(data) < HEADER_BYTES:
        raise Refused(ErrorCode.INVALID_RECORD, f"{len(data)} bytes are no record batch")
    if data[_MAGIC_AT] != _MAGIC:
        raise Refused(ErrorCode.INVALID_RECORD, f"record batches have magic {_MAGIC}, and this one {data[_MAGIC_AT]}")
    if data[_ATTRIBUTES_END] & _COMPRESSION == Compression.ZSTD and version < _ZSTD_SINCE:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs version {_ZSTD_SINCE} of Produce")


def _close_on_error(outcomes: dict[TopicPartition, Outcome]) -> None:
    """Raises CloseConnection."""
    for partition, outcome in outcomes.items():
        if not isinstance(outcome, _Written):
            raise CloseConnection(f"acks=0, and {partition.topic}-{partition.partition} was not written: {outcome}")


async def _uncommitted(
    parts: Parts, outcomes: dict[TopicPartition, Outcome], timeout_ms: int
) -> dict[TopicPartition, Outcome]:
    """Wait for what was written to be committed. Returns what was not, and why. What has become of one partition is
    decided as soon as it can be, however long others take (`DelayedProduce.tryComplete`)."""
    waiting = {each: outcome for each, outcome in outcomes.items() if isinstance(outcome, _Written)}
    failed: dict[TopicPartition, Outcome] = {}
    try:
        async with parts.tasks.timeout(max(timeout_ms, 0) * 1000, "acks=all"):
            while waiting:
                for each, written in list(waiting.items()):
                    try:
                        done = written.partition.is_committed(written.appended.last_offset, written.leader_epoch)
                    except Refused as refused:
                        failed[each], done = refused, True
                    if done:
                        del waiting[each]
                if waiting:
                    await parts.tasks.first(*(each.partition.progress for each in waiting.values()))
    except TimedOut:
        late = Refused(ErrorCode.REQUEST_TIMED_OUT, f"it was not committed in {timeout_ms} ms; it may be later")
        failed |= dict.fromkeys(waiting, late)
    return failed


def _response(index: int, outcome: Outcome) -> PartitionProduceResponse:
    if isinstance(outcome, _Written):
        return PartitionProduceResponse(
            index=index,
            error_code=ErrorCode.NONE,
            base_offset=outcome.appended.first_offset,
            log_append_time_ms=outcome.appended.append_time_ms,
            log_start_offset=outcome.partition.log.start_offset,
        )
    return PartitionProduceResponse(index=index, error_code=outcome.code, base_offset=-1, error_message=str(outcome))


HANDLER = Handler(ApiKey.PRODUCE, Versions(3, 9), handle)
