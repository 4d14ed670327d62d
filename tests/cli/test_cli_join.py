"""`join`: what it refuses, and members with filters on a real ZooKeeper."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cli_tools import LIMIT_S, CommandLine, Ended, background, end, finish, next_line

from rebalance_lab.cli.join import OwnershipLines
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

SESSION = ["--config", "zookeeper.session.timeout.ms=2000", "--config", "rebalance.backoff.ms=100"]
JOIN = ["join", "--zookeeper", "127.0.0.1:1"]
IN_GROUP = [*JOIN, "--group", "g"]
OF_TOPIC = [*IN_GROUP, "--topic", "t"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (IN_GROUP, "name what to consume: one or more --topic, or --whitelist, or --blacklist"),
        ([*OF_TOPIC, "--whitelist", "t"], "name what to consume: "),
        ([*IN_GROUP, "--whitelist", "t", "--blacklist", "u"], "name what to consume: "),
        ([*IN_GROUP, "--whitelist", "t:0"], "--whitelist t:0: write REGEX or REGEX:STREAMS with 1 to 10000 streams"),
        ([*IN_GROUP, "--blacklist", "t:99999"], "--blacklist t:99999: write REGEX or REGEX:STREAMS"),
        ([*IN_GROUP, "--topic", "t:0"], "--topic t:0: write T or T:STREAMS with 1 to 10000 streams"),
        ([*OF_TOPIC, "--topic", "t:2"], "--topic t:2: write T or T:STREAMS with 1 to 10000 streams, each topic once"),
        ([*IN_GROUP, "--whitelist", "*t"], "*t is an invalid regex."),
        ([*IN_GROUP, "--whitelist", "[a&&b]:2"], "the topic filter [a&&b] uses an intersection of classes (&&)"),
        ([*JOIN, "--group", "", "--topic", "t"], "--group is empty"),
        ([*OF_TOPIC, "--config", "group.id=h"], "--config group.id and --group set the same; give only one of them"),
        ([*OF_TOPIC, "--config", "zookeeper.connect=h:1"], "--config zookeeper.connect and --zookeeper set the same"),
        ([*JOIN, "--topic", "t", "--rules", "shipped"], "Missing required property 'group.id'"),
        ([*OF_TOPIC, "--config", "rebalance.max.retries=four"], 'For input string: "four"'),
        ([*OF_TOPIC, "--config", "restart.after.failure=maybe"], "boolean values must be either 'true' or 'false'"),
        ([*OF_TOPIC, "--config", "auto.offset.reset=earliest"], "Valid values are smallest and largest"),
        ([*OF_TOPIC, "--config", "offsets.storage=kafka"], "offsets.storage=kafka needs brokers; use zookeeper"),
    ],
)
def test_what_cannot_be_is_refused(command: CommandLine, arguments: list[str], says: str) -> None:
    assert says in command.refused(*arguments)


def test_nobody_at_the_address_is_said_with_the_address(command: CommandLine) -> None:
    ended = command(*OF_TOPIC, "--config", "zookeeper.connection.timeout.ms=100")
    assert (ended.code, ended.out) == (2, "")
    why = "Unable to connect to zookeeper server within timeout: 100 ms"
    assert ended.err.splitlines()[-1] == f"rebalance-lab: no ZooKeeper answers at 127.0.0.1:1: {why}"


def test_a_filter_hears_of_new_topics(
    command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    where = fixture_zookeeper.connect_string

    def create(topic: str, partitions: int) -> None:
        assert (
            command("topics", "--zookeeper", where, "--fixture", "--create", topic, "--partitions", partitions).code
            == 0
        )

    create("heard-1", 2)
    join = ["join", "--zookeeper", where, "--whitelist", "(?:heard)-[0-9]+:2", *SESSION, "--rules", "described"]
    with background(*join) as member:
        line = next_line(member)
        assert line["member"].startswith("default_")  # no group given
        assert line["owned"] == [["heard-1", 0], ["heard-1", 1]]
        create("heard-2", 1)
        create("unheard", 1)
        assert next_line(member)["owned"] == []
        assert next_line(member)["owned"] == [["heard-1", 0], ["heard-1", 1], ["heard-2", 0]]
        left = end(member, signal.SIGINT)
    assert left.code == 0
    assert "joining as default_" in left.err


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_a_topic_that_does_not_exist_is_named(
    command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper, rules: str
) -> None:
    """A topic that exists is not named, though the member gets none of its partitions."""
    where, late, small = fixture_zookeeper.connect_string, f"late-{rules}", f"small-{rules}"

    def create(topic: str) -> None:
        fixture = ["topics", "--zookeeper", where, "--fixture"]
        assert command(*fixture, "--create", topic, "--partitions", 1).code == 0

    create(small)
    join = ["join", "--zookeeper", where, "--group", late, "--topic", late, "--topic", f"{small}:2", *SESSION]
    with background(*join, "--rules", rules) as member:
        assert next_line(member)["owned"] == [[small, 0]]
        create(late)
        while [late, 0] not in next_line(member)["owned"]:
            continue
        left = end(member, signal.SIGINT)
    assert left.code == 0
    hint = f"topic {late} does not exist in this ZooKeeper; the member stays, and it may be created later"
    assert f"rebalance-lab: {hint}\n" in left.err
    assert left.err.count("does not exist") == 1
    assert f"for topic {small}" in left.err


def test_it_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The member reads it in each rebalance."""
    detail: dict[str, object] = {"op": "get", "path": "/brokers/topics/t", "error": "NoNode"}
    event = Event(actor="consumer", n=1, at_us=0, layer=Layer.OP, kind=Kind.FAILED_OP, detail=detail)
    lines = OwnershipLines(["t"])
    lines.event(event)
    lines.event(event)
    OwnershipLines(["u"]).event(event)
    assert capsys.readouterr().err.count("topic t does not exist in this ZooKeeper") == 1


