"""The main of a member's process: `python -m rebalance_lab.hosts.member SPEC-FILE`.

SIGTERM and SIGINT ask for a clean leave. SIGUSR1 writes every task and what it waits for to
stderr. The process dies with its parent, also when that is killed.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import msgspec

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.recorder import FileSink
from rebalance_lab.hosts.members import build_member
from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.live.processes import identity


def main(arguments: list[str]) -> int:
    """Run one member to its end. Returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m rebalance_lab.hosts.member SPEC-FILE", file=sys.stderr)
        return 2
    spec = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=MemberSpec)
    sink = FileSink(Path(spec.events))
    with LiveKernel() as live:
        kernel = live.kernel
        environment = live_environment(spec.actor, live, sink, spec.seed, host=spec.host)
        environment.recorder.emit(Layer.OP, Kind.HOST_STARTED, detail=identity())
        closing = kernel.flag(f"close {spec.actor}")
        for number in (signal.SIGTERM, signal.SIGINT):
            live.loop.add_signal_handler(number, closing.raise_)
        live.loop.add_signal_handler(signal.SIGUSR1, lambda: print(kernel.story(), file=sys.stderr, flush=True))
        member = build_member(environment, spec)
        live.run(member.run(spec.streams, closing), f"member {spec.actor}")
    sink.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
