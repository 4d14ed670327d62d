"""`zookeeper`: a real ZooKeeper in the foreground."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from rebalance_lab.cli.endings import ended_by_signals
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.world.live.embedded import DEFAULT_TICK_MS, HOST, EmbeddedZooKeeper


def zookeeper(
    *,
    nodes: Annotated[int, typer.Option("--nodes", help="Servers; only 1 for now.", min=1)] = 1,
    data: Annotated[
        Path | None, typer.Option("--data", help="Keep its data there; else they go with it.", metavar="DIR")
    ] = None,
    port: Annotated[int, typer.Option("--port", help="0: a free one.", min=0, max=65535)] = 0,
    tick_ms: Annotated[int, typer.Option("--tick-ms", help="tickTime; sessions last 2 to 20 of it.", min=10)] = (
        DEFAULT_TICK_MS
    ),
    as_json: JsonOption = False,
) -> None:
    """Start a ZooKeeper and wait. When it is ready, one JSON line says where it is.

    SIGINT (Ctrl-C) and SIGTERM end it.
    """
    if nodes != 1:
        raise Failure(f"--nodes {nodes}: ensembles are not built yet; 1 is possible")
    _check_free(port)
    with (
        ended_by_signals(),
        spoken(),
        _folder(data) as folder,
        EmbeddedZooKeeper.start(folder, tick_ms=tick_ms, port=port) as server,
    ):
        print_json({"zookeeper": server.connect_string, "pids": {"zookeeper": [server.pid]}})
        if not as_json:
            print(f"ZooKeeper serves at {server.connect_string}; Ctrl-C ends it.", file=sys.stderr)
        _wait_for_exit(server.pid)
        raise Failure(f"ZooKeeper (pid {server.pid}) ended by itself{_kept_log(server, data)}")


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
        yield data
    else:
        with TemporaryDirectory(prefix="rebalance-lab-zookeeper-") as folder:
            yield Path(folder)


def _check_free(port: int) -> None:
    """Say so before Java does, in one line. Raises Failure."""
    if port == 0:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise Failure(f"cannot serve on {HOST}:{port}: {error.strerror}; choose another --port, or 0") from error


def _wait_for_exit(pid: int) -> None:
    """Sleep until the process ends; a signal's AskedToEnd comes out of the wait."""
    descriptor = os.pidfd_open(pid)
    try:
        select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


def _kept_log(server: EmbeddedZooKeeper, data: Path | None) -> str:
    return f"; see {server.log_file}" if data is not None else "; its log is kept with --data DIR"
