"""A ZooKeeper that the lab did not start. It is reached by its connect string, and its transaction logs are read in
their folders. Each trial uses a znode of its own there as chroot."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kazoo.client import KazooClient

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.takeover import read_frame
from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.connect_string import BadConnectString, Server, parse
from rebalance_lab.world.zk.messages import Connect, Operation, Request

#: The connect string of the ZooKeeper to use, and the log folders of all of its servers, by colons.
CONNECT_VARIABLE = "REBALANCE_LAB_ZOOKEEPER"
LOGS_VARIABLE = "REBALANCE_LAB_ZOOKEEPER_LOGS"

READY_LIMIT_S = 120.0
#: Who waits longer than this is told what for.
TOLD_AFTER_S = 3.0
_POLL_S = 0.2
_TIMEOUT_S = 10.0

_log = logging.getLogger(__name__)

#: Below this znode each trial has one of its own.
TRIALS = "/rebalance-lab-trials"


class ForeignZooKeeper:
    """Servers z1, z2, … in the order of the connect string, as a trial named `trial` is to see them."""

    def __init__(self, servers: tuple[Server, ...], data_dirs: Sequence[Path], trial: str) -> None:
        self.servers = {f"z{number}": server for number, server in enumerate(servers, start=1)}
        self.data_dirs = list(data_dirs)
        self.chroot = f"{TRIALS}/{trial}"

    @classmethod
    def named(cls, trial: str) -> ForeignZooKeeper | None:
        """The one that the variables name, if they do. Raises EmbeddedServerError for values that
        cannot be used."""
        connect, logs = os.environ.get(CONNECT_VARIABLE), os.environ.get(LOGS_VARIABLE)
        if not connect:
            return None
        try:
            where = parse(connect)
        except BadConnectString as error:
            raise EmbeddedServerError(f"{CONNECT_VARIABLE}: {error}") from error
        if where.chroot.prefix:
            raise EmbeddedServerError(f"{CONNECT_VARIABLE}={connect}: leave the chroot out, each trial has its own")
        folders = [Path(each) for each in (logs or "").split(":") if each]
        if len(folders) != len(where.servers):
            raise EmbeddedServerError(
                f"{LOGS_VARIABLE} names {len(folders)} folders for {len(where.servers)} servers: the history of the"
                " registry is read from the transaction logs of all (dataLogDir; dataDir, where there is none)"
            )
        for folder in folders:
            if not (os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK)):
                raise EmbeddedServerError(
                    f"{LOGS_VARIABLE}: {folder} is no folder that can be read here; name the dataLogDir of each server"
                    " (dataDir, where there is none)"
                )
        return cls(where.servers, folders, trial)

    def connect_to(self, name: str) -> str:
        """The connect string of one server, without the chroot. Raises KeyError."""
        return str(self.servers[name])

    def prepare(self, session_timeout_ms: int) -> None:
        """Wait until it serves, see that it grants such sessions, and make the trial's znode.
        Raises EmbeddedServerError."""
        granted = self._granted_ms(session_timeout_ms)
        if granted != session_timeout_ms:
            raise EmbeddedServerError(
                f"{self._connect} grants sessions of {granted} ms where {session_timeout_ms} were asked for:"
                " set session_timeout_ms and tick_ms to what it has (2 to 20 ticks)"
            )
        with _Client(self._connect) as client:
            client.ensure_path(self.chroot)

    def clean(self) -> None:
        """Delete the trial's znode, and all below it."""
        with _Client(self._connect) as client:
            client.delete(self.chroot, recursive=True)

    def log(self) -> ChrootLog:
        """What is committed from now on below the trial's znode."""
        return ChrootLog(EnsembleLog(self.data_dirs), self.chroot)

    @property
    def _connect(self) -> str:
        return ",".join(str(each) for each in self.servers.values())

    def _granted_ms(self, asked_ms: int) -> int:
        """The session timeout that it grants. They may be about to start: that they are waited for is
        said in the log, once. Raises EmbeddedServerError when none of its servers has served within
        READY_LIMIT_S."""
        began = time.monotonic()
        why: Exception | None = None
        told = False
        while time.monotonic() < began + READY_LIMIT_S:
            for server in self.servers.values():
                try:
                    return _granted_by(server, asked_ms)
                except OSError as error:
                    why = error
                if not told and time.monotonic() >= began + TOLD_AFTER_S:
                    told = True
                    _log.warning(
                        "waiting up to %g s for ZooKeeper at %s (%s): %s; start it, or end this with Ctrl-C",
                        READY_LIMIT_S,
                        self._connect,
                        CONNECT_VARIABLE,
                        why,
                    )
            time.sleep(_POLL_S)
        raise EmbeddedServerError(
            f"{self._connect} ({CONNECT_VARIABLE}) serves nobody after {READY_LIMIT_S:g} s: {why}"
        )


class _Client(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """kazoo's client, as a context."""

    def __init__(self, connect: str) -> None:
        super().__init__(connect, timeout=_TIMEOUT_S)

    def __enter__(self) -> _Client:
        self.start(timeout=_TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.close()


def _granted_by(server: Server, asked_ms: int) -> int:
    """Open a session and close it. Raises OSError if no server listens there, or if it does not serve."""
    address = (server.host, server.port)
    with socket.create_connection(address, timeout=_TIMEOUT_S) as connection, connection.makefile("rb") as incoming:
        connection.sendall(codec.encode_connect(Connect(0, asked_ms, 0)))
        frame = read_frame(incoming)
        connection.sendall(codec.encode(Request(1, Operation.CLOSE, "/")))
    return codec.read_connected(frame, 0, len(frame)).timeout_ms


class ChrootLog:
    """The records of a log below one znode, with paths as sessions with that chroot see them. Sessions and refused
    writes have no path; those of sessions that begin after this log was opened are passed on. Of all other records only
    the zxid is passed on (OTHER), so that the history can distinguish them from lost ones."""

    def __init__(self, log: EnsembleLog, chroot: str) -> None:
        self._log = log
        self._chroot = chroot
        self._sessions: dict[int, None] = {}
        log.poll()  # earlier records belong to no session of this trial

    def poll(self) -> list[Transaction]:
        """See `EnsembleLog.poll`."""
        return [self._seen(each) for each in self._log.poll()]

    def _seen(self, transaction: Transaction) -> Transaction:
        if transaction.kind is TransactionKind.SESSION_OPENED:
            self._sessions[transaction.session_id] = None
        if transaction.path.startswith(self._chroot + "/"):
            return replace(transaction, path=transaction.path.removeprefix(self._chroot))
        if transaction.path or transaction.session_id not in self._sessions:
            return Transaction(
                transaction.zxid,
                transaction.session_id,
                transaction.cxid,
                transaction.wall_ms,
                TransactionKind.OTHER,
            )
        if transaction.removed:
            below = (path for path in transaction.removed if path.startswith(self._chroot + "/"))
            return replace(transaction, removed=tuple(path.removeprefix(self._chroot) for path in below))
        return transaction
