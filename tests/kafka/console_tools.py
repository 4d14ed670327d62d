"""The command-line tools of Kafka, unmodified."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

import pytest
from cluster_process import ClusterProcess

from rebalance_lab.world.kafka import jars
from rebalance_lab.world.kafka.prepared import prepare
from rebalance_lab.world.live.java import java_command

LIMIT_S = 60


def fetched(role: jars.Role) -> None:
    """Fetch the jars before any test's clock runs. Maven is there, but may not reach its repository."""
    try:
        prepare([role])
    except jars.KafkaUnavailable as unavailable:
        (pytest.fail if os.environ.get("REBALANCE_LAB_REQUIRE_KAFKA") else pytest.skip)(str(unavailable))


def tool(cluster: ClusterProcess, main: str, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of the tools on the cluster; `lines` is its standard input."""
    return java(jars.Role.TOOLS, main, "--bootstrap-server", cluster.bootstrap, *arguments, lines=lines)


def java(role: jars.Role, main: str, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program of Kafka; `lines` is its standard input."""
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m"]
    command = [java_command(), *flags, "-cp", jars.class_path(role), main, *arguments]
    return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def said(cluster: ClusterProcess, main: str, *arguments: str, lines: str = "") -> list[str]:
    """The lines that a tool wrote to its standard output. It must succeed."""
    done = tool(cluster, main, *arguments, lines=lines)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def until(ready: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    give_up = time.monotonic() + LIMIT_S
    while not ready():
        assert time.monotonic() < give_up, f"{what} did not come in {LIMIT_S} s"
        time.sleep(0.05)
