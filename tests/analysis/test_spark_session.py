"""How Spark starts and stops. In processes of their own: a process can have one Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest

from rebalance_lab.analysis import published, session
from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.analysis.session import LocalSpark, java_problem
from rebalance_lab.history.scratch import orphans, remove_whole
from rebalance_lab.kernel.interruption import Interrupted, interruptible
from rebalance_lab.world.process.states import RunState, wait_for_state


def test_it_listens_on_the_loopback_interface_only(local_spark: LocalSpark) -> None:
    sockets = psutil.Process(local_spark.gateway.proc.pid).net_connections("tcp")
    addresses = {each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN}
    assert addresses
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1"}


def test_it_has_two_cores_no_page_and_utc(local_spark: LocalSpark) -> None:
    context = local_spark.session.sparkContext
    assert (context.master, context.defaultParallelism, context.uiWebUrl) == ("local[2]", 2, None)
    assert local_spark.session.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "1"), ("local[3]", "3"), ("local[2,4]", "2"), ("yarn", None)]
)
def test_a_laptop_is_tuned_and_a_cluster_has_sparks_defaults(
    tmp_path: Path, master: str, partitions: str | None
) -> None:
    settings = session._settings_for(tmp_path, None, master)
    assert settings["spark.master"] == master
    assert settings.get("spark.sql.shuffle.partitions") == partitions
    assert settings.get("spark.sql.adaptive.enabled") == (None if partitions is None else "false")


@pytest.mark.parametrize("many_rows", [False, True])
def test_only_a_spark_on_this_machine_that_takes_few_rows_does_without_compilers(
    tmp_path: Path, many_rows: bool
) -> None:
    settings = session._settings_for(tmp_path, 2, None, many_rows=many_rows)
    assert ("spark.sql.codegen.wholeStage" in settings) is not many_rows
    assert ("TieredStopAtLevel" in settings["spark.driver.extraJavaOptions"]) is not many_rows
    assert "spark.sql.codegen.wholeStage" not in session._settings_for(tmp_path, None, "yarn", many_rows=many_rows)


def test_a_process_has_one_spark(local_spark: LocalSpark) -> None:
    assert local_spark.session is not None
    with pytest.raises(SparkStartError, match="has a Spark already"):
        session.start()


ONCE_MORE = """
import os, sys
from rebalance_lab.analysis import session
with session.start() as first:
    assert first.session.range(3).count() == 3
    folder = first.folder
