"""Recorders: one write an event, the cause from the kernel, nothing after the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import read_events
from rebalance_lab.history.recorder import FileSink, MemorySink, Recorder
from rebalance_lab.kernel import Kernel
from rebalance_lab.kernel.drivers import HeapDriver


def test_events_are_counted_timed_and_caused_by_the_kernel_s_stimulus() -> None:
    kernel, sink = Kernel(HeapDriver()), MemorySink()
    recorder = Recorder("m1", kernel, sink)
    assert recorder.emit(Layer.OP, Kind.PHASE) == ("m1", 0)
    kernel.cause = ("zookeeper", 4)
    assert recorder.emit(Layer.BELIEF, Kind.OWNED, session=0x1A, topic="t", partition=0) == ("m1", 1)
    assert sink.events == [
        Event("m1", 0, kernel.now_us(), Layer.OP, Kind.PHASE),
        Event(
            "m1",
            1,
            kernel.now_us(),
            Layer.BELIEF,
            Kind.OWNED,
            session="0x1a",
            topic="t",
            partition=0,
            cause=("zookeeper", 4),
        ),
    ]


def test_clean_up_after_the_kernel_s_end_is_not_history() -> None:
    kernel, sink = Kernel(HeapDriver()), MemorySink()
    recorder = Recorder("m1", kernel, sink)
    recorder.emit(Layer.OP, Kind.PHASE)
    kernel.close()
    recorder.emit(Layer.BELIEF, Kind.DISOWNED)
    assert [event.kind for event in sink.events] == [Kind.PHASE]


def test_a_file_holds_each_event_at_once_and_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "m1.jsonl"
    for n in range(2):  # a second sink on the same file goes on behind the first
        sink = FileSink(path)
        sink.write(Event("m1", n, n, Layer.OP, Kind.PHASE))
        assert [event.n for event in read_events(path)] == list(range(n + 1))
        sink.close()


def test_a_write_cut_short_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FileSink(tmp_path / "m1.jsonl")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:5]))
    with pytest.raises(OSError, match=r"No space left on device: '.*m1.jsonl'"):
        sink.write(Event("m1", 0, 0, Layer.OP, Kind.PHASE))
    monkeypatch.undo()
    sink.close()
