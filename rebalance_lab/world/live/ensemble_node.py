"""One node of an embedded ensemble: what it is configured with, its process, and what it says
of itself. The node stays the same when its process is killed and started again."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.ports import HOST, ReservedPort
from rebalance_lab.world.live.processes import RunState
from rebalance_lab.world.live.server_process import ServerProcess, command

#: A node looks again for a leader after 0.2 s, and then ever less often: a node that comes back
#: must not be waited for up to a minute (ZooKeeper's default).
_FLAGS = ("-Dzookeeper.fastleader.maxNotificationInterval=1000",)

#: Ticks a follower may take to join a leader.
_INIT_LIMIT_TICKS = 20

#: A node that runs answers in milliseconds.
_ANSWER_TIMEOUT_S = 1.0

_MODE = re.compile(r"^Mode: (\w+)", re.MULTILINE)
_VERSION = re.compile(r"^Zookeeper version: ([^\s,-]+)", re.MULTILINE)
_ZXID = re.compile(r"^Zxid: 0x([0-9a-f]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a node at one moment: the proof that a fault took effect.

    `state`: of its process, from the operating system. `mode`: leader, follower or standalone;
    None while it serves nobody, or does not answer. `zxid`: the last transaction it has applied;
    one that stands still behind the leader's is a node that lags.
    """

    name: str
    state: RunState
    mode: str | None
    zxid: int | None

    @property
    def leads(self) -> bool:
        return self.mode in ("leader", "standalone")

    def __str__(self) -> str:
        zxid = "" if self.zxid is None else f", zxid {self.zxid:#x}"
        return f"{self.name} {self.state.value}, {self.mode or 'not serving'}{zxid}"


def standing_of(name: str, state: RunState, answer: str) -> Standing:
    """From a node's answer to `srvr`; empty: it gave none."""
    mode, zxid = _MODE.search(answer), _ZXID.search(answer)
    if mode is None or zxid is None:
        return Standing(name, state, None, None)
    return Standing(name, state, mode[1], int(zxid[1], 16))


def server_version(host: str, port: int) -> str:
    """As the server tells it, without its build: 3.9.5. One that tells nobody what it is: not told."""
    try:
        found = _VERSION.search(command(host, port, "srvr"))
    except OSError:
        found = None
    return "not told" if found is None else found[1]


async def ask(host: str, port: int, word: str) -> str:
    """The answer to a four-letter word, without blocking the loop. Raises OSError (TimeoutError
    is one)."""
    async with asyncio.timeout(_ANSWER_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(word.encode("ascii"))
            return (await reader.read(-1)).decode("utf-8", "replace")
        finally:
            writer.transport.abort()


class AskedNode(ABC):
    """What a node says of itself, by its answer to a four-letter word; wherever it runs."""

    name: str

    @property
    @abstractmethod
    def state(self) -> RunState:
        """Whether it runs, as whoever runs it says."""

    @property
    @abstractmethod
    def client_address(self) -> tuple[str, int]:
        """Host and port for clients."""

    @abstractmethod
    def command(self, word: str) -> str:
        """The answer to a four-letter word. Raises OSError."""

    def standing_now(self) -> Standing:
        """Asks the node, and waits for its answer (two seconds at most)."""
        state, answer = self.state, ""
        if state is RunState.ALIVE:
            try:
                answer = self.command("srvr")
            except OSError:
                state = self.state
        return standing_of(self.name, state, answer)

    async def standing(self) -> Standing:
        """The same without blocking the loop."""
        state, answer = self.state, ""
        if state is RunState.ALIVE:
            try:
                answer = await ask(*self.client_address, "srvr")
            except OSError:
                state = self.state
        return standing_of(self.name, state, answer)


class EnsembleNode(AskedNode):
    """`quorum_port` and `election_port` are for the other nodes."""

    def __init__(self, name: str, number: int, data_dir: Path, tick_ms: int) -> None:
        self.name = name
        self.number = number
        self.data_dir = data_dir
        self.tick_ms = tick_ms
        self._reserved = [ReservedPort() for _ in range(3)]
        self.port, self.quorum_port, self.election_port = (each.number for each in self._reserved)
        self._quorum: tuple[str, ...] = ()
        self._process: ServerProcess | None = None

    def join(self, others: Mapping[int, tuple[int, int]], sync_limit_ticks: int) -> None:
        """Configure it for an ensemble: the quorum and election ports by number, as this node
        is to see them, its own included."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        (self.data_dir / "myid").write_text(f"{self.number}\n")
        servers = (f"server.{each}={HOST}:{quorum}:{election}" for each, (quorum, election) in others.items())
        self._quorum = (f"initLimit={_INIT_LIMIT_TICKS}", f"syncLimit={sync_limit_ticks}", *servers)

    def launch(self) -> None:
        """Start its process, and do not wait. Raises EmbeddedServerError: it runs already."""
        if self.state is not RunState.GONE:
            raise EmbeddedServerError(f"{self.name} runs already: {self.process.describe()}")
        if self._process is not None:
            self._process.kill()  # it has ended: this only takes note of that, so that no zombie stays
        self._process = ServerProcess.launch(self.data_dir, self.port, self.tick_ms, quorum=self._quorum, flags=_FLAGS)

    # -- facts ------------------------------------------------------------------------------

    @property
    def process(self) -> ServerProcess:
        """The latest; it may have ended."""
        if self._process is None:
            raise EmbeddedServerError(f"{self.name} was never started")
        return self._process

    @property
    def started(self) -> bool:
        """Whether it has, or had, a process."""
        return self._process is not None

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def state(self) -> RunState:
        return RunState.GONE if self._process is None else self._process.state

    @property
    def connect_string(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def client_address(self) -> tuple[str, int]:
        return HOST, self.port

    @property
    def transaction_dir(self) -> Path:
        """What a `TransactionLog` follows."""
        return self.data_dir

    @property
    def log_file(self) -> Path:
        return self.process.log_file

    def command(self, word: str) -> str:
        """The answer to a four-letter word. Raises OSError."""
        return self.process.command(word)

    def ended_by_itself(self) -> str | None:
        """Why nobody needs to wait for it any more: its process has ended, with its last words."""
        if self.state is not RunState.GONE:
            return None
        return f"{self.name} ({self.process.describe()}) has ended{self.process.log_tail()}"

    def last_words(self) -> str:
        """The last lines of its log, for the end of an error's message."""
        return self.process.log_tail()

    # -- end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the ports back; the process has ended before."""
        for port in self._reserved:
            port.close()
