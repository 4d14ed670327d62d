"""A ZooKeeper server as a child process: started from the jars that PySpark ships."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from rebalance_lab.world.live.java import EmbeddedServerError, java_command, zookeeper_classpath
from rebalance_lab.world.process.os_process import OsProcess

HOST = "127.0.0.1"
DEFAULT_TICK_MS = 500

#: Small and quick to start: 0.45 s wall, 0.6 s of processor time on two cores.
_JVM_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true")

#: A standalone server, unless zoo.cfg names others.
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

#: Two seconds on a quiet machine; half a minute was seen at sixty runnable processes on two cores. A server that has
#: ended by itself is noticed at once.
START_TIMEOUT_S = 90.0
_ANSWER_TIMEOUT_S = 2.0

_LOGGING = """\
status = error
appender.log.type = Console
appender.log.name = log
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{ISO8601} %-5p [%t] %c{1.} %m%n
rootLogger.level = info
rootLogger.appenderRef.log.ref = log
"""


def command(host: str, port: int, word: str) -> str:
    """The answer to a four-letter word (`srvr`, `conf`, `mntr`, …). Raises OSError."""
    with socket.create_connection((host, port), timeout=_ANSWER_TIMEOUT_S) as connection:
        connection.sendall(word.encode("ascii"))
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


class ServerProcess(OsProcess):
    """One server on 127.0.0.1. Its logs, one for each life, and its transaction log stay under `data_dir`, which is
    made if need be; data found there are taken up. `flags`: more flags of the JVM."""

    def __init__(self, name: str, data_dir: Path, port: int, tick_ms: int, flags: tuple[str, ...] = ()) -> None:
        super().__init__(name, data_dir / "logs" / "zookeeper-0.log")
        self.data_dir = data_dir
        self.port = port
        self.tick_ms = tick_ms
        self._flags = flags
        #: Lines of zoo.cfg about the other servers.
        self._quorum: tuple[str, ...] = ()

    def launch(self) -> None:
        """Raises EmbeddedServerError: no Java 17, no jars, it runs already."""
        java, classpath = java_command(), zookeeper_classpath()
        self.log_dir.mkdir(parents=True, exist_ok=True)
        config, logging = self.data_dir / "zoo.cfg", self.data_dir / "log4j2.properties"
        lines = (
            f"tickTime={self.tick_ms}",
            f"dataDir={self.data_dir}",
            f"clientPort={self.port}",
            f"clientPortAddress={HOST}",
            "maxClientCnxns=0",  # no limit: a trial's members all come from one address
            "clientPortListenBacklog=1024",  # at the default of 50, many connects at once wait 1 s for a second SYN
            "admin.enableServer=false",
            "4lw.commands.whitelist=*",
            *self._quorum,
        )
        config.write_text("".join(f"{line}\n" for line in lines))
        logging.write_text(_LOGGING)
        jvm = [java, *_JVM_FLAGS, *self._flags, f"-Dlog4j2.configurationFile={logging}", "-cp", classpath]
        log = self.log_dir / f"zookeeper-{len(list(self.log_dir.iterdir()))}.log"
        self._spawn([*jvm, _MAIN_CLASS, str(config)], log, self.data_dir)
        self.log_file = log

    # -- facts ------------------------------------------------------------------------------

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
    def log_dir(self) -> Path:
        return self.log_file.parent

    def describe(self) -> str:
        return f"embedded ZooKeeper (pid {self.pid}, port {self.port})"

    def command(self, word: str) -> str:
        """See `command`."""
        return command(HOST, self.port, word)

    # -- start ------------------------------------------------------------------------------

    def wait_until_serving(self) -> None:
        """Raises EmbeddedServerError: it has ended, or the time is over."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.serves():
            code = self.popen.poll()
            if code is not None:
                raise EmbeddedServerError(f"{self.describe()} ended with code {code}{self.log_tail()}")
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"{self.describe()} does not serve after {START_TIMEOUT_S:g} s{self.log_tail()}"
                )
            time.sleep(0.01)

    def serves(self) -> bool:
        """Whether *this* server answers: on a lost race for the port another one might."""
        try:
            return "\nMode: " in self.command("srvr") and f"dataDir={self.data_dir}/" in self.command("conf")
        except OSError:
            return False
