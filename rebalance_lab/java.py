"""The Java of this machine, and archives of classes, by which its JVMs start sooner (Java's class data sharing).

An archive holds the classes that a program has loaded, ready for use: ZooKeeper, Spark and real Kafka start in two
thirds of the time or less. It holds for its program's jars only. Those of ZooKeeper and Spark are in the Python
environment, where their jars are, and `scripts/setup` makes them; those of Kafka are beside Kafka's jars
(`world.kafka.prepared`). Without one, and with one of another Java, a program starts as ever; a damaged one ends the
JVM.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

#: Spark 4 does not start on less. ZooKeeper 3.9 would.
MINIMUM_JAVA = 17


class Program(StrEnum):
    """What has an archive in the Python environment. Its class path is PySpark's jars, or some of them."""

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


def archive(program: str, jars: Path | None = None, folder: Path | None = None) -> Path | None:
    """Where the archive of `program` is, if it has been made. Another Java, or other jars, have another. `jars`: the
    folder of its class path, by default PySpark's; `folder`: where archives are, by default in the Python environment.
    None: there is no Java, or there are no jars."""
    java, jars = installed(), jars or pyspark_jars()
    if java is None or jars is None:
        return None
    try:
        known = [(str(each), each.stat().st_mtime_ns) for each in (Path(java).resolve(), jars)]
    except OSError:
        return None
    digest = hashlib.sha256(repr(known).encode()).hexdigest()[:12]
    return (folder or Path(sys.prefix) / "share" / "rebalance-lab") / f"{program}-{digest}.jsa"


#: A JVM that crashes aborts itself; a file that is too short is SIGBUS.
_CRASHES = frozenset({-signal.SIGABRT, -signal.SIGBUS, -signal.SIGSEGV})

#: Flags in place of those of the archive.
_instead: dict[str, tuple[str, ...]] = {}


def archive_flags(program: str, jars: Path | None = None, folder: Path | None = None) -> tuple[str, ...]:
    """Flags for the JVM that is to run `program`: with its archive, if there is one. `jars`, `folder`: as of
    `archive`."""
    if program in _instead:
        return _instead[program]
    path = archive(program, jars, folder)
    return (f"-XX:SharedArchiveFile={path}",) if path is not None and path.exists() else ()


def damaged_archive(program: str, code: int | None, jars: Path | None = None, folder: Path | None = None) -> str | None:
    """What to do about a JVM that ran `program` and has ended with `code`: that of a signal by which JVMs end whose
    archive is damaged. `jars`, `folder`: as of `archive`. None if it has none, or ended otherwise."""
    path = archive(program, jars, folder)
    if code not in _CRASHES or path is None or not path.exists():
        return None
    return f"perhaps its archive of classes is damaged: delete {path}{'' if folder else ', and run scripts/setup'}"


@contextmanager
def recorded(program: str, into: Path) -> Iterator[None]:
    """JVMs that this process starts to run `program` write the archive `into` when they end. The last one stays."""
    with _given(program, f"-XX:ArchiveClassesAtExit={into}"):
        yield


@contextmanager
def tried(program: str, path: Path) -> Iterator[None]:
    """JVMs that this process starts to run `program` use the archive `path`, or fail."""
    with _given(program, f"-XX:SharedArchiveFile={path}", "-Xshare:on"):
        yield


@contextmanager
def _given(program: str, *flags: str) -> Iterator[None]:
    _instead[program] = flags
    try:
        yield
    finally:
        del _instead[program]


def make_archive(program: str, path: Path, use: Callable[[Path], None], start: Callable[[Path], None]) -> None:
    """Record the classes of `program` into `path`, which appears once it is whole and has worked. The archives of
    another Java, and what an earlier attempt has left, are removed. `use` runs the program until it has loaded what it
    needs, and ends it; then `start` starts it and ends it. Both get the same temporary folder, and what they raise goes
    on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"{program}-*"):
        left.unlink(missing_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        with tempfile.TemporaryDirectory(prefix="rebalance-lab-archive-") as folder:
            with recorded(program, part):
                use(Path(folder))
            with tried(program, part):
                start(Path(folder))
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
