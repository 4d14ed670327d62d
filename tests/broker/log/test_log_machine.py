"""The log of a partition against a plain list, by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from log_witness import durable_end
from log_world import FOLDER, NOW_MS, LogWorld, batch

from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.results import Appended, FoundOffset
from rebalance_lab.wire.kafka.records import batches, place, records


class LogMachine(RuleBasedStateMachine):
    """`kept`: (value, timestamp, leader epoch) of each record from offset 0 on. `ends`: of batches. `batches`: as the
    log has them, by their first offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[bytes, int, int]] = []
        self.ends = [0]
        self.batches: dict[int, bytes] = {}
        self.start = 0
        self.epoch = 0
        self.power_was_lost = False

    @initialize(segment=st.integers(600, 2000), interval=st.integers(0, 500), every=st.sampled_from([None, 1, 4]))
    def begin(self, segment: int, interval: int, every: int | None) -> None:
        config = LogConfig(segment_bytes=segment, index_interval_bytes=interval, flush_messages=every, retention_ms=-1)
        self.world = LogWorld(config=config)
        self.world.run(self.world.open)

    @property
    def log(self) -> Any:
        return self.world.log

    @property
    def end(self) -> int:
        return len(self.kept)

    @rule(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=4), at=st.integers(0, 50))
    def append(self, sizes: list[int], at: int) -> None:
        contents = [b"%d " % (self.end + n) + b"x" * size for n, size in enumerate(sizes)]
        data = batch(*contents, timestamp_ms=NOW_MS + at)
        placed = bytearray(data)
        place(placed, 0, base_offset=self.end, leader_epoch=self.epoch)
        self.batches[self.end] = bytes(placed)
        assert self.world.run(lambda: self.log.append(data, self.epoch)) == Appended(
            self.end, self.end + len(sizes) - 1, -1
        )
        self.kept += [(content, NOW_MS + at, self.epoch) for content in contents]
        self.ends.append(self.end)

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1

    @rule(share=st.floats(0, 1), limit=st.integers(0, 2000))
    def read(self, share: float, limit: int) -> None:
        offset = self.start + round(share * (self.end - self.start))
        found = self.world.run(lambda: self.log.read(offset, limit))
        got = [record for at, _ in batches(found.data) for record in records(found.data, at)]
        if offset == self.end:
            assert got == []
            return
        first = max(each for each in self.ends if each <= offset)
        assert [record.offset for record in got] == list(range(first, first + len(got)))
        assert [record.value for record in got] == [value for value, _, _ in self.kept[first : first + len(got)]]
        assert first + len(got) in self.ends
        assert first + len(got) > offset
        one = next(batches(found.data))[1].size
        assert len(found.data) <= max(limit, one)

    @rule(at=st.integers(-1, 51))
    def look_up(self, at: int) -> None:
        wanted = next((n for n in range(self.start, self.end) if self.kept[n][1] >= NOW_MS + at), None)
        found = self.world.run(lambda: self.log.first_since(NOW_MS + at))
        assert found == (None if wanted is None else FoundOffset(self.kept[wanted][1], wanted, self.kept[wanted][2]))

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        target = self.ends[round(share * (len(self.ends) - 1))]
        self.world.run(lambda: self.log.truncate_to(target))
        self._cut(target)
        self.start = min(self.start, target)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        before = round(share * self.end)
        self.log.high_watermark = self.end
        self.world.run(lambda: self.log.delete_records(before))
        self.start = max(self.start, before)

    @rule()
    def delete_old_segments(self) -> None:
        self.log.high_watermark = self.end
        self.world.run(self.log.delete_old_segments)

    @rule()
    def flush(self) -> None:
        self.world.run(self.log.flush)
        assert self.log.recovery_point == self._durable_end() == self.end

    @rule()
    def close(self) -> None:
        self.world.run(self.world.close)
        self.world.kill()
        self.world.run(self.world.open)
        assert self.log.recovery_point == self.end
        self._nothing_is_torn()

    @rule()
    def kill(self) -> None:
        self.world.kill()
        self.world.run(self.world.open)
        self._nothing_is_torn()

    @precondition(lambda self: self.end > 0)
    @rule()
    def lose_power(self) -> None:
        durable = self._durable_end()
        assert durable >= self.log.recovery_point
        self.world.lose_power()
        self.world.run(self.world.open)
        self.power_was_lost = True
        assert self.log.end_offset >= durable
        if self.log.end_offset > self.end:
            raise AssertionError(f"{self.log} has more than was written")
        self._cut(self.log.end_offset)
        self.start = self.log.start_offset

    def _durable_end(self) -> int:
        """What the disk was told to sync, whatever the log says."""
        first = self.log.base_offsets[0]
        return durable_end(self.world.disk, FOLDER, self.batches, first, self.start)

    def _nothing_is_torn(self) -> None:
        """A file that a loss of power has torn may be read, and reported, much later."""
        assert self.power_was_lost or self.world.warnings == []

    def _cut(self, end: int) -> None:
        del self.kept[end:]
        self.batches = {base: data for base, data in self.batches.items() if base < end}
        self.ends = [each for each in self.ends if each <= end]
        if not self.ends or self.ends[-1] != end:
            self.ends.append(end)
            self.kept += [(b"", 0, 0)] * (end - len(self.kept))

    @invariant()
    def it_is_where_it_should_be(self) -> None:
        if hasattr(self, "world"):
            assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
            assert self.log.recovery_point <= self.end
            bases = self.log.base_offsets
            assert list(bases) == sorted(set(bases))
            assert bases[0] <= self.start
            for epoch in range(self.epoch + 1):
                wrote = [n for n in range(self.start, self.end) if self.kept[n][2] == epoch]
                if wrote:
                    assert self.log.end_of_epoch(epoch) == (epoch, wrote[-1] + 1)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.simulation.close()


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
