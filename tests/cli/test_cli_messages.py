"""`topics`, `produce` and `consume` under bad input, on a broker as a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine
from cluster_process import ClusterProcess

Stdin = Callable[[bytes], None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Stdin:
    return lambda data: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_line_that_is_too_large_is_named(command: CommandLine, cluster: ClusterProcess, stdin: Stdin) -> None:
    """The lines before it are written, and none after it."""
    where = ["--bootstrap", cluster.bootstrap, "--topic", "large"]
    stdin(b"a\nb\n" + b"x" * 1_100_000 + b"\nc\n")
    said = command.refused("produce", *where)
    assert said.startswith("line 3: partition large-0: MESSAGE_TOO_LARGE (large-0: a batch of ")
    assert said.endswith(
        "max.message.bytes is 1048588); 2 records were written to large-0, at offsets 0 to 1; 2 more lines were not"
    )
    assert command("consume", *where, "--to-end").out == "a\nb\n"


def test_lines_that_do_not_fit_into_one_batch_go_into_several(
    command: CommandLine, cluster: ClusterProcess, stdin: Stdin
) -> None:
    where = ["--bootstrap", cluster.bootstrap, "--topic", "long"]
    stdin((b"x" * 9_000 + b"\n") * 400)
    assert command("produce", *where, "--json").json == {"records": 400, "first_offset": 0, "last_offset": 399}


def test_a_batch_that_the_broker_refuses_is_sent_in_halves(
    command: CommandLine, cluster: ClusterProcess, stdin: Stdin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebalance_lab.cli.produce.BATCH_BYTES", 10_000_000)
    where = ["--bootstrap", cluster.bootstrap, "--topic", "halves"]
    stdin((b"x" * 9_000 + b"\n") * 400)
    assert command("produce", *where, "--json").json == {"records": 400, "first_offset": 0, "last_offset": 399}


def test_lines_are_bytes(command: CommandLine, cluster: ClusterProcess, stdin: Stdin) -> None:
    """An empty line is an empty record, the last line needs no end, and no byte is special."""
    where = ["--bootstrap", cluster.bootstrap, "--topic", "bytes"]
    stdin(b"\n\x00\xff\r\nlast")
    assert command("produce", *where, "--json").json["records"] == 3
    assert command("consume", *where, "--to-end").out == "\n\x00\N{REPLACEMENT CHARACTER}\r\nlast\n"


def test_no_lines_are_no_records(command: CommandLine, cluster: ClusterProcess, stdin: Stdin) -> None:
    stdin(b"")
    ended = command("produce", "--bootstrap", cluster.bootstrap, "--topic", "empty")
    assert (ended.code, ended.out) == (0, "0 records were written to empty-0\n")


def test_offsets_that_are_not_there(command: CommandLine, cluster: ClusterProcess, stdin: Stdin) -> None:
    where = ["--bootstrap", cluster.bootstrap, "--topic", "range"]
    stdin(b"a\nb\n")
    assert command("produce", *where).code == 0
    said = command.refused("consume", *where, "--from", 7)
    assert said == (
        "partition range-0: OFFSET_OUT_OF_RANGE: offset 7 is not there; it holds offsets 0 to 1, and 2 comes next"
    )
    assert command.refused("consume", *where, "--from", 7, "--to-end") == said
    assert "write earliest, latest or an offset" in command.refused("consume", *where, "--from", 2**63)
    assert "--count" in command.refused("consume", *where, "--count", 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["consume", "--topic", "nope"], "topic nope: UNKNOWN_TOPIC_OR_PARTITION"),
        (["consume", "--topic", "a b"], "topic a b: INVALID_TOPIC_EXCEPTION"),
        (["consume", "--topic", "here", "--partition", 9], "partition here-9: UNKNOWN_TOPIC_OR_PARTITION"),
        (
            ["produce", "--topic", "here", "--partition", 9],
            "partition here-9: UNKNOWN_TOPIC_OR_PARTITION; 0 records were",
        ),
        (["produce", "--topic", "a b"], "topic a b: INVALID_TOPIC_EXCEPTION; 0 records were written to"),
        (["topics", "--describe", "nope"], "topic nope: UNKNOWN_TOPIC_OR_PARTITION"),
        (["topics", "--delete", "nope"], "topic nope: UNKNOWN_TOPIC_OR_PARTITION"),
        (["topics", "--create", "a b"], "topic name 'a b': give 1 to 249 characters"),
        (["topics", "--create", ""], "topic name '': give 1 to 249 characters"),
        (["topics", "--create", "u", "--replication", 5], "Replication factor: 5 larger than available brokers: 1."),
        (["topics", "--create", "u", "--partitions", 0], "--partitions"),
        (["topics", "--create", "u", "--partitions", 100_000_000], "100000000 partitions; the limit"),
    ],
)
def test_what_is_refused(
    command: CommandLine, cluster: ClusterProcess, stdin: Stdin, arguments: list[object], says: str
) -> None:
    stdin(b"line\n")
    command("topics", "--bootstrap", cluster.bootstrap, "--create", "here")
    assert says in command.refused(*arguments, "--bootstrap", cluster.bootstrap)
    assert '"u"' not in command("topics", "--bootstrap", cluster.bootstrap, "--list", "--json").out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lab produce --topic streams <&-", (2, "", "there is no standard input")),
        ("seq 9 | lab produce --topic streams >&-", (2, "", "standard output is closed")),
        ("seq 9 | lab produce --topic streams | true; exit ${PIPESTATUS[1]}", (141, "", "")),
        ("lab consume --topic streams --to-end >&-", (2, "", "standard output is closed")),
        ("lab consume --topic streams | head -1; exit ${PIPESTATUS[0]}", (141, "1\n", "")),
    ],
)
def test_streams_that_are_closed(cluster: ClusterProcess, line: str, expected: tuple[int, str, str]) -> None:
    script = f'lab() {{ {" ".join(COMMAND)} "$@" --bootstrap {cluster.bootstrap}; }}; '
    seed = "seq 20000 | lab produce --topic streams >/dev/null; " if "consume" in line else ""
    ended = subprocess.run(
        ["bash", "-c", script + seed + line], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    code, out, says = expected
    assert (ended.returncode, ended.stdout) == (code, out)
    assert says in ended.stderr
    assert ended.stderr.count("\n") == (1 if says else 0)


def test_a_broker_that_goes_away_while_consuming(cluster: ClusterProcess, command: CommandLine, stdin: Stdin) -> None:
    """The last test here: its broker does not come back in time."""
    where = ["--bootstrap", cluster.bootstrap, "--topic", "away"]
    stdin(b"a\n")
    assert command("produce", *where).code == 0
    process = subprocess.Popen(
        [*COMMAND, "consume", *where, "--timeout-ms", "300"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "a\n"
    cluster.kill_broker()
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (2, "")
    assert "no broker answers" in err
    assert err.count("\n") == 1
