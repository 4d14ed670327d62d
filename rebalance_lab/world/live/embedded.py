"""A real ZooKeeper server of our own, from the jars that PySpark ships. No Docker needed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

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

_MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0
_SIGNAL_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 2.0
_PORT_ATTEMPTS = 5
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


class EmbeddedZooKeeper:
    """One running server. Make it with `start`; end it with `stop`, `kill`, or as a context.

    It dies with the process that started it, even by kill -9; see `die_with_parent` for what
    that means for threads. `log_dir` is kept, and so is the transaction log under `data_dir`.
    """

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path, port: int, tick_ms: int, log: Path) -> None:
        self._process = process
        self.data_dir = data_dir
        self.port = port
        self.tick_ms = tick_ms
        self.log_file = log

    @classmethod
    def start(cls, data_dir: Path, tick_ms: int = DEFAULT_TICK_MS, port: int = 0) -> EmbeddedZooKeeper:
        """Start a server on 127.0.0.1 and wait until it serves; about half a second.

        `data_dir` is made if need be; data found there are taken up. `port` 0 is a free one.
        Sessions may last 2 to 20 ticks. Raises EmbeddedServerError: no Java 17, no jars, a
        server that ended or did not serve in time (with the last lines of its log).
        """
        java, classpath = java_command(), zookeeper_classpath()
        data_dir = data_dir.absolute()
        (data_dir / "logs").mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            server = cls._launch(java, classpath, data_dir, tick_ms, port or _free_port())
            try:
                server._wait_until_serving()
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

    @classmethod
    def _launch(cls, java: str, classpath: str, data_dir: Path, tick_ms: int, port: int) -> EmbeddedZooKeeper:
        config, logging = data_dir / "zoo.cfg", data_dir / "log4j2.properties"
        config.write_text(
            f"tickTime={tick_ms}\n"
            f"dataDir={data_dir}\n"
            f"clientPort={port}\n"
            f"clientPortAddress={HOST}\n"
            "maxClientCnxns=0\n"  # no limit: a trial's members all come from one address
            "clientPortListenBacklog=1024\n"  # at the default of 50, many connects at once wait 1 s for a second SYN
            "admin.enableServer=false\n"
            "4lw.commands.whitelist=*\n"
        )
        logging.write_text(_LOGGING)
        log = data_dir / "logs" / f"zookeeper-{len(list((data_dir / 'logs').iterdir()))}.log"
        command = [java, *_JVM_FLAGS, f"-Dlog4j2.configurationFile={logging}", "-cp", classpath, _MAIN_CLASS]
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
        """The answer to a four-letter word (`srvr`, `conf`, `mntr`, …). Raises OSError."""
        with socket.create_connection((HOST, self.port), timeout=_ANSWER_TIMEOUT_S) as connection:
            connection.sendall(word.encode("ascii"))
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts).decode("utf-8", "replace")

    # -- faults -----------------------------------------------------------------------------

    def pause(self) -> None:
        """SIGSTOP; returns when the process is seen stopped. Raises EmbeddedServerError."""
        self._signal(signal.SIGSTOP, RunState.STOPPED)

    def resume(self) -> None:
        """SIGCONT; returns when the process is seen running. Raises EmbeddedServerError."""
        self._signal(signal.SIGCONT, RunState.ALIVE)

    def _signal(self, number: signal.Signals, wanted: RunState) -> None:
        if self.state is RunState.GONE:
            raise EmbeddedServerError(f"cannot send {number.name}: {self._describe()} has ended{self._tail()}")
        os.kill(self.pid, number)
        try:
            wait_for_state(self.pid, wanted, _SIGNAL_TIMEOUT_S)
        except ProcessStateTimeout as error:
            raise EmbeddedServerError(f"{number.name} had no effect on {self._describe()}: {error}") from error

    # -- end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the server in order (SIGTERM), by force after five seconds. Harmless when ended."""
        if self._process.poll() is not None:
            return
        self._process.terminate()
        os.kill(self.pid, signal.SIGCONT)  # a paused server would not see the SIGTERM
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the server at once (SIGKILL). Harmless when ended."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> EmbeddedZooKeeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- start ------------------------------------------------------------------------------

    def _wait_until_serving(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._serves():
            code = self._process.poll()
            if code is not None:
                raise EmbeddedServerError(f"{self._describe()} ended with code {code}{self._tail()}")
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"{self._describe()} does not serve after {_START_TIMEOUT_S:g} s{self._tail()}"
                )
            time.sleep(0.01)

    def _serves(self) -> bool:
        """Whether *this* server answers: on a lost race for the port another one might."""
        try:
            return "\nMode: " in self.command("srvr") and f"dataDir={self.data_dir}/" in self.command("conf")
        except OSError:
            return False

    def _describe(self) -> str:
        return f"embedded ZooKeeper (pid {self.pid}, port {self.port})"

    def _tail(self) -> str:
        lines = self.log_file.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        return f"; the last lines of {self.log_file}:\n" + "\n".join(lines)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
