"""The Java of this machine, and archives of classes, by which its JVMs start sooner (Java's class data sharing).

An archive holds the classes that a program has loaded, ready for use: ZooKeeper and Spark start in two thirds of the
time or less. `scripts/setup` makes one of each program. It lies in the Python environment, because it holds for the
jars there only. Without one, and with one of another Java, the programs start as ever; a damaged one ends the JVM.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

#: Spark 4 does not start on less. ZooKeeper 3.9 would.
MINIMUM_JAVA = 17


class Program(StrEnum):
    """What has an archive. Its class path is PySpark's jars, or some of them."""

    SPARK = "spark"
    ZOOKEEPER = "zookeeper"


def installed() -> str | None:
    """The path of JAVA_HOME's java if that is set, which may not exist, else of the PATH's. None: there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def pyspark_jars() -> Path | None:
    """The folder of PySpark's jars, found without importing it. None: PySpark is not installed."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "jars"


def archive(program: Program) -> Path | None:
    """Where the archive of `program` is, if it has been made. Another Java, or other jars, have another. None: there is
    no Java, or there are no jars."""
    java, jars = installed(), pyspark_jars()
    if java is None or jars is None:
        return None
    try:
        known = [(str(each), each.stat().st_mtime_ns) for each in (Path(java).resolve(), jars)]
    except OSError:
        return None
    digest = hashlib.sha256(repr(known).encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "rebalance-lab" / f"{program}-{digest}.jsa"


#: A JVM that crashes aborts itself; a file that is too short is SIGBUS.
_CRASHES = frozenset({-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV})

#: Flags in place of those of the archive.
_instead: dict[Program, tuple[str, ...]] = {}


def archive_flags(program: Program) -> tuple[str, ...]:
    """Flags for the JVM that is to run `program`: with its archive, if there is one."""
    if program in _instead:
        return _instead[program]
    path = archive(program)
    return (f"-XX:SharedArchiveFile={path}",) if path is not None and path.exists() else ()


def damaged_archive(program: Program, code: int | None) -> str | None:
    """What to do about a JVM that ran `program` and has ended with `code`: that of a signal by which JVMs end whose
    archive is damaged. None if it has none, or ended otherwise."""
    path = archive(program)
    if code not in _CRASHES or path is None or not path.exists():
        return None
    return f"perhaps its archive of classes is damaged: delete {path}, and run scripts/setup"


@contextmanager
def recorded(program: Program, into: Path) -> Iterator[None]:
    """JVMs that this process starts to run `program` write the archive `into` when they end. The last one stays."""
    with _given(program, f"-XX:ArchiveClassesAtExit={into}"):
        yield


@contextmanager
def tried(program: Program, path: Path) -> Iterator[None]:
    """JVMs that this process starts to run `program` use the archive `path`, or fail."""
    with _given(program, f"-XX:SharedArchiveFile={path}", "-Xshare:on"):
        yield


@contextmanager
def _given(program: Program, *flags: str) -> Iterator[None]:
    _instead[program] = flags
    try:
        yield
    finally:
        del _instead[program]
