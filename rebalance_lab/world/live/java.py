"""Finding Java, and the ZooKeeper server that PySpark ships, without importing PySpark."""

from __future__ import annotations

import functools
import os
import re
import subprocess

from rebalance_lab.java import MINIMUM_JAVA, installed, pyspark_jars
from rebalance_lab.kernel.errors import LabError

_VERSION_TIMEOUT_S = 30

#: What of PySpark's jars the server needs. Netty is only loaded by classes the server links to.
_JAR_PATTERNS = (
    "zookeeper-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "netty-*.jar",
    "snappy-java-*.jar",
    "metrics-core-*.jar",
    "commons-cli-*.jar",
    "commons-io-*.jar",
)


class EmbeddedServerError(LabError):
    """The embedded ZooKeeper cannot be started or steered. The message says what to do."""


def java_command() -> str:
    """Path of a Java of at least version 17: JAVA_HOME's if that is set, else the PATH's.

    Raises EmbeddedServerError when there is none, or an older one.
    """
    found = installed()
    if found is None or not os.access(found, os.X_OK):
        home = os.environ.get("JAVA_HOME")
        where = f"in JAVA_HOME ({home})" if home else "in the PATH, and JAVA_HOME is not set"
        raise EmbeddedServerError(
            f"no java {where}: the embedded ZooKeeper needs Java {MINIMUM_JAVA} or later"
            " (Debian: apt-get install openjdk-17-jre-headless)"
        )
    version = _java_version(found)
    if version < MINIMUM_JAVA:
        raise EmbeddedServerError(
            f"{found} is Java {version}: the embedded ZooKeeper needs Java {MINIMUM_JAVA} or later;"
            " install one, or point JAVA_HOME at it"
        )
    return found


@functools.lru_cache(maxsize=8)
def _java_version(command: str) -> int:
    """The major version: 17 of `17.0.15`, 8 of `1.8.0_402`."""
    try:
        answer = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=True
        ).stderr
    except subprocess.CalledProcessError as error:
        why = (error.stdout + error.stderr).strip()
        raise EmbeddedServerError(f"`{command} -version` failed with {error.returncode}: {why}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedServerError(f"`{command} -version` failed: {error}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    if match is None:
        raise EmbeddedServerError(f"`{command} -version` does not tell its version: {answer.strip()!r}")
    return int(match[1])


@functools.lru_cache(maxsize=1)
def zookeeper_classpath() -> str:
    """The class path of ZooKeeper's server. Raises EmbeddedServerError without PySpark's jars."""
    folder = pyspark_jars()
    if folder is None:
        raise EmbeddedServerError("PySpark is not installed: the embedded ZooKeeper runs from its jars")
    jars = [jar for pattern in _JAR_PATTERNS for jar in sorted(folder.glob(pattern))]
    if not any(jar.name.startswith("zookeeper-") for jar in jars):
        raise EmbeddedServerError(f"{folder} holds no zookeeper-*.jar: install the full pyspark, not pyspark-client")
    return os.pathsep.join(str(jar) for jar in jars)


@functools.lru_cache(maxsize=1)
def zookeeper_version() -> str:
    """The version of that ZooKeeper, from the name of its jar."""
    match = re.search(r"zookeeper-([0-9][^/]*)\.jar", zookeeper_classpath())
    if match is None:
        raise EmbeddedServerError("the name of PySpark's zookeeper jar does not tell its version")
    return match[1]
