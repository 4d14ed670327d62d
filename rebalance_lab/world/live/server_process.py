"""A ZooKeeper server as a child process: started from the jars that PySpark ships, asked,
paused, killed, stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rebalance_lab.world.live.java import EmbeddedServerError, java_command, zookeeper_classpath
from rebalance_lab.world.live.processes import (
    ProcessStateTimeout,
    RunState,
    die_with_parent,
    run_state,
    wait_for_state,
)

HOST = "127.0.0.1"
DEFAULT_TICK_MS = 500

#: Small and quick to start: 0.45 s wall, 0.6 s of processor time on two cores.
_JVM_FLAGS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true")

#: A server alone, where zoo.cfg names no others.
_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

#: Two seconds on a quiet machine; half a minute was seen at sixty runnable processes on two cores.
#: One that has ended by itself is noticed at once.
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 5.0
_SIGNAL_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 2.0
_LOG_TAIL_LINES = 15

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


class ServerProcess:
    """One running server, whether or not it serves.

    It dies with the process that started it, even by kill -9; see `die_with_parent` for what
    that means for threads. Its log and its transaction log stay under `data_dir`.
    """

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path, port: int, tick_ms: int, log: Path) -> None:
        self._process = process
        self.data_dir = data_dir
        self.port = port
        self.tick_ms = tick_ms
        self.log_file = log

    @classmethod
    def launch(
        cls, data_dir: Path, port: int, tick_ms: int, *, quorum: Sequence[str] = (), flags: Sequence[str] = ()
    ) -> Self:
        """Start the process and return at once. `data_dir` is made if need be; `quorum` are lines
        of zoo.cfg about the ensemble, `flags` more of the JVM's. Raises EmbeddedServerError: no
        Java 17, no jars."""
        java, classpath = java_command(), zookeeper_classpath()
        (data_dir / "logs").mkdir(parents=True, exist_ok=True)
        config, logging = data_dir / "zoo.cfg", data_dir / "log4j2.properties"
        lines = (
            f"tickTime={tick_ms}",
            f"dataDir={data_dir}",
            f"clientPort={port}",
            f"clientPortAddress={HOST}",
            "maxClientCnxns=0",  # no limit: a trial's members all come from one address
            "clientPortListenBacklog=1024",  # at the default of 50, many connects at once wait 1 s for a second SYN
            "admin.enableServer=false",
            "4lw.commands.whitelist=*",
            *quorum,
        )
        config.write_text("".join(f"{line}\n" for line in lines))
        logging.write_text(_LOGGING)
        log = data_dir / "logs" / f"zookeeper-{len(list((data_dir / 'logs').iterdir()))}.log"
        command = [java, *_JVM_FLAGS, *flags, f"-Dlog4j2.configurationFile={logging}", "-cp", classpath, _MAIN_CLASS]
        with log.open("xb") as output:
            process = subprocess.Popen(
                [*command, str(config)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=data_dir,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 (one C call, looked up before the fork)
                process_group=0,  # Ctrl-C in a terminal reaches us only: we end the server in order
            )
        return cls(process, data_dir, port, tick_ms, log)

    # -- facts ------------------------------------------------------------------------------

    @property
    def connect_string(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def transaction_dir(self) -> Path:
        """What `TransactionLog` follows."""
        return self.data_dir

    @property
    def log_dir(self) -> Path:
        return self.log_file.parent

    @property
    def state(self) -> RunState:
        """What the operating system says of the process."""
        return run_state(self.pid) if self._process.poll() is None else RunState.GONE

    def command(self, word: str) -> str:
        """See `command`."""
        return command(HOST, self.port, word)

    # -- faults -----------------------------------------------------------------------------

    def pause(self) -> None:
        """SIGSTOP; returns when the process is seen stopped. Raises EmbeddedServerError."""
        self._signal(signal.SIGSTOP, RunState.STOPPED)

    def resume(self) -> None:
        """SIGCONT; returns when the process is seen running. Raises EmbeddedServerError."""
        self._signal(signal.SIGCONT, RunState.ALIVE)

    def _signal(self, number: signal.Signals, wanted: RunState) -> None:
        if self.state is RunState.GONE:
            raise EmbeddedServerError(f"cannot send {number.name}: {self.describe()} has ended{self.log_tail()}")
        os.kill(self.pid, number)
        try:
            wait_for_state(self.pid, wanted, _SIGNAL_TIMEOUT_S)
        except ProcessStateTimeout as error:
            raise EmbeddedServerError(f"{number.name} had no effect on {self.describe()}: {error}") from error

    # -- end --------------------------------------------------------------------------------

    def terminate(self) -> None:
        """Ask it to end (SIGTERM), and do not wait. Harmless when ended."""
        if self._process.poll() is None:
            self._process.terminate()
            os.kill(self.pid, signal.SIGCONT)  # a paused server would not see the SIGTERM

    def stop(self) -> None:
        """End the server in order (SIGTERM), by force after five seconds. Harmless when ended."""
        self.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the server at once (SIGKILL). Harmless when ended."""
        self._process.kill()
        self._process.wait()

    # -- start ------------------------------------------------------------------------------

    def wait_until_serving(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.serves():
            code = self._process.poll()
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

    def describe(self) -> str:
        return f"embedded ZooKeeper (pid {self.pid}, port {self.port})"

    def log_tail(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return f"; the last lines of {self.log_file}:\n" + "\n".join(lines)