def test_warnings_that_differ_only_in_numbers_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """There is one for each of 10,000 streams without a partition."""
    lines = OwnershipLines(["t"])
    for message in (*(f"nothing for thread {each}" for each in range(1000)), "another warning"):
        detail: dict[str, object] = {"message": message}
        lines.event(Event(actor="c", n=1, at_us=0, layer=Layer.OP, kind=Kind.WARNED, detail=detail))
    said = [line.removeprefix("rebalance-lab: ") for line in capsys.readouterr().err.splitlines()]
    alike = [f"nothing for thread {each}" for each in range(3)]
    assert said == [*alike, "997 more warnings like the last one", "another warning"]


def test_a_filter_that_takes_too_long_ends_it(command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper) -> None:
    where, topic = fixture_zookeeper.connect_string, "s" * 37
    command("topics", "--zookeeper", where, "--fixture", "--create", topic, "--partitions", 1)
    with background("join", "--zookeeper", where, "--group", "slow", "--whitelist", "(s|s)*[bc]", *SESSION) as member:
        _, err = member.communicate(timeout=LIMIT_S)
    assert member.returncode == 2
    assert f"the topic filter (s|s)*[bc] was not evaluated within 1 s (at topic {topic})" in err


def test_several_topics_and_settings_that_nobody_knows(
    command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper
) -> None:
    where = fixture_zookeeper.connect_string
    for topic, partitions in (("several-a", 1), ("several-b", 2)):
        command("topics", "--zookeeper", where, "--fixture", "--create", topic, "--partitions", partitions)
    topics = ["--topic", "several-a", "--topic", "several-b:2"]
    join = ["join", "--zookeeper", where, "--group", "several", *topics, *SESSION, "--config", "zk.connect=x"]
    with background(*join, "--assignor", "roundrobin", "--config", "consumer.id=one", "--rules", "shipped") as member:
        # streams that differ between topics: round robin refuses, in a member that says so
        assert member.stderr is not None
        told = [member.stderr.readline() for _ in range(3)]
        left = end(member, signal.SIGTERM)
    assert "joining as several_one; Ctrl-C leaves" in told[0]
    assert "Property zk.connect is not valid" in told[1]
    assert "several_one can't rebalance after 4 retries" in told[2]
    assert left.code == 0


