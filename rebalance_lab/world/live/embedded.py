"""A real ZooKeeper server of our own, from the jars that PySpark ships. No Docker needed."""

from __future__ import annotations

import socket
from pathlib import Path

from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.server_process import DEFAULT_TICK_MS, HOST, ServerProcess

__all__ = ["DEFAULT_TICK_MS", "HOST", "EmbeddedZooKeeper"]

_PORT_ATTEMPTS = 5


class EmbeddedZooKeeper(ServerProcess):
    """One running server. Make it with `start`; end it with `stop`, `kill`, or as a context."""

    @classmethod
    def start(cls, data_dir: Path, tick_ms: int = DEFAULT_TICK_MS, port: int = 0) -> EmbeddedZooKeeper:
        """Start a server on 127.0.0.1 and wait until it serves; about half a second.

        `data_dir` is made if need be; data found there are taken up. `port` 0 is a free one.
        Sessions may last 2 to 20 ticks. Raises EmbeddedServerError: no Java 17, no jars, a
        server that ended or did not serve in time (with the last lines of its log).
        """
        data_dir = data_dir.absolute()
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            server = cls("zookeeper", data_dir, port or _free_port(), tick_ms)
            server.launch()
            try:
                server.wait_until_serving()
            except EmbeddedServerError:
                server.kill()
                lost_race = port == 0 and "BindException" in server.log_file.read_text(errors="replace")
                if not lost_race or attempt == _PORT_ATTEMPTS:
                    raise
            except BaseException:
                server.kill()
                raise
            else:
                return server
        raise AssertionError("the last attempt returns or raises")

    def __enter__(self) -> EmbeddedZooKeeper:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
