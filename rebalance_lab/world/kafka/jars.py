"""Real Kafka's jars. Maven fetches them once, and they stay in the user's cache.

They are not dependencies of the lab. `pom.xml` beside this file names their versions and dependencies. Maven's settings
say where it fetches them from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from enum import StrEnum
from pathlib import Path

from rebalance_lab import java
from rebalance_lab.world.live.java import EmbeddedServerError, java_command

POM = Path(__file__).with_name("pom.xml")

#: A first fetch takes half a minute on a good line.
FETCH_TIMEOUT_S = 600

_TAIL_LINES = 12


class Role(StrEnum):
    """What is run: each is a profile of the pom, and a class path of its own."""

    CONSUMER = "consumer"  # Kafka 0.8.2.2
    BROKER = "broker"  # Kafka 3.9.1, in ZooKeeper mode
    TOOLS = "tools"  # the command-line tools of 3.9.1
    BROKER_3_0 = "broker-3.0"  # Kafka 3.0.0, in ZooKeeper mode
    BROKER_1_1 = "broker-1.1"  # Kafka 1.1.1


#: What trials run. The others are for tests only, and fetched when one asks for their class path.
NODES = (Role.CONSUMER, Role.BROKER)

#: The jar that is looked for, so that half a folder is never taken for a whole one.
MAIN_JAR = {
    Role.CONSUMER: "kafka_2.10-0.8.2.2.jar",
    Role.BROKER: "kafka_2.13-3.9.1.jar",
    Role.TOOLS: "kafka-tools-3.9.1.jar",
    Role.BROKER_3_0: "kafka_2.13-3.0.0.jar",
    Role.BROKER_1_1: "kafka_2.11-1.1.1.jar",
}

VERSIONS = {Role.CONSUMER: "0.8.2.2", Role.BROKER: "3.9.1"}


class KafkaUnavailable(EmbeddedServerError):
    """Real Kafka cannot be run here. The message says what is missing and what to do."""


def cache_folder() -> Path:
    """Where the jars are kept: one folder for each content of the pom."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rebalance-lab" / f"kafka-{hashlib.sha256(POM.read_bytes()).hexdigest()[:12]}"


def problem() -> str | None:
    """Why a real Kafka node cannot be run here, as far as is known before anything is fetched; None if nothing is known
    to prevent it."""
    try:
        java_command()
        if not all(_is_whole(role) for role in NODES):
            _maven()
    except EmbeddedServerError as error:
        return str(error)
    return None


def class_path(role: Role) -> str:
    """The class path of `role`; fetches its jars where they are not kept yet.

    Raises KafkaUnavailable: no Maven, or it could not fetch them (with the end of what it said).
    """
    if not _is_whole(role):
        _fetch(role)
    return os.pathsep.join(str(jar) for jar in sorted((cache_folder() / role).glob("*.jar")))


def archive_of(role: Role) -> Path | None:
    """Where the archive of the role's classes is, if it has been made; see `rebalance_lab.java`."""
    return java.archive(*_archived(role))


def archive_flags(role: Role) -> tuple[str, ...]:
    """Flags for a JVM of the role: with the archive of its classes, if there is one."""
    return java.archive_flags(*_archived(role))


def damaged_archive(role: Role, code: int | None) -> str | None:
    """What to do about a JVM of the role that has ended with `code`, if its archive may be damaged."""
    name, jars, folder = _archived(role)
    return java.damaged_archive(name, code, jars, folder)


def _archived(role: Role) -> tuple[str, Path, Path]:
    return program(role), cache_folder() / role, cache_folder()


def program(role: Role) -> str:
    """What `rebalance_lab.java` calls the program of a role. No name begins with another."""
    return f"{role}-of-kafka"


def _is_whole(role: Role) -> bool:
    return (cache_folder() / role / MAIN_JAR[role]).is_file()


def _maven() -> str:
    found = shutil.which("mvn")
    if found is None:
        raise KafkaUnavailable(
            "no mvn in the PATH: real Kafka's jars are fetched by Maven (Debian: apt-get install maven)"
        )
    return found


def _fetch(role: Role) -> None:
    """Fetch into a folder beside the final one and move it there: several may try at once."""
    maven, folder = _maven(), cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{role}-") as work:
        jars = Path(work) / "jars"
        command = [
            *(maven, "--quiet", "--batch-mode", "--file", str(POM), f"--activate-profiles={role}"),
            *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"),
        ]
        try:
            said = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=FETCH_TIMEOUT_S,
                check=True,
                cwd=work,
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            output = getattr(error, "stdout", None) or ""
            tail = "\n".join(str(output).splitlines()[-_TAIL_LINES:])
            raise KafkaUnavailable(
                f"Maven could not fetch the jars of Kafka's {role}: {error}\n{tail}".rstrip()
            ) from error
        if not (jars / MAIN_JAR[role]).is_file():
            raise KafkaUnavailable(f"Maven fetched no {MAIN_JAR[role]}; it said: {said or 'nothing'}")
        try:
            jars.rename(folder / role)
        except OSError:
            if not _is_whole(role):  # else another process was first
                raise
