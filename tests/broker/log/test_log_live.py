"""The log on real files, whose machine loses its power."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_world import NOW_MS, PARTITION, batch, values

from rebalance_lab.broker.log.checkpoints import MetaProperties
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.manager import LogManager
from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.environment import LiveClock
from rebalance_lab.world.live.storage import LiveStorage
from rebalance_lab.world.live.synced_lengths import lose_power

OWNER = MetaProperties(cluster_id="c", broker_id=1)
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=200, retention_ms=-1)
LIVES = 6


async def contents(log: PartitionLog) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < log.end_offset:
        found += values((await log.read(len(found), 5000)).data)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_log_survives_losses_of_power(tmp_path: Path, seed: int) -> None:
    stream = RandomStream(seed, "b1", "story")
    written: list[bytes] = []
    durable, torn = 0, 0
    for _ in range(LIVES):
        warnings: list[str] = []
        with LiveKernel() as live:
            storage = LiveStorage(live.kernel, live.loop, tmp_path)
            live.on_close(storage.close)
            clock = LiveClock(live.kernel)
            manager = LogManager(live.kernel, storage, clock, RandomStream(0, "b1", "names"), warn=warnings.append)

            async def story(manager: LogManager = manager, durable: int = durable) -> int:
                await manager.start(OWNER, lambda _: CONFIG)
                log = await manager.create(PARTITION, CONFIG)
                assert log.end_offset >= durable
                assert await contents(log) == written[: log.end_offset]
                del written[log.end_offset :]
                for _ in range(20 + stream.below(20)):
                    written.append(stream.hex(2 + stream.below(300)).encode())
                    await log.append(batch(written[-1], timestamp_ms=NOW_MS), 0)
                    if stream.below(12) == 0:
                        await log.flush()
                        await manager.checkpoint()
                return log.recovery_point

            durable = live.run(story())
        lose_power(tmp_path, stream)
        torn += sum("cut off" in line for line in warnings)
    assert torn, "no loss of power has torn a batch: the test proves nothing"
