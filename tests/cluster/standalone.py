"""A standalone Spark cluster on the loopback interface, from PySpark's own files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil

from rebalance_lab.world.process.states import die_with_parent

#: Set in CI: there nothing is skipped in silence.
REQUIRED = "REBALANCE_LAB_REQUIRE_CLUSTER"

LOOPBACK = "127.0.0.1"

#: For JVMs that live for a minute on two cores.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_LIMIT_S = 120
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER = re.compile(r"Successfully registered with master")


class ClusterError(Exception):
    """The cluster did not come up. The message ends with what its process said."""


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """A master and `workers` workers of one core each; yields the master's URL. All end with it,
    by their process ids, and nothing of theirs is left running."""
    with ExitStack() as stack:
        said = stack.enter_context(
            _running(folder / "master", "master.Master", _MASTER, "--port", "0", "--webui-port", "0")
        )
        for number in range(workers):
            own = folder / f"worker{number}"
            options = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(own / "work"))
            stack.enter_context(_running(own, "worker.Worker", _WORKER, *options, said[1]))
        yield said[1]


@contextmanager
def _running(folder: Path, main: str, ready: re.Pattern[str], *arguments: str) -> Iterator[re.Match[str]]:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_DAEMON_MEMORY": "256m",
        "JDK_JAVA_OPTIONS": QUICK,  # of executors, too: they have a worker's environment
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", "--host", LOOPBACK, *arguments]
    with running(folder, command, environment) as (process, log):
        yield wait_for(ready, log, process)


@contextmanager
def running(
    folder: Path, command: list[str], environment: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process in a folder of its own, and the file to which it prints. It ends with the block."""
    folder.mkdir(parents=True)
    log = folder / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(),  # noqa: PLW1509  # the tests' main thread is their only one
        )
    try:
        yield process, log
    finally:
        process.terminate()
        process.wait(_LIMIT_S)


def wait_for(ready: re.Pattern[str], log: Path, process: subprocess.Popen[bytes]) -> re.Match[str]:
    """What a process prints when it is ready. Raises ClusterError if it ends before, or after a while."""
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        found = ready.search(log.read_text("utf-8", "replace"))
        if found is not None:
            return found
        time.sleep(0.05)
    raise ClusterError(f"{process.args!r} is not ready; its log:\n{log.read_text('utf-8', 'replace')[-4000:]}")


def processes_in(folder: Path) -> list[int]:
    """The processes whose current folder is below this one: master and workers, each in its own,
    and executors with their Python in a worker's."""
    running = psutil.process_iter(["cwd"])
    return sorted(each.pid for each in running if Path(each.info["cwd"] or "/").is_relative_to(folder))


def wait_until_none_in(folder: Path) -> None:
    """Return when no process is left below a folder. Raises ClusterError after a while."""
    deadline = time.monotonic() + _LIMIT_S
    while found := processes_in(folder):
        if time.monotonic() > deadline:
            raise ClusterError(f"processes {found} still run in {folder}")
        time.sleep(0.05)


def lab(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command of the lab's to its end."""
    command = [sys.executable, "-m", "rebalance_lab", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL)
