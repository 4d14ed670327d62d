"""`produce` and `consume` while they run: lines that come one by one, several partitions, brokers that are killed or
stopped, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine, Ended, Shell, end, finish
from cluster_process import ClusterProcess


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def create(cluster: ClusterProcess, command: CommandLine) -> Callable[[str], None]:
    """Creates a topic. Consumers that come before a topic do not wait for it long.

    Where the machine is busy, a test that stops the broker costs it its session. While it renews that, it closes the
    connections on which it is asked for topics, and may have created them.
    """

    def created(topic: str) -> None:
        give_up = time.monotonic() + LIMIT_S
        while (answer := command("topics", "--create", topic, "--bootstrap", cluster.bootstrap)).code != 0:
            if "TOPIC_ALREADY_EXISTS" in answer.err:
                break
            assert time.monotonic() < give_up, answer

    return created


class Client:
    """A command that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def lines(self, number: int) -> list[str]:
        """The next lines of its output."""
        assert self.process.stdout is not None
        return [self.process.stdout.readline().removesuffix("\n") for _ in range(number)]

    def end(self, number: int = signal.SIGINT) -> Ended:
        return end(self.process, number)

    def finish(self) -> Ended:
        """Close its input, and wait."""
        return finish(self.process)


@contextmanager
def running(cluster: ClusterProcess, *arguments: object) -> Iterator[Client]:
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--bootstrap", cluster.bootstrap],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Client(process)
    finally:
        process.kill()
        process.communicate()


def printed(ended: Ended, number: int, where: str) -> bool:
    """Whether it says that it has printed so many. The last line may be read before it has been counted."""

    def told(count: int, more: str) -> str:
        were = "1 record was" if count == 1 else f"{count} records were"
        return f"rebalance-lab: interrupted by SIGINT; {were} printed{where.format(count - 1)}{more}\n"

    return ended.err in (told(number, ""), told(number - 1, ", and perhaps one more"))


def test_a_line_is_sent_while_the_input_stays_open(cluster: ClusterProcess, create: Callable[[str], None]) -> None:
    create("open")
    with running(cluster, "produce", "--topic", "open") as producer:
        producer.type("a")
        with running(cluster, "consume", "--topic", "open") as consumer:
            assert consumer.lines(1) == ["a"]
            producer.type("b")
            assert consumer.lines(1) == ["b"]
            ended = consumer.end()
            assert (ended.code, ended.out) == (130, "")
            assert printed(ended, 2, ", up to offset {} of open-0")
        assert producer.end() == Ended(
            130, "", "rebalance-lab: interrupted by SIGINT; 2 records were written to open-0, at offsets 0 to 1\n"
        )


def test_a_line_that_comes_in_pieces_is_one_record(cluster: ClusterProcess) -> None:
    script = "(printf one; sleep 0.3; printf ' line\\nand a'; sleep 0.3; printf nother) | exec \"$@\""
    subprocess.run(
        ["bash", "-c", script, "bash", *COMMAND, "produce", "--topic", "pieces", "--bootstrap", cluster.bootstrap],
        check=True,
        timeout=LIMIT_S,
        stdout=subprocess.DEVNULL,
    )
    at = ["--topic", "pieces", "--bootstrap", cluster.bootstrap]
    assert Shell()("consume", *at, "--to-end").out == "one line\nand another\n"


def test_all_partitions_are_read(cluster: ClusterProcess, command: CommandLine) -> None:
    at = ["--bootstrap", cluster.bootstrap]
    assert command("topics", "--create", "three", "--partitions", 3, *at).code == 0
    for partition in range(3):
        given = "".join(f"{partition}-{each}\n" for each in range(700))
        assert Shell()("produce", "--topic", "three", "--partition", partition, *at, given=given).code == 0
    read = command("consume", "--topic", "three", "--to-end", *at).out.splitlines()
    for partition in range(3):
        own = [each for each in read if each.startswith(f"{partition}-")]
        assert own == [f"{partition}-{each}" for each in range(700)]
    assert len(read) == 2100
    assert len(command("consume", "--topic", "three", "--count", 1234, *at).out.splitlines()) == 1234
    (line,) = command("consume", "--topic", "three", "--partition", 2, "--from", 699, "--to-end", *at).out.splitlines()
    assert line == "2-699"
    assert command.refused("consume", "--topic", "three", "--from", 5, *at) == (
        "--from 5: topic three has 3 partitions; choose one with --partition"
    )
    with running(cluster, "consume", "--topic", "three") as consumer:
        consumer.lines(2100)
        assert printed(consumer.end(), 2100, ", of 3 partitions of three")


