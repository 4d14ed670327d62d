"""A broker whose disk is full: it ends, as Kafka's does without a log folder, and has kept what it acknowledged."""

from __future__ import annotations

import pytest
from broker_requests import batch, create, fetch, fetched, produce, produced, values
from broker_stage import BrokerStage

from rebalance_lab.broker.broker import Broker
from rebalance_lab.broker.log.errors import FolderFailed
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.produce import ProduceResponse
from rebalance_lab.world.network import NetworkError
from rebalance_lab.world.simulated.disk import DiskSettings


class _Ending(BrokerStage):
    """A broker may end by a failed folder. `ends`: of each life that did."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[str] = []

    async def _run(self, broker: Broker, *others: object) -> None:
        try:
            await super()._run(broker, *others)  # type: ignore[arg-type]
        except FolderFailed as failed:
            self.ends.append(str(failed))


@pytest.mark.parametrize("free_bytes", [0, 60, 200])
def test_what_was_acknowledged_is_there_after_the_next_start(free_bytes: int) -> None:
    stage = _Ending()

    async def story(_: BrokerStage) -> None:
        await create(stage)
        await produced(stage, batch("a"))
        await stage.settle()
        disk = stage.world.disk("b1")
        used = sum(len(file.data) for file in disk.files().values())
        disk.settings = DiskSettings(capacity_bytes=used + free_bytes)
        connection = await stage.connect()
        try:
            answer = await connection.request(Call.of(produce(batch("b" * 500)), 9, "c"), timeout_us=5_000_000)
        except NetworkError:
            pass  # it ended before it answered
        else:
            assert isinstance(answer, ProduceResponse)
            (result,) = answer.responses[0].partition_responses
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await connection.ended
        while not stage.ends:
            await stage.tasks.sleep(10_000)
        disk.settings = DiskSettings()
        await stage.start()
        await stage.settle()
        (found,) = await fetched(stage, fetch(0))
        assert values(found.records) == ["a"]
        assert (await produced(stage, batch("c"))).base_offset == 1

    stage.play(story)
    assert stage.ends == [
        "the broker ends, because its data folder has failed: t-0: cannot append to it: DiskFull: append "
        "t-0/00000000000000000000.log: no space is left on the device; free some and start again"
    ]