class Server:
    """A ZooKeeper at one address, `port`, whose process and data come and go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0

    @contextmanager
    def running(self) -> Iterator[str]:
        with EmbeddedZooKeeper.start(self._folder, port=self.port) as server:
            self.port = server.port
            yield server.connect_string

    def forget(self) -> None:
        shutil.rmtree(self._folder)


@pytest.mark.slow
def test_a_server_that_goes_comes_back_and_comes_back_without_its_past(command: CommandLine, tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    both = [["t", 0], ["t", 1]]

    def told(member: subprocess.Popen[str]) -> str:
        assert member.stderr is not None
        return member.stderr.readline().removeprefix("rebalance-lab: ")

    with server.running() as where:
        command("topics", "--zookeeper", where, "--fixture", "--create", "t", "--partitions", 2)
        # longer than a server takes to come back on a busy machine
        session = ["--config", "zookeeper.session.timeout.ms=10000"]
        joining = background("join", "--zookeeper", where, "--group", "g", "--topic", "t", *session)
        member = joining.__enter__()
        assert told(member).startswith("joining as ")
        assert next_line(member)["owned"] == both
    try:
        assert told(member).startswith(f"the connection to ZooKeeper is lost, and is tried again: {where}: ")
        assert next_line(member).items() >= {"owned": [], "believed": both}.items()
        with server.running():
            while not (line := told(member)).startswith("connected to ZooKeeper again"):
                assert line.startswith(("no connection to ZooKeeper yet: ", "not connected for the session timeout "))
            assert line == "connected to ZooKeeper again, in the same session\n"
            again = next_line(member)
            assert (set(again), again["owned"]) == ({"at_us", "member", "owned"}, both)
        assert next_line(member).items() >= {"owned": [], "believed": both}.items()
        server.forget()
        with server.running():
            while "has not yet seen what this session has" not in (line := told(member)):
                assert line
            member.send_signal(signal.SIGINT)
            assert told(member) == "waiting for ZooKeeper, to leave cleanly; Ctrl-C again leaves at once\n"
            assert told(member) == "left without a connection; the session ends by its timeout\n"
            assert finish(member) == Ended(0, "", "")
    finally:
        joining.__exit__(None, None, None)


def test_a_second_signal_does_not_wait_for_an_attempt_to_connect(command: CommandLine, tmp_path: Path) -> None:
    """A server that takes connections and does not answer."""
    server = Server(tmp_path / "data")
    with ExitStack() as running:
        with server.running() as where:
            command("topics", "--zookeeper", where, "--fixture", "--create", "t", "--partitions", 1)
            session = ["--config", "zookeeper.session.timeout.ms=20000"]  # as long as an attempt may take
            join = ["join", "--zookeeper", where, "--group", "g", "--topic", "t", *session]
            member = running.enter_context(background(*join))
            next_line(member)
        silent = running.enter_context(socket.create_server(("127.0.0.1", server.port)))
        running.enter_context(silent.accept()[0])
        member.send_signal(signal.SIGINT)
        assert member.stderr is not None
        while "Ctrl-C again leaves at once" not in (line := member.stderr.readline()):
            assert line
        left = end(member, signal.SIGINT)
    assert (left.code, left.err) == (2, "rebalance-lab: left at once; the session ends by its timeout\n")


@pytest.mark.parametrize("name", ["topics", "join", "broker"])
def test_a_chroot_that_does_not_exist_is_named(
    command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path, name: str
) -> None:
    at = [name, "--zookeeper", f"{fixture_zookeeper.connect_string}/absent"]
    more: dict[str, list[object]] = {
        "topics": ["--fixture", "--create", "t", "--partitions", 1],
        "join": ["--group", "g", "--topic", "t"],
        "broker": ["--data", tmp_path / "data"],
    }
    ended = command(*at, *more[name])
    assert (ended.code, ended.out) == (2, "")
    said = ended.err.splitlines()[-1]
    assert said.endswith(": the chroot /absent of the connect string does not exist; create it, or leave it out")