assert not folder.exists()
assert first.gateway.proc.poll() is not None
assert "SPARK_LOCAL_IP" not in os.environ
second = session.start()
assert second.session.range(4).mapInArrow(lambda batches: batches, "id long").count() == 4
print(second.gateway.proc.pid, second.folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_it_is_quiet_starts_again_and_dies_with_its_starter(tmp_path: Path) -> None:
    foreign = {"SPARK_HOME": "/nowhere", "SPARK_REMOTE": "sc://nowhere", "PYSPARK_PYTHON": "/nowhere/python"}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", ONCE_MORE],
        env={**os.environ, **foreign, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = process.stdout.readline()
        if not said:
            pytest.fail(process.stderr.read())
        pid, folder = said.split()
        assert Path(folder).is_dir()
        assert {entry.name for entry in tmp_path.iterdir()} <= {
            Path(folder).name,
            f"hsperfdata_{os.environ.get('USER', 'root')}",
        }
        process.send_signal(signal.SIGKILL)
        _, complaints = process.communicate(timeout=30)
        assert complaints == ""
        wait_for_state(int(pid), RunState.GONE, 30)
    finally:
        process.kill()
        process.communicate()


def fake_java(folder: Path, version: str) -> Path:
    """A JAVA_HOME whose java says that it is `version`, and runs nothing."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && {{ echo \'openjdk version "{version}"\' >&2; exit 0; }}\nexit 1\n'
    )
    java.chmod(0o755)
    return folder


def _jvm_of(process: subprocess.Popen[bytes]) -> psutil.Process:
    """The JVM of Spark, once it has begun. A shell and another JVM come before it."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                words = child.cmdline()
                if "org.apache.spark.deploy.SparkSubmit" in words and "org.apache.spark.launcher.Main" not in words:
                    return child
        time.sleep(0.005)
    raise AssertionError("Spark's JVM did not begin")


@pytest.mark.slow
def test_a_start_that_is_killed_leaves_no_jvm(tmp_path: Path) -> None:
    """Others remove what it left at once. The JVM needs the folder to say its port, and lives on if it cannot."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    start = "from rebalance_lab.analysis import session; session.start()"
    with subprocess.Popen([sys.executable, "-c", start], env=environment, cwd=tmp_path) as process:
        jvm = _jvm_of(process)
        process.kill()
    give_up = time.monotonic() + 60
    while list(tmp_path.iterdir()) and time.monotonic() < give_up:
        for orphan in orphans(tmp_path, f"{session.PREFIX}*"):
            remove_whole(orphan)
        time.sleep(0.02)
    _, alive = psutil.wait_procs([jvm], timeout=max(0, give_up - time.monotonic()))
    for each in alive:
        each.kill()
    assert (alive, list(tmp_path.iterdir())) == ([], [])


#: A signal comes when PySpark is about to connect to the thread of the JVM that serves a collection. PySpark then waits
#: for this thread, which waits for the connection.
INTERRUPTED = """
import os, signal, sys
from rebalance_lab.analysis import session
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.kernel import interruption
from pyspark.sql.pandas import conversion

def interrupted(*_arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("the signal comes first")

interruption.STANDSTILL_S = 1.0
conversion._load_from_socket = interrupted
try:
    with interruption.interruptible(), session.start() as spark:
        rows_of(spark.session.range(10))
except Exception:
    print("ended")
"""


@pytest.mark.slow
def test_a_collection_that_is_interrupted_before_it_is_connected_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)
    assert list(tmp_path.iterdir()) == []


def test_the_jvm_is_killed_whatever_else_is_in_the_way() -> None:
    """The accumulators' server has ended already, or does not end."""
    hangs = threading.Event()
    for server in (None, SimpleNamespace(shutdown=hangs.wait)):
        with subprocess.Popen(["sleep", "600"]) as process:
            session._break_off(SimpleNamespace(proc=process), SimpleNamespace(_accumulatorServer=server))
            assert process.wait(10) == -signal.SIGKILL
    hangs.set()


@pytest.mark.parametrize(
    ("version", "told"),
    [("11.0.22", "is Java 11; Spark needs Java 17 or later"), ("1.8.0_402", "is Java 8"), ("17.0.1", None)],
)
def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str | None) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, version)))
    problem = java_problem()
    assert problem is None if told is None else told in problem


def test_no_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no java in the PATH, and JAVA_HOME is not set" in java_problem()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"{tmp_path}/bin/java cannot be run" in java_problem()


START = """
from rebalance_lab.analysis import session
try:
    session.start()
except session.SparkStartError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("version", "told"),
    [("11.0.22", "Spark did not start: {home}/bin/java is Java 11; "), ("21.0.1", "the JVM's last words:")],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(tmp_path: Path, version: str, told: str) -> None:
    home, scratch = fake_java(tmp_path / "java", version), tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(  # without -W error: PySpark leaves its pipe to the collector when a start fails
        [sys.executable, "-c", START],
        env={**os.environ, "JAVA_HOME": str(home), "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert told.format(home=home) in done.stdout
    assert done.stderr == ""
    assert list(scratch.iterdir()) == []


class Recorded:
    """Parts of a Spark that note how they end; the first is struck by a signal."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def stop(self) -> None:
        signal.raise_signal(signal.SIGTERM)
        self.ends.append("session")

    def remove(self) -> None:
        self.ends.append("folder")


def test_a_signal_does_not_break_off_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: Any = Recorded()
    monkeypatch.setattr(session, "_end", lambda _gateway: parts.ends.append("gateway"))
    with interruptible() as interruption, pytest.raises(Interrupted):
        LocalSpark(parts, parts, None).stop()
    assert interruption.number is signal.SIGTERM
    assert parts.ends == ["session", "gateway", "folder"]


def test_a_folder_that_a_task_makes_again_goes_with_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal at `tables`: a task that is told to end is about to open a file in the folder that is removed."""
    parts: Any = Recorded()
    with pytest.raises(KeyboardInterrupt), published._beside(MagicMock(), tmp_path / "tables") as folder:
        raise KeyboardInterrupt
    assert not folder.exists()

    def end(_gateway: object) -> None:
        (folder / "events").mkdir(parents=True)

    monkeypatch.setattr(session, "_end", end)
    monkeypatch.setattr(signal, "raise_signal", lambda _number: None)
    LocalSpark(parts, parts, None).stop()
    assert list(tmp_path.iterdir()) == []
