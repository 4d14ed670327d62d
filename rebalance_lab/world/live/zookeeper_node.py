"""A ZooKeeper server, wherever it runs: what it reports of itself by four-letter words."""

from __future__ import annotations

import asyncio
import re
import socket
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from rebalance_lab.world.process.managed import ManagedProcess
from rebalance_lab.world.process.states import RunState

#: A node that runs answers in milliseconds.
_ANSWER_TIMEOUT_S = 1.0
_BLOCKING_TIMEOUT_S = 2.0

#: The answer of a server that has only begun to start. ZooKeeper 3.9.5 leaves its connection open: NIOServerCnxn.close
#: throws a NullPointerException while there is no database (logged as "Error closing a command socket").
_NOT_SERVING = b"This ZooKeeper instance is not currently serving requests"

_MODE = re.compile(r"^Mode: (\w+)", re.MULTILINE)
_VERSION = re.compile(r"^Zookeeper version: ([^\s,-]+)", re.MULTILINE)
_ZXID = re.compile(r"^Zxid: 0x([0-9a-f]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of a node at one moment: the proof that a fault took effect.

    `state`: of its process. `mode`: leader, follower or standalone; None while it does not serve, or does not answer.
    `zxid`: the last transaction that it has applied; it stays behind the leader's while the node lags.
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


def command(host: str, port: int, word: str) -> str:
    """The answer to a four-letter word (`srvr`, `conf`, `mntr`, …). Raises OSError."""
    with socket.create_connection((host, port), timeout=_BLOCKING_TIMEOUT_S) as connection:
        connection.sendall(word.encode("ascii"))
        answer = b""
        while not answer.startswith(_NOT_SERVING) and (part := connection.recv(65536)):
            answer += part
    return answer.decode("utf-8", "replace")


def server_version(host: str, port: int) -> str:
    """As the server reports it, without its build: 3.9.5; "not told" if it does not answer."""
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
            answer = b""
            while not answer.startswith(_NOT_SERVING) and (part := await reader.read(65536)):
                answer += part
            return answer.decode("utf-8", "replace")
        finally:
            writer.transport.abort()


class ZooKeeperNode(ManagedProcess):
    """A ZooKeeper server, alone or of an ensemble."""

    @property
    @abstractmethod
    def client_address(self) -> tuple[str, int]:
        """Host and port for clients."""

    @property
    @abstractmethod
    def transaction_dir(self) -> Path:
        """What a `TransactionLog` follows."""

    @property
    def connect_string(self) -> str:
        host, port = self.client_address
        return f"{host}:{port}"

    def command(self, word: str) -> str:
        """The answer to a four-letter word. Raises OSError."""
        return command(*self.client_address, word)

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

    def ended_by_itself(self) -> str | None:
        """Why it makes no sense to wait for it any more: it has ended, with the last lines of its log. None while it
        runs."""
        return f"{self.describe()} has ended{self.log_tail()}" if self.state is RunState.GONE else None
