"""ZooKeeper servers as child processes, from the jars that PySpark ships: one alone, or a node of an ensemble.

Neither needs Docker.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from rebalance_lab.history.disk import writing
from rebalance_lab.java import Program, archive_flags, damaged_archive
from rebalance_lab.world.live.java import EmbeddedServerError, java_command, zookeeper_classpath
from rebalance_lab.world.live.reserved_port import HOST, ReservedPort
from rebalance_lab.world.live.zookeeper_node import ZooKeeperNode
from rebalance_lab.world.process.os_process import OsProcess

DEFAULT_TICK_MS = 500

#: Small and quick to start: 0.45 s wall, 0.6 s of processor time on two cores.
_JVM_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true")

#: A standalone server, unless zoo.cfg names others.
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

#: Two seconds on a quiet machine; half a minute was seen at sixty runnable processes on two cores. A server that has
#: ended by itself is noticed at once.
START_TIMEOUT_S = 90.0

#: A node looks for a leader after 0.2 s, and then less and less often: by default one that comes back may have to wait
#: for a minute.
_NODE_FLAGS = ("-Dzookeeper.fastleader.maxNotificationInterval=1000",)

#: Ticks a follower may take to join a leader.
INIT_LIMIT_TICKS = 20

_LOGGING = """\
status = error
appender.log.type = Console
appender.log.name = log
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{ISO8601} %-5p [%t] %c{1.} %m%n
rootLogger.level = info
rootLogger.appenderRef.log.ref = log
"""


class ServerProcess(OsProcess, ZooKeeperNode):
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
        """Raises EmbeddedServerError: no Java 17, no jars, it runs already. Raises OSError."""
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
        with writing(self.data_dir):
            config.write_text("".join(f"{line}\n" for line in lines))
            logging.write_text(_LOGGING)
        flags = (*_JVM_FLAGS, *archive_flags(Program.ZOOKEEPER), *self._flags)
        jvm = [java, *flags, f"-Dlog4j2.configurationFile={logging}", "-cp", classpath]
        log = self.log_dir / f"zookeeper-{len(list(self.log_dir.iterdir()))}.log"
        self._spawn([*jvm, _MAIN_CLASS, str(config)], log, self.data_dir)
        self.log_file = log

    # -- facts ------------------------------------------------------------------------------

    @property
    def client_address(self) -> tuple[str, int]:
        return HOST, self.port

    @property
    def transaction_dir(self) -> Path:
        return self.data_dir

    @property
    def log_dir(self) -> Path:
        return self.log_file.parent

    def describe(self) -> str:
        return f"embedded ZooKeeper (pid {self.pid}, port {self.port})"

    # -- start ------------------------------------------------------------------------------

    def wait_until_serving(self) -> None:
        """Raises EmbeddedServerError: it has ended, or the time is over."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.serves():
            code = self.popen.poll()
            if code is not None:
                advice = damaged_archive(Program.ZOOKEEPER, code)
                why = self.log_tail() if advice is None else f"; {advice}{self.log_tail()}"
                raise EmbeddedServerError(f"{self.describe()} ended with code {code}{why}")
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


class EmbeddedZooKeeper(ServerProcess):
    """One running server. Make it with `start`; end it with `stop`, `kill`, or as a context."""

    @classmethod
    def start(
        cls, data_dir: Path, tick_ms: int = DEFAULT_TICK_MS, port: int = 0, *, heap_mb: int = 0
    ) -> EmbeddedZooKeeper:
        """Start a server on 127.0.0.1 and wait until it serves; about half a second.

        `data_dir` is made if need be; data found there are taken up. `port` 0 is a free one.
        Sessions may last 2 to 20 ticks. `heap_mb`: more than the usual 256, for many znodes. Raises
        EmbeddedServerError: no Java 17, no jars, a server that ended or did not serve in time (with the last lines of
        its log).
        """
        with ExitStack() as started:
            if port == 0:
                reserved = ReservedPort()
                started.callback(reserved.close)
                port = reserved.number
            flags = (f"-Xmx{heap_mb}m",) if heap_mb else ()
            server = cls("zookeeper", data_dir.absolute(), port, tick_ms, flags)
            try:
                server.launch()
                server.wait_until_serving()
            except BaseException:
                server.kill()
                raise
        return server

    def __enter__(self) -> EmbeddedZooKeeper:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


class EnsembleNode(ServerProcess):
    """A server on this machine. `quorum_port` and `election_port` are for the other nodes."""

    def __init__(self, name: str, number: int, data_dir: Path, tick_ms: int) -> None:
        self._reserved = [ReservedPort() for _ in range(3)]
        port, self.quorum_port, self.election_port = (each.number for each in self._reserved)
        super().__init__(name, data_dir, port, tick_ms, _NODE_FLAGS)
        self.number = number

    def join(self, others: Mapping[int, tuple[int, int]], sync_limit_ticks: int) -> None:
        """Configure it for an ensemble: the quorum and election ports by number, as this node is to see them, its own
        included."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        with writing(self.data_dir):
            (self.data_dir / "myid").write_text(f"{self.number}\n")
        servers = (f"server.{each}={HOST}:{quorum}:{election}" for each, (quorum, election) in others.items())
        self._quorum = (f"initLimit={INIT_LIMIT_TICKS}", f"syncLimit={sync_limit_ticks}", *servers)

    def describe(self) -> str:
        return f"{self.name} ({super().describe()})"

    def close(self) -> None:
        """Give the ports back; the process has ended before."""
        for port in self._reserved:
            port.close()
