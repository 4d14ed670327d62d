"""A local, quiet Spark session of our own, on the loopback interface only; it leaves nothing behind.

It sends nothing over the network and fetches nothing, so it works offline. Settings of the environment for other Sparks
(SPARK_HOME, a Connect server, submit arguments) are ignored, so that a command gives the same answer on every machine.
With a `master` the driver is as quiet, and its tasks run on that cluster.

Everything is written to a folder, which is removed at the end; if the process was killed, by the next one
(`history.scratch`).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.analysis.tally import count_in, counted
from rebalance_lab.history.disk import is_for_want_of_space, no_space
from rebalance_lab.history.scratch import Scratch, remove_whole
from rebalance_lab.java import MINIMUM_JAVA, Program, archive_flags, installed
from rebalance_lab.kernel.interruption import breaking_off, undisturbed

PREFIX = "rebalance-lab-spark-"

LOOPBACK = "127.0.0.1"
_EXIT_TIMEOUT_S = 120  # one that writes an archive of its classes takes half a minute on a busy machine
_SERVER_TIMEOUT_S = 2
_VERSION_TIMEOUT_S = 30
_LOG_TAIL_LINES = 12
_SOCKET_FOLDER_CHARS = 60

_JVM_FLAGS = ("-XX:+UseSerialGC", "-Xmn400m")

#: A lab's Spark lives for seconds: with the quick compiler alone, and the collector above, it starts 3 s sooner on two
#: cores.
_QUICK_COMPILER = "-XX:TieredStopAtLevel=1"

#: Rows that go to Python at once, and after how many bytes no further one: a row may be a whole trial.
_BATCH_ROWS = 32
_BATCH_BYTES = 1 << 18

#: The context of each session that was started here. Only it knows how many tasks run at once, and Spark Connect has
#: none.
_CONTEXTS: WeakKeyDictionary[SparkSession, SparkContext] = WeakKeyDictionary()

#: A master that is this process: `local`, `local[4]`, `local[*]`; a second number says how often a task may fail.
_LOCAL = re.compile(r"local(?:\[(?P<threads>[1-9]\d*|\*)(?:,\d+)?\])?")

#: Each master of a standalone cluster; there may be standbys.
_MASTERS = re.compile(r"(?:^spark://|,)([^:/,]+):(\d{1,5})")

#: Spark itself goes on trying for a minute, and then reports something else.
_MASTER_TIMEOUT_S = 10

#: Variables that would make this Spark another one than the one declared here.
_FOREIGN = (
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "SPARK_LOCAL_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_TESTING",
    "SPARK_SUBMIT_OPTS",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET",
    "PYSPARK_DRIVER_PYTHON",
)


@dataclass(frozen=True, slots=True)
class LocalSpark:
    """A running Spark; `stop()` it, or use it in a `with`.

    `folder` holds what it writes, its log among it, and goes with it. `ui`: the address of its web pages, if it has
    them. `watched`: while it is open, the JVM is killed if the process has been interrupted and does not get on.
    """

    session: SparkSession
    scratch: Scratch
    gateway: Any
    ui: str | None = None
    watched: ExitStack = field(default_factory=ExitStack)

    @property
    def folder(self) -> Path:
        return self.scratch.folder

    @property
    def judged(self) -> int:
        """How many trials were judged so far; a trial that was judged again counts twice. See `tally`."""
        return counted(_tally(self.folder))

    def stop(self) -> None:
        """Stop Spark and its JVM, and wait until that is gone. A signal that arrives meanwhile takes effect at the end:
        PySpark's server for accumulators, if left running, prints a traceback when the JVM goes."""
        with ExitStack() as ends:
            ends.enter_context(undisturbed())
            ends.callback(self.scratch.remove)
            ends.callback(_remove_again)
            ends.callback(_end, self.gateway)
            ends.callback(self.watched.close)  # `_end` has a limit of its own
            ends.enter_context(warnings.catch_warnings())
            # PySpark warns if a signal has broken off what it asked the JVM. `_end` ends the JVM in any case.
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
            ends.callback(self.session.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


#: Of a Spark on this machine, where there is nothing to adapt to. A cluster has Spark's defaults.
_LAPTOP = {"spark.sql.adaptive.enabled": "false", "spark.shuffle.compress": "false"}

#: Of one that takes few rows, for which compiling a query takes longer than running it.
_FEW_ROWS = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def start(
    *,
    cores: int | None = None,
    master: str | None = None,
    event_log: Path | None = None,
    ui: bool = False,
    settings: Mapping[str, str] | None = None,
    many_rows: bool = False,
) -> LocalSpark:
    """Start Spark with `cores` local cores (None: all that this process may use), or with the cluster `master` (as
    `spark://host:port`). `event_log`: a folder that exists, for the log that Spark's history server reads. `ui`: show
    Spark's web pages, on this machine only. `settings`: of Spark's, as for a file system; they win over the lab's.
    `many_rows`: a Spark on this machine compiles its queries, which takes some 17 s more and halves the time of a
    query over millions of events (docs/benchmarks.md).

    A cluster's workers must find the lab in the same Python at the same path, and reach this
    machine. Folders that earlier Sparks left behind when they were killed are removed.

    Raises SparkStartError without Java 17 or later, when the JVM does not come up, when there is
    no such master, and when this process has a Spark already (a process can have one); OSError, which names
    `event_log`, if that has no space left.
    """
    if SparkContext._active_spark_context is not None:
        raise SparkStartError("this process has a Spark already: stop that one first")
    with ExitStack() as undo:
        undo.enter_context(undisturbed())  # a JVM that is half started would stay; and PySpark replaces the handler
        scratch = Scratch.temporary(PREFIX)
        undo.callback(scratch.remove)
        given = _settings_for(scratch.folder, cores, master, many_rows=many_rows)
        given |= _watched(event_log, ui=ui) | dict(settings or {})
        logs_before = set(event_log.iterdir()) if event_log else set()
        conf = SparkConf(loadDefaults=False).setAll(sorted(given.items()))
        with _environment(given["spark.driver.host"]):
            gateway = _launch(conf, scratch)
            undo.callback(_end, gateway)
            try:
                context = SparkContext(conf=conf, gateway=gateway)
                session = SparkSession(context)
            except (Py4JError, PySparkException) as error:
                if event_log is not None and is_for_want_of_space(error, event_log):
                    _remove_empty_logs(event_log, logs_before)
                    raise no_space(event_log) from error
                told = next((line for line in str(error).splitlines() if "Exception:" in line), str(error))
                raise SparkStartError(f"Spark did not start with master {master or 'local'}: {told.strip()}") from error
        _CONTEXTS[session] = context
        count_in(session, _tally(scratch.folder))
        undo.pop_all()
    watched = ExitStack()
    watched.enter_context(breaking_off(partial(_break_off, gateway, context)))
    return LocalSpark(session, scratch, gateway, context.uiWebUrl, watched)


#: Folders that were removed while tasks might still make them again.
_UNFINISHED: list[Path] = []


def removed_with_spark(folder: Path) -> None:
    """Remove a folder once more when this process's Spark has gone: a task that is told to end may just be about to
    make it again."""
    _UNFINISHED.append(folder)


def _remove_again() -> None:
    while _UNFINISHED:
        remove_whole(_UNFINISHED.pop())


def _remove_empty_logs(event_log: Path, before: Collection[Path]) -> None:
    """Remove the event log of a Spark that could not start for want of space. Spark has named its folder, and has not
    written an event. `before`: what was there before it."""
    for folder in [each for each in event_log.glob("eventlog_v2_*") if each not in before]:
        if folder.is_dir() and not any(folder.glob("events_*")):
            shutil.rmtree(folder, ignore_errors=True)


def _tally(folder: Path) -> Path:
    return folder / "judged"


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at once: as this module's Spark knows now, or for a session of another origin the cores of
    this machine. The executors of a cluster come one by one, so it grows in the first seconds."""
    context = _CONTEXTS.get(spark)
    return (os.cpu_count() or 1) if context is None else int(context.defaultParallelism)


def _watched(event_log: Path | None, *, ui: bool) -> dict[str, str]:
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": event_log.resolve().as_uri()} if event_log else {}
    return logged | {"spark.ui.enabled": str(ui).lower()}


def _settings_for(folder: Path, cores: int | None, master: str | None, *, many_rows: bool = False) -> dict[str, str]:
    if master is None:
        return _settings(folder, cores, many_rows=many_rows)
    local = _LOCAL.fullmatch(master)
    if local is None:
        return _cluster_settings(folder, master)
    threads = local["threads"] or "1"
    own = _settings(folder, None if threads == "*" else int(threads), many_rows=many_rows)
    return own | {"spark.master": master}


def _settings(folder: Path, cores: int | None, *, many_rows: bool) -> dict[str, str]:
    cores = cores or len(os.sched_getaffinity(0))
    return {
        **_everywhere(folder, *(() if many_rows else (_QUICK_COMPILER,))),
        **_LAPTOP,
        **({} if many_rows else _FEW_ROWS),
        "spark.master": f"local[{cores}]",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.shuffle.partitions": str(cores),  # tables are small: fewer tasks win
        # Over TCP every task waits 40 ms for a delayed acknowledgement. (A path must fit into the socket's address.)
        "spark.python.unix.domain.socket.enabled": str(len(str(folder)) < _SOCKET_FOLDER_CHARS).lower(),
        "spark.python.unix.domain.socket.dir": str(folder),
    }


def _cluster_settings(folder: Path, master: str) -> dict[str, str]:
    """Executors keep their own scratch folders; the driver listens where the master can reach it."""
    host = _facing(master)
    return {
        **_everywhere(folder, _QUICK_COMPILER),
        "spark.master": master,
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
        "spark.executorEnv.PYTHONHASHSEED": "0",
    }


def _everywhere(folder: Path, *jvm_flags: str) -> dict[str, str]:
    flags = (*_JVM_FLAGS, *jvm_flags, *archive_flags(Program.SPARK))
    return {
        "spark.app.name": "rebalance-lab",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join(f'"{flag}"' for flag in flags),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH_ROWS),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_BATCH_BYTES),
        "spark.sql.dataFrameQueryContext.enabled": "false",  # a stack trace for each column that is named
        # In what it infers, a lambda's variable may have the id of a column, and a filter then lacks that column
        # (`HigherOrderFunction.canonicalized`, Spark 4.3.0).
        "spark.sql.constraintPropagation.enabled": "false",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }


def _facing(master: str) -> str:
    """The address of this machine from which a master is reached; that of the loopback if `master` names no host.
    Raises SparkStartError if none of its masters answers."""
    why = None
    for host, port in _MASTERS.findall(master):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.settimeout(_MASTER_TIMEOUT_S)
            try:
                probe.connect((host, int(port)))
            except (OSError, OverflowError) as error:
                why = error
            else:
                return str(probe.getsockname()[0])
    if why is not None:
        raise SparkStartError(f"Spark's master {master} cannot be reached: {why}")
    return LOOPBACK


@contextmanager
def _environment(address: str) -> Iterator[None]:
    """The environment the JVM is born with; ours is put back afterwards."""
    before = dict(os.environ)
    for name in _FOREIGN:
        os.environ.pop(name, None)
    # Without it Spark looks up the host's name, and warns when that is a loopback address.
    os.environ["SPARK_LOCAL_IP"] = address
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must see the packages that we see
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _launch(conf: SparkConf, scratch: Scratch) -> Any:
    """Start the JVM; what it prints, its warnings about itself too, goes to a log, not to the terminal.

    `SparkSession.builder` (PySpark 4.3) cannot do that: it starts the JVM on the terminal's stderr, so that Spark
    is not quiet and a failed start cannot quote the JVM. Nor does it end the JVM with the session (see `_end`).

    The JVM holds the folder's lock as well. If this process is killed while the JVM starts, the folder stays until the
    JVM has noticed: without it the JVM fails to say its port, and lives on for good.
    """
    log = scratch.folder / "spark.log"
    with log.open("wb") as sink, _temporary_files_in(scratch.folder):
        try:
            return launch_gateway(conf, {"stdout": sink, "stderr": subprocess.STDOUT, "pass_fds": [scratch.lock]})
        except (PySparkRuntimeError, OSError) as error:
            problem = java_problem()
            if problem is None:
                tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:])
                problem = f"{error}; the JVM's last words:\n{tail}"
            raise SparkStartError(f"Spark did not start: {problem}") from error


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """PySpark makes a temporary folder while the JVM starts. It goes with ours, also if this process is killed."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _end(gateway: Any) -> None:
    """End the JVM: it exits when its standard input closes."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(_EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    # PySpark keeps its first gateway for the life of the process: the next start must not find a dead one.
    SparkContext._gateway = None
    SparkContext._jvm = None


def _break_off(gateway: Any, context: SparkContext) -> None:
    """Kill the JVM of a process that was interrupted, from another thread than that which waits for it. A collection
    that is interrupted before it is connected waits for a thread of the JVM, which waits for the connection
    (`_collect_as_arrow` in PySpark 4.3). Of the loss PySpark would print several tracebacks."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    try:
        server = context._accumulatorServer
        if server is not None:  # it waits for an update that is under way, for as long as that takes
            ending = threading.Thread(target=server.shutdown, daemon=True)
            ending.start()
            ending.join(_SERVER_TIMEOUT_S)
    finally:
        gateway.proc.kill()


def java_problem() -> str | None:
    """What is wrong with this machine's Java, None when it will do.

    Asked only after a failed start: looking first would cost every good start a JVM more.
    """
    advice = f"Spark needs Java {MINIMUM_JAVA} or later (Debian: apt-get install openjdk-17-jre-headless)"
    java = installed()
    if java is None:
        return f"there is no java in the PATH, and JAVA_HOME is not set; {advice}"
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=True
        )
    except subprocess.CalledProcessError as error:
        return f"{java} cannot be run: {(error.stdout + error.stderr).strip()}; {advice}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"{java} cannot be run ({error}); {advice}"
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if match is not None and int(match[1]) < MINIMUM_JAVA:
        return f"{java} is Java {match[1]}; {advice}, or point JAVA_HOME at it"
    return None