@pytest.mark.slow
def test_a_broker_that_is_killed_and_comes_back_ends_no_client(
    cluster: ClusterProcess, create: Callable[[str], None]
) -> None:
    """It is away for longer than an unknown topic is waited for, each time."""
    create("back")
    back = ("--topic", "back", "--timeout-ms", 1000 * LIMIT_S)  # on a busy machine it may be away for half a minute
    with running(cluster, "produce", *back) as producer:
        producer.type("0")
        with running(cluster, "consume", *back, "--json") as consumer:
            for number in range(1, 4):
                assert [f'"value":"{number - 1}"' in line for line in consumer.lines(1)] == [True]
                cluster.kill_broker()
                producer.type(str(number))
                cluster.start_broker()
            assert '"offset":3' in consumer.lines(1)[0]
            assert consumer.end().code == 130
        ended = producer.finish()
        assert (ended.code, ended.out) == (0, "4 records were written to back-0, at offsets 0 to 3\n")


@contextmanager
def stopped(cluster: ClusterProcess) -> Iterator[None]:
    """The broker does not answer."""
    pid = cluster.broker.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_nobody_knows_is_said_to_be_unknown(cluster: ClusterProcess, create: Callable[[str], None]) -> None:
    create("doubt")
    with running(cluster, "produce", "--topic", "doubt", "--acks", "1") as producer:
        with running(cluster, "consume", "--topic", "doubt") as consumer:
            producer.type("a")
            assert consumer.lines(1) == ["a"]
            # It is sent once the answer for the first is there. Its own answer may be late: the broker is stopped.
            producer.type("b")
            assert consumer.lines(1) == ["b"]
        with stopped(cluster):
            producer.type("c")
            # It has been read once the pipe is empty, which nothing shows: each of the sentences holds.
            ended = producer.end()
    assert ended.code == 130
    assert re.fullmatch(
        r"rebalance-lab: interrupted by SIGINT; "
        r"(1 record was written to doubt-0, at offset 0; whether 1 more line was written is unknown"
        r"|2 records were written to doubt-0, at offsets 0 to 1(; whether 1 more line was written is unknown)?)\n",
        ended.err,
    )


def test_no_command_waits_longer_than_it_was_told_to(cluster: ClusterProcess, create: Callable[[str], None]) -> None:
    """A broker that takes connections and does not answer."""
    create("late")
    late = ("--topic", "late", "--timeout-ms", 3000)
    with running(cluster, "produce", *late) as producer, running(cluster, "consume", *late) as consumer:
        producer.type("a")
        assert consumer.lines(1) == ["a"]
        with stopped(cluster):
            producer.type("b")
            written, read = producer.finish(), consumer.finish()
    assert (written.code, written.out) == (2, "")
    assert "within 3000 ms" in written.err
    assert written.err.endswith(
        "; 1 record was written to late-0, at offset 0; whether 1 more line was written is unknown\n"
    )
    assert (read.code, read.out) == (2, "")
    assert "within 3000 ms" in read.err


@pytest.mark.parametrize(
    "arguments",
    [("produce", "--topic", "renewed"), ("topics", "--describe", "kept")],
    ids=" ".join,
)
def test_a_broker_that_renews_its_session_is_waited_for(
    cluster: ClusterProcess, create: Callable[[str], None], arguments: tuple[str, ...]
) -> None:
    """It closes connections on which it was asked for what needs its session, and clients ask again."""
    if "kept" in arguments:
        create("kept")
    with stopped(cluster):
        cluster.until_unregistered()
    ended = Shell()(*arguments, "--bootstrap", cluster.bootstrap, given="a\n")
    assert (ended.code, ended.err) == (0, "")


def test_without_acknowledgements_nothing_is_claimed(cluster: ClusterProcess) -> None:
    ended = Shell()("produce", "--topic", "none", "--acks", 0, "--bootstrap", cluster.bootstrap, given="a\nb\n")
    assert (ended.code, ended.out, ended.err) == (
        0,
        "2 records were sent to none-0; with acks=0 no broker says whether it has written them\n",
        "",
    )
