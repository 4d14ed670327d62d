"""What the machine lacks is said by name: processes and threads, and a Java that is new enough."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine, Shell
from thorough import usual

from rebalance_lab.cli import scenarios
from rebalance_lab.cli.limits import named
from rebalance_lab.trials.lab import TrialError
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.world.live.java import EmbeddedServerError

#: Another user, to whom limits apply, and who may read all that root may.
AS_NOBODY = [
    *("setpriv", "--reuid", "65534", "--clear-groups"),
    *("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"),
]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become a user without other processes")
@pytest.mark.parametrize("limit", usual([1, 12], [1, 4, 12, 20]))
@pytest.mark.parametrize(
    "arguments",
    [["run", "zombie", "--world", "processes"], ["zookeeper", "--nodes", "3"], ["cluster", "--brokers", "3"]],
    ids=lambda each: each[0],
)
def test_too_few_processes(tmp_path: Path, arguments: list[str], limit: int) -> None:
    ended = subprocess.run(
        [*AS_NOBODY, "prlimit", f"--nproc={limit}", *COMMAND, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 2, ended
    (line,) = ended.stderr.splitlines()
    assert line.startswith("rebalance-lab: no more processes or threads can be started; raise the limit of this user ")
    assert f"(ulimit -u, which is {limit})" in line
    assert not list(tmp_path.glob("trials/*/trial.json"))


@pytest.mark.parametrize(
    "said",
    [
        "unexpected RuntimeError: can't start new thread; …",
        "Resource temporarily unavailable",
        "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory",
        "There is insufficient memory for the Java Runtime Environment to continue. / Cannot create worker GC thread.",
    ],
)
def test_each_way_of_saying_it(said: str) -> None:
    assert named(said).startswith("no more processes or threads can be started; ")
    assert named("members=0: must be 1 or more") == "members=0: must be 1 or more"


def test_a_java_without_threads_that_says_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """`java -version` under `ulimit -u 4`, where only the first line of what it says is kept."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (4 if which == resource.RLIMIT_NPROC else -1,) * 2)
    said = "There is insufficient memory for the Java Runtime Environment to continue."
    assert named(said, EmbeddedServerError(said)).startswith("no more processes or threads can be started; ")
    assert named(said).startswith("there is not enough memory; ")


@pytest.mark.parametrize(
    "said",
    [
        "unexpected ImportError: libparquet.so: failed to map segment from shared object; …",
        "`java -version` failed with 1: Could not reserve enough space for 350208KB object heap",
        "Spark did not start: Could not allocate compressed class space: 1073741824 bytes",
        "[Errno 12] Cannot allocate memory",
        "unexpected MemoryError: ; …",
    ],
)
def test_a_limit_of_memory_is_named(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    limits = {resource.RLIMIT_AS: 700_000 * 1024}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits.get(which, 4096), 4096))
    assert named(said) == (
        "there is not enough memory; raise the limit of a process (ulimit -v, which is 700000) or of the container"
    )
    assert "or the limit of memory (ulimit -v, which is 700000)" in named("can't start new thread")


@pytest.mark.parametrize("limit_kib", [250_000, 700_000, 3_000_000])
def test_too_little_memory_for_java(tmp_path: Path, limit_kib: int) -> None:
    ended = subprocess.run(
        ["prlimit", f"--as={limit_kib * 1024}", *COMMAND, "run", "zombie", "--world", "processes"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert f"there is not enough memory; raise the limit of a process (ulimit -v, which is {limit_kib})" in ended.stderr
    assert not list(tmp_path.glob("trials/*"))


def test_a_limit_of_files_is_named() -> None:
    said = "z1 has ended; …: java.io.IOException: Too many open files"
    assert named(said).startswith("no more files can be opened; raise the limit of a process (ulimit -n, which is ")


@pytest.mark.parametrize(("limit", "is_named"), [(20, True), (4096, False), (resource.RLIM_INFINITY, False)])
def test_what_fails_under_a_low_limit_fails_by_it(monkeypatch: pytest.MonkeyPatch, limit: int, is_named: bool) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    said = named("m1 has ended; its log ends: …", TrialError("m1 has ended"))
    assert said.startswith("no more processes") is is_named
    assert named("there is no scenario nope", PlanError("there is no scenario nope")) == "there is no scenario nope"


def test_a_thread_that_cannot_start(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(scenarios, "scenario_names", broken)
    assert command.refused("scenarios").startswith("no more processes or threads can be started; ")


@pytest.mark.parametrize("arguments", [["zookeeper"], ["cluster"], ["run", "zombie", "--world", "processes"]])
def test_an_old_java_in_the_path(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert command.refused(*arguments) == (
        f"{java} is Java 8: the embedded ZooKeeper needs Java 17 or later; install one, or point JAVA_HOME at it"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["claims"], ["report", "--out", "page.html"], ["tables", "--out", "tables"]], ids=lambda each: each[0]
)
def test_an_old_java_for_spark(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell("run", "zombie").code == 0
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho \'openjdk version "1.8.0_402"\' >&2\n[ "$1" = -version ]\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    ended = shell(*arguments)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert line.startswith(f"rebalance-lab: Spark did not start: {java} is Java 8; Spark needs Java 17 or later ")
    assert {each.name for each in tmp_path.iterdir()} == {"java", "trials"}
