"""`topics --reassign`, on brokers that run."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest
from cli_tools import LIMIT_S, CommandLine, background, end, next_line

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with background("cluster", "--brokers", 3, "--set", "replica.lag.time.max.ms=3000", "--json") as process:
        yield str(next_line(process)["bootstrap"])
        end(process, signal.SIGTERM)


@pytest.fixture
def topics(command: CommandLine, bootstrap: str) -> Callable[..., list[str]]:
    """The words of `topics` on these brokers."""
    return lambda *words: ["topics", "--bootstrap", bootstrap, *words]


def replicas(command: CommandLine, topics: Callable[..., list[str]], topic: str) -> list[list[int]]:
    described = command(*topics("--describe", topic, "--json")).json
    return [sorted(each["replicas"]) for each in described["partitions"]]


def test_partitions_get_other_replicas(command: CommandLine, topics: Callable[..., list[str]]) -> None:
    command(*topics("--create", "t", "--partitions", "2", "--replication", "1"))
    moved = command(*topics("--reassign", "t", "--to", "0=1,2", "--to", "1=3"))
    assert moved.out == "2 partitions of t: the reassignment has begun\n"
    give_up = time.monotonic() + LIMIT_S
    while command(*topics("--reassign", "t", "--json")).json["reassigning"]:
        assert time.monotonic() < give_up
    assert replicas(command, topics, "t") == [[1, 2], [3]]
    assert command(*topics("--reassign", "t")).out == "no partition of t is being reassigned\n"
    again = command(*topics("--reassign", "t", "--to", "0=2,1", "--json")).json
    assert again == {"reassigned": "t", "partitions": [0]}


def test_what_is_refused(command: CommandLine, topics: Callable[..., list[str]]) -> None:
    command(*topics("--create", "u", "--partitions", "1"))
    nothing = command.refused(*topics("--reassign", "u", "--cancel"))
    assert "no partition of u is being reassigned, so there is nothing to take back" in nothing
    dead = command.refused(*topics("--reassign", "u", "--to", "0=1,9"))
    assert "partition 0 of u" in dead
    assert "INVALID_REPLICA_ASSIGNMENT" in dead
    assert "brokers 9 are not live; 1, 2, 3 are" in dead
    assert "UNKNOWN_TOPIC_OR_PARTITION" in command.refused(*topics("--reassign", "u", "--to", "7=1"))
