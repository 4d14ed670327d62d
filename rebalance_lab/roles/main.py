"""The main of nodes' processes: `python -m rebalance_lab.roles.main SPEC-FILE`.

A process runs one or more nodes. The file lists those with which it starts. Commands on standard input
(`roles.spec.Command`, one JSON object per line) start more, let one leave, or end a session. The process ends with its
last node. SIGTERM and SIGINT make all nodes leave cleanly. SIGUSR1 writes every task and what it waits for to stderr.
The process dies with its parent, even if that is killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import assert_never

import msgspec

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.recorder import FileSink, Sink, next_number
from rebalance_lab.kernel import Flag, Future, Task
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.roles.spec import Command, Expire, Leave, NodeSpec, SetLink, Start, decode_spec, role_of
from rebalance_lab.world.live.environment import live_environment, live_factory
from rebalance_lab.world.live.network import LinkState, LiveNetwork
from rebalance_lab.world.live.security import NO_SECURITY, read_security
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.live.takeover import close_session
from rebalance_lab.world.network import parse_address
from rebalance_lab.world.ports import Environment, life_seed
from rebalance_lab.world.process.clocks import identity

STDIN = 0

_READ_BYTES = 65536

_commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)


def live_node(
    live: LiveKernel, spec: NodeSpec, sink: Sink, *, next_n: int = 0
) -> tuple[LiveZooKeeperFactory, Environment]:
    """Where a node on a real ZooKeeper opens its sessions, and its environment, recorded to `sink` from event `next_n`
    on. Raises BadSecurity."""
    security = NO_SECURITY if spec.security is None else read_security(Path(spec.security))
    seed = life_seed(spec.seed, next_n)
    factory = live_factory(spec.actor, live, seed, security)
    environment = live_environment(
        spec.actor,
        live,
        sink,
        seed,
        host=spec.host,
        operations=spec.operations,
        factory=factory,
        next_n=next_n,
        storage=spec.files if spec.storage or spec.events else None,
    )
    return factory, environment


class CommandLines:
    """The commands on standard input, one per line, read on the loop."""

    def __init__(self, live: LiveKernel, obey: Callable[[Command], None]) -> None:
        self._live = live
        self._obey = obey
        self._rest = b""
        os.set_blocking(STDIN, False)
        live.loop.add_reader(STDIN, self._readable)

    def _readable(self) -> None:
        data = os.read(STDIN, _READ_BYTES)
        if not data:  # the process that started this one will send no more commands
            self._live.loop.remove_reader(STDIN)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._obey(_commands.decode(line))


class NodeProcess:
    """The nodes of this process. `ended` is done when the last of them has ended."""

    def __init__(self, live: LiveKernel) -> None:
        self.ended: Future[None] = Future("the last node of the process")
        self._live = live
        self._closing: dict[str, Flag] = {}
        self._factories: dict[str, LiveZooKeeperFactory] = {}
        self._environments: dict[str, Environment] = {}

    def start(self, spec: NodeSpec) -> None:
        """Start a node."""
        kernel = self._live.kernel
        next_n = next_number(Path(spec.events))
        sink = FileSink(Path(spec.events))
        factory, environment = live_node(self._live, spec, sink, next_n=next_n)
        environment.recorder.emit(Layer.OP, Kind.PROCESS_STARTED, detail=identity())
        self._factories[spec.actor] = factory
        self._environments[spec.actor] = environment
        self._closing[spec.actor] = kernel.flag(f"close {spec.actor}")
        role = role_of(spec)
        run = role.run(environment, spec, self._closing[spec.actor])
        task: Task[None] = kernel.start_root(run, f"{role.name} {spec.actor}")
        task.on(lambda _done: self._left(spec.actor, sink))

    def _left(self, actor: str, sink: FileSink) -> None:
        sink.close()
        del self._closing[actor], self._environments[actor]
        if not self._closing:
            self.ended.set(None)

    def all_leave(self) -> None:
        for flag in self._closing.values():
            flag.raise_()

    def obey(self, command: Command) -> None:
        match command:
            case Start():
                self.start(decode_spec(command.node))
            case Leave():
                self._closing[command.actor].raise_()
            case Expire():
                for session in self._factories[command.actor].sessions:
                    if session.credentials is not None:
                        close_session(self._live.loop, session.credentials)
            case SetLink():
                if command.actor in self._environments:  # else it has left
                    self._set_link(command, self._environments[command.actor])
            case _:
                assert_never(command)

    def _set_link(self, command: SetLink, environment: Environment) -> None:
        assert isinstance(environment.network, LiveNetwork), "as live_environment makes it"
        state = LinkState(
            command.silent_to, command.silent_from, command.slow_to_ms * 1000, command.slow_from_ms * 1000
        )
        counts = environment.network.set_link(map(parse_address, command.addresses), state)
        detail: dict[str, object] = {"peer": command.peer, "number": command.number, **asdict(counts)}
        environment.recorder.emit(Layer.OP, Kind.LINK_SET, detail=detail)

    async def wait(self) -> None:
        await self.ended


def main(arguments: list[str]) -> int:
    """Run the nodes until all have ended. Returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m rebalance_lab.roles.main SPEC-FILE", file=sys.stderr)
        return 2
    specs = [decode_spec(each) for each in msgspec.json.decode(Path(arguments[0]).read_bytes(), type=list[msgspec.Raw])]
    with LiveKernel() as live:
        nodes = NodeProcess(live)
        for number in (signal.SIGTERM, signal.SIGINT):
            live.loop.add_signal_handler(number, nodes.all_leave)
        live.loop.add_signal_handler(signal.SIGUSR1, lambda: print(live.kernel.story(), file=sys.stderr, flush=True))
        for spec in specs:
            nodes.start(spec)
        CommandLines(live, nodes.obey)
        live.run(nodes.wait(), "the nodes of this process")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
