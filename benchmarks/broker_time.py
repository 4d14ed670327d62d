"""Where the time of the lab's broker goes: samples of its stack while a step of `broker_beside_kafka.py` runs.

Run: python benchmarks/broker_time.py [--seconds 10] [--step "fetch 200"]

A timer of the process's processor time looks at what its main thread does. Each sample belongs to the innermost part of
the broker on the stack. The storage threads run beside it, and what they spend comes from /proc; as the timer counts
them too, and the main thread mostly waits for them, the share of the event loop is too large by theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from broker_beside_kafka import Server, Step, prepare, steps

from rebalance_lab.cli.cluster import BrokerProcess
from rebalance_lab.testing.ensemble import wait_until
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

#: Part -> what its files' names have. The first that fits counts.
PARTS = {
    "records: header, checksum, check of each": ("rebalance_lab/wire/kafka/records/",),
    "wire: frames to messages and back": ("rebalance_lab/wire/", "<reader of ", "<writer of "),
    "log": ("rebalance_lab/broker/log/",),
    "storage: hand over to threads": ("rebalance_lab/world/live/storage.py",),
    "dispatch, handlers, replica": ("rebalance_lab/broker/",),
    "connections: receive and send": ("rebalance_lab/world/", "asyncio/selector_events.py"),
    "kernel: tasks and futures": ("rebalance_lab/kernel/",),
    "event loop": ("asyncio/", "selectors.py"),
}
OTHER = "other"
EVERY_S = 0.001


def part_of(frame: FrameType | None) -> str:
    while frame is not None:
        for part, names in PARTS.items():
            if any(name in frame.f_code.co_filename for name in names):
                return part
        frame = frame.f_back
    return OTHER


def sampled_broker(found: Path, arguments: list[str]) -> None:
    """Be a broker that counts samples between SIGUSR1 and SIGUSR2, and writes them to `found`."""
    samples: Counter[str] = Counter()

    def end(*_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        part = found.with_suffix(".part")
        part.write_text(json.dumps(samples))
        part.rename(found)

    signal.signal(signal.SIGPROF, lambda _, frame: samples.update([part_of(frame)]))
    signal.signal(signal.SIGUSR1, lambda *_: signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S))
    signal.signal(signal.SIGUSR2, end)
    sys.argv = ["rebalance-lab", *arguments]
    runpy.run_module("rebalance_lab.cli.main", run_name="__main__")


class SampledBroker(BrokerProcess):
    def __init__(self, connect: str, folder: Path) -> None:
        super().__init__(1, connect, folder)
        self.found = folder / "samples.json"
        self._command = [sys.executable, __file__, "--broker", str(self.found), *self._command[3:]]

    def threads_ms(self) -> tuple[float, float]:
        """(main thread, all others): processor time."""
        spent = {
            each.name: sum(map(int, (each / "stat").read_text().rpartition(")")[2].split()[11:13]))
            for each in Path(f"/proc/{self.pid}/task").iterdir()
        }
        tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
        main = spent.pop(str(self.pid))
        return main * tick_ms, sum(spent.values()) * tick_ms


def measure(step: Step, seconds: float) -> None:
    """Print where the time of a step goes."""
    with (
        tempfile.TemporaryDirectory(prefix="broker-time-") as folder,
        EmbeddedZooKeeper.start(Path(folder) / "zookeeper") as zookeeper,
    ):
        broker = SampledBroker(zookeeper.connect_string, Path(folder))
        try:
            samples, main, others = sampled(broker, step, seconds)
        finally:
            broker.stop()
    total = sum(samples.values())
    print(f"{step.name}: {main:,.0f} µs of the main thread and {others:,.0f} µs of others for each batch")
    for part in (*PARTS, OTHER):
        print(f"  {100 * samples.get(part, 0) / total:4.0f} %  {part}")


def sampled(broker: SampledBroker, step: Step, seconds: float) -> tuple[dict[str, int], float, float]:
    """(samples by part, µs of the main thread and of all others for each batch)."""
    broker.launch()
    wait_until(lambda: broker.bootstrap() is not None, "the broker to serve")
    server = Server(str(broker.bootstrap()), broker.pid)
    prepare(server)
    step.ms(server)
    os.kill(broker.pid, signal.SIGUSR1)
    before, began, times = broker.threads_ms(), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        step.ms(server)
        times += 1
    after = broker.threads_ms()
    os.kill(broker.pid, signal.SIGUSR2)
    wait_until(broker.found.exists, "the samples")
    main, others = ((now - then) * 1000 / times / step.batches for now, then in zip(after, before, strict=True))
    return json.loads(broker.found.read_text()), main, others


def main() -> int:
    if sys.argv[1:2] == ["--broker"]:
        sampled_broker(Path(sys.argv[2]), sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--step", default="", help="only steps whose name has this")
    options = parser.parse_args()
    for step in steps():
        if options.step in step.name and "idempotent" not in step.name:
            measure(step, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
