"""`zookeeper`: run a real ZooKeeper, or an ensemble, in the foreground."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn, Protocol

import typer

from rebalance_lab.cli.failures import Failure, must_be_writable, spoken
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.history.scratch import temporary_folder
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.reserved_port import HOST
from rebalance_lab.world.live.server_process import DEFAULT_TICK_MS, EmbeddedZooKeeper
from rebalance_lab.world.live.storage import lock_folder
from rebalance_lab.world.storage import FolderInUse

#: Twenty times as much, the longest session timeout, is an hour and more.
LONGEST_TICK_MS = 200_000


class Server(Protocol):
    """What a single server and a server of an ensemble have in common."""

    @property
    def pid(self) -> int: ...
    @property
    def log_file(self) -> Path: ...


def zookeeper(
    *,
    nodes: Annotated[
        int, typer.Option("--nodes", help="Number of servers; three or five form an ensemble.", min=1, max=9)
    ] = 1,
    data: Annotated[
        Path | None, typer.Option("--data", help="Keep the data there. Default: delete it at the end.", metavar="DIR")
    ] = None,
    port: Annotated[int, typer.Option("--port", help="The port; 0: any free port.", min=0, max=65535)] = 0,
    tick_ms: Annotated[
        int,
        typer.Option("--tick-ms", help="tickTime. Session timeouts are 2 to 20 ticks.", min=10, max=LONGEST_TICK_MS),
    ] = DEFAULT_TICK_MS,
    as_json: JsonOption = False,
) -> None:
    """Start a ZooKeeper, print its address, and keep it running.

    The address is a JSON line, printed when ZooKeeper is ready. Ctrl-C (SIGINT)
    and SIGTERM end it.
    """
    _check_free(port, nodes)
    with spoken(), _folder(data, nodes) as folder:
        if nodes == 1:
            with EmbeddedZooKeeper.start(folder, tick_ms=tick_ms, port=port) as server:
                _serve(server.connect_string, {"ZooKeeper": server}, as_json=as_json, data=data)
        else:
            with EmbeddedEnsemble.start(folder, nodes, tick_ms=tick_ms) as ensemble:
                _serve(ensemble.connect_string, ensemble.servers, as_json=as_json, data=data)


def _serve(connect: str, servers: Mapping[str, Server], *, as_json: bool, data: Path | None) -> None:
    """Print the address, and wait. Raises Failure when all have ended by themselves."""
    print_json({"zookeeper": connect, "pids": {"zookeeper": [server.pid for server in servers.values()]}})
    if not as_json:
        print(f"ZooKeeper serves at {connect}; Ctrl-C ends it.", file=sys.stderr)
    watch(servers, "servers", data)


def watch(servers: Mapping[str, Server], what: str, data: Path | None) -> NoReturn:
    """Wait. If one of several ends by itself, that is reported and the others go on, as this may be intended. Raises
    Failure when all have ended."""
    running = dict(servers)
    while running:
        name = _wait_for_exit(running)
        server = running.pop(name)
        told = f"{name} (pid {server.pid}) ended unexpectedly{_kept_log(server, data)}"
        if running:
            print(f"{told}; {len(running)} of {len(servers)} {what} are left", file=sys.stderr)
    raise Failure(told)


@contextmanager
def used_alone(data: Path) -> Iterator[None]:
    """Create the folder if it is missing, and keep other commands out: two servers would write the same files. Raises
    Failure."""
    must_be_writable(data, f"to the data folder {data}", "another with --data")
    try:
        lock = lock_folder(data)
    except FolderInUse as error:
        raise Failure(f"--data {data}: {error.hint}") from error
    try:
        yield
    finally:
        os.close(lock)


@contextmanager
def _folder(data: Path | None, nodes: int) -> Iterator[Path]:
    if data is not None:
        with used_alone(data):
            _check_data(data, nodes)
            yield data
    else:
        with temporary_folder("rebalance-lab-zookeeper-") as folder:
            yield folder


def _check_data(data: Path, nodes: int) -> None:
    """Raises Failure unless as many servers use the data as wrote them; otherwise the data would seem to be lost."""
    alone = (data / "version-2").exists()
    several = len(list(data.glob("z[0-9]*/version-2")))
    if (alone and nodes > 1) or (several and several != nodes):
        wrote = "one server" if alone else f"{several} servers"
        raise Failure(f"{data} holds the data of {wrote}, and --nodes is {nodes}: choose another --data, or --nodes")


def _check_free(port: int, nodes: int) -> None:
    """Raises Failure if the port is taken, before Java reports that at length."""
    if port == 0:
        return
    if nodes > 1:
        raise Failure(
            f"--port {port} with --nodes {nodes}: only a single server's port can be chosen; leave --port out"
        )
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise Failure(f"cannot serve on {HOST}:{port}: {error.strerror}; choose another --port, or 0") from error


def _wait_for_exit(servers: Mapping[str, Server]) -> str:
    """Wait until the process of one of them ends; returns its name. A signal raises Interrupted here."""
    descriptors = {os.pidfd_open(server.pid): name for name, server in servers.items()}
    try:
        ended, _, _ = select.select(list(descriptors), [], [])
        return descriptors[ended[0]]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _kept_log(server: Server, data: Path | None) -> str:
    return f"; see {server.log_file}" if data is not None else "; use --data DIR to keep its log"
