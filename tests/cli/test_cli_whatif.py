"""`whatif assign`: one line in, one line out, and no line that stops the rest."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine, Ended

VECTORS = Path(__file__).parents[1] / "vectors" / "assignors_0_8.json"
CASES = json.loads(VECTORS.read_text(encoding="utf-8"))["cases"]

#: What of a recorded case is asked; the rest is its name and its answers.
ASKED = ("members", "topics", "assignor", "strategy")


def case(assignor: str | None = "range", *, partitions: int = 4, members: int = 2, **more: Any) -> dict[str, Any]:
    """A group of c1, c2, … with one stream each on topic t."""
    people = [{"consumer_id": f"c{each}", "topics": {"t": 1}} for each in range(1, members + 1)]
    rule = {} if assignor is None else {"assignor": assignor}
    return {**rule, "members": people, "topics": {"t": partitions}, **more}


UNANSWERED = "rebalance-lab: {} could not be answered; stdout says why\n"


class Answers:
    """`ask(line, ...)`: what `whatif assign` says of lines on its standard input."""

    def __init__(self, command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._command = command
        self._monkeypatch = monkeypatch

    def __call__(self, *lines: object) -> Ended:
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        self._monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(texts))))
        return self._command("whatif", "assign")

    def dealt(self, line: dict[str, Any]) -> Any:
        ended = self(line)
        assert (ended.code, ended.err) == (0, "")
        return ended.json

    def refused(self, line: object) -> str:
        ended = self(line)
        assert (ended.code, ended.err) == (2, UNANSWERED.format("of 1 line, 1"))
        (name,) = ended.json
        assert name == "error"
        return str(ended.json["error"])


@pytest.fixture
def ask(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Answers:
    return Answers(command, monkeypatch)


def test_every_recorded_case_is_answered_as_it_was_recorded(ask: Answers) -> None:
    ended = ask(*({name: value for name, value in each.items() if name in ASKED} for each in CASES))
    assert (ended.code, ended.err) == (2, UNANSWERED.format(f"of {len(CASES)} lines, 3"))  # which Kafka refuses
    answers = [json.loads(line) for line in ended.out.splitlines()]
    for recorded, answer in zip(CASES, answers, strict=True):
        assert ("error" in answer) is ("errors" in recorded)
        assert answer.get("assignment", []) == recorded["assignment"]
        assert answer.get("inconsistent") == recorded.get("inconsistent")


@pytest.mark.parametrize(
    ("assignor", "owners", "balance"),
    [
        ("range", {"c1-0": [0, 1], "c2-0": [2], "c3-0": [3]}, 1),
        ("ceil", {"c1-0": [0, 1], "c2-0": [2, 3]}, 2),
        ("roundrobin", {"c1-0": [0, 3], "c2-0": [1], "c3-0": [2]}, 1),
    ],
)
def test_each_rule_and_its_balance(ask: Answers, assignor: str, owners: dict[str, list[int]], balance: int) -> None:
    answer = ask.dealt(case(assignor, members=3))
    found: dict[str, list[int]] = {}
    for (_, partition), thread in answer["assignment"]:
        found.setdefault(thread, []).append(partition)
    assert found == owners
    assert answer["balance"] == {"threads": balance, "members": balance}
    assert set(answer) == {"assignment", "balance"}


def test_balance_of_threads_and_of_members_differ(ask: Answers) -> None:
    members = [{"consumer_id": "c1", "topics": {"t": 3}}, {"consumer_id": "c2", "topics": {"t": 1}}]
    assert ask.dealt(case() | {"members": members})["balance"] == {
        "threads": 0,
        "members": 2,
    }


def test_a_member_without_topics_counts_in_the_balance(ask: Answers) -> None:
    members = [{"consumer_id": "c1", "topics": {"t": 1}}, {"consumer_id": "c2", "topics": {}}]
    assert ask.dealt(case() | {"members": members})["balance"] == {"threads": 0, "members": 4}


def test_movement_counts_what_changed_hands(ask: Answers) -> None:
    members = [{"consumer_id": "c1", "topics": {"t": 2}}, {"consumer_id": "c2", "topics": {"t": 1}}]
    previous = [
        [["t", 0], "c1-0"],  # stays
        [["t", 1], "c1-0"],  # to c1-1: another thread, the same member
        [["t", 2], "c3-0"],  # to c2-0
        [["gone", 0], "c3-0"],  # not dealt any more
    ]
    answer = ask.dealt(case() | {"members": members, "topics": {"t": 4}, "previous": previous})
    assert answer["assignment"] == [[["t", 0], "c1-0"], [["t", 1], "c1-0"], [["t", 2], "c1-1"], [["t", 3], "c2-0"]]
    assert answer["movement"] == {"threads": 1, "members": 1}
    previous[1][1] = "c1-1"
    answer = ask.dealt(case() | {"members": members, "topics": {"t": 4}, "previous": previous})
    assert answer["movement"] == {"threads": 2, "members": 1}


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "ceil"])
def test_nothing_moves_against_itself(ask: Answers, assignor: str) -> None:
    before = ask.dealt(case(assignor))["assignment"]
    assert ask.dealt(case(assignor, previous=before))["movement"] == {"threads": 0, "members": 0}


def test_members_that_disagree_are_told_with_what_nobody_owns(ask: Answers) -> None:
    members = [{"consumer_id": "c1", "topics": {"Aa": 1, "BB": 1}}, {"consumer_id": "c2", "topics": {"BB": 1, "Aa": 1}}]
    line = {
        "assignor": "roundrobin",
        "members": members,
        "topics": {"Aa": 1, "BB": 1},
        "previous": [[["BB", 0], "c1-0"]],
    }
    assert ask.dealt(line) == {
        "assignment": [[["BB", 0], "c1-0"], [["BB", 0], "c2-0"]],
        "balance": {"threads": 0, "members": 0},
        "movement": {"threads": 1, "members": 1},
        "inconsistent": True,
        "unowned": [["Aa", 0]],
    }


def test_the_refusal_of_round_robin_is_kafkas(ask: Answers) -> None:
    members = [{"consumer_id": "c1", "topics": {"a": 1}}, {"consumer_id": "c2", "topics": {"b": 1}}]
    text = ask.refused({"assignor": "roundrobin", "members": members, "topics": {"a": 1, "b": 1}})
    assert text.startswith("requirement failed: Round-robin assignment is allowed only if all consumers")
    assert text.endswith("Topic a has the following available consumer streams: Set(c1-0)\n")


def a_member(**fields: Any) -> dict[str, Any]:
    return case(members=0) | {"members": [{"consumer_id": "c1", "topics": {"t": 1}, **fields}]}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "the line is not JSON: Input data was truncated"),
        (b"fish", "the line is not JSON: "),
        (b"\xff\xfe", "JSON is malformed"),
        (b'{"members": [{"consumer_id": "\xff"', "the line is not JSON: 'utf-8' codec"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "unknown field `x`"),
        ([], "Expected `object`, got `array`"),
        ({}, "missing required field `members`"),
        (case(members=0), "Expected `array` of length >= 1"),
        (case(None), "no rule is named; set `assignor` to one of: ceil, range, roundrobin"),
        (case("sticky"), "no assignor is named 'sticky'; known are ceil, range, roundrobin; name one as `assignor`"),
        (case("range", strategy="ceil"), "`assignor` names range and `strategy` ceil; write only one of them"),
        (case(partitions=-1), "Expected `int` >= 0"),
        (case(partitions=10**30), "Expected `int` <= 1000000"),
        (case(previous=[["t", "c1-0"]]), "at `$.previous[0][0]`"),
        (a_member(consumer_id=""), "Expected `str` of length >= 1"),
        (a_member(topics={"t": 0}), "Expected `int` >= 1"),
        (a_member(topics={"t": "two"}), "Expected `int`, got `str`"),
        (a_member(pattern="grey_list"), "Invalid enum value 'grey_list'"),
        (a_member(pattern="white_list", topics={"[": 1}), "[ is an invalid regex."),
        (a_member(pattern="white_list", topics={"a{99999999999}": 1}), "a{99999999999} is an invalid regex."),
        (a_member(pattern="black_list", topics={"a": 1, "b": 1}), "a black_list needs one regex in `topics`, not 2"),
        (case() | {"members": case()["members"] * 2}, "consumer_id c1 occurs 2 times in `members`"),
        (
            case() | {"topics": {"t": 600_000, "u": 600_000}},
            "has 1200000 partitions; the limit is 1000000",
        ),
        (a_member(topics={"t": 600_000, "u": 600_000}), "has 1200000 threads over all topics; the limit is 1000000"),
        (case(partitions=1_000_000, members=101), "101000000 members times partitions; the limit is 100000000"),
        (a_member(pattern="white_list", topics={"x": 1}) | {"assignor": "roundrobin"}, "subscribes to no topic"),
        (case(previos=[]), "Object contains unknown field `previos`"),
        (a_member(stream=2), "Object contains unknown field `stream` - at `$.members[0]`"),
        (
            b'{"assignor": "range", "members": [{"consumer_id": "c1", "topics": {"t": 1}}], '
            b'"topics": {"t": 1, "u": 2, "t": 3}}',
            "field t occurs 2 times in one object; each may occur only once",
        ),
        (
            b'{"assignor": "range", "members": [{"consumer_id": "c1", "topics": {"t": 1}}], '
            b'"topics": {"t": 1}, "topics": {"t": 2}}',
            "field topics occurs 2 times",
        ),
        (
            a_member(pattern="white_list", topics={"(a|a)*[bc]": 1}) | {"topics": {"a" * 70: 1}},
            "the topic filter (a|a)*[bc] was not evaluated within 1 s (at topic aaaa",
        ),
        (a_member(pattern="white_list", topics={"(a{300}){300}": 1}), "repetitions of more than 50000 characters"),
    ],
)
def test_what_cannot_be_is_told_in_the_line_and_the_rest_goes_on(ask: Answers, line: object, says: str) -> None:
    assert says in ask.refused(line)
    ended = ask(case(), line, case())
    first, second, third = (json.loads(each) for each in ended.out.splitlines())
    assert (ended.code, ended.err) == (2, UNANSWERED.format("of 3 lines, 1"))
    assert set(second) == {"error"}
    assert first == third == ask.dealt(case())


def test_a_filter_with_nested_repetitions_that_can_be_decided_is(ask: Answers) -> None:
    answer = ask.dealt(a_member(pattern="white_list", topics={"(a+)+b": 1}) | {"topics": {"a" * 37: 1, "aab": 1}})
    assert answer["assignment"] == [[["aab", 0], "c1-0"]]


def test_blank_lines_are_passed_over(ask: Answers) -> None:
    ended = ask(b"", case(), b"  ", case(), b"\r")
    assert (ended.code, len(ended.out.splitlines())) == (0, 2)
    assert ask() == Ended(0, "", "")


def test_files_are_read_one_after_another(command: CommandLine, tmp_path) -> None:
    for name, partitions in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text(json.dumps(case(partitions=partitions)) + "\n")
    ended = command("whatif", "assign", tmp_path / "a", tmp_path / "b", tmp_path / "a")
    assert ended.code == 0
    assert [len(json.loads(line)["assignment"]) for line in ended.out.splitlines()] == [1, 2, 1]


def test_a_file_that_is_not_there_is_told_before_anything_is_answered(command: CommandLine, tmp_path) -> None:
    (tmp_path / "a").write_text(json.dumps(case()))
    line = command.refused("whatif", "assign", tmp_path / "a", tmp_path / "b")
    assert "does not exist" in line


@pytest.mark.parametrize(("arguments", "says"), [([], "Missing command"), (["sing"], "No such command 'sing'")])
def test_wrong_usage(command: CommandLine, arguments: list[str], says: str) -> None:
    assert says in command.refused("whatif", *arguments)


def test_help_shows_a_line_that_works(command: CommandLine, ask: Answers) -> None:
    text = " ".join(command("whatif", "assign", "--help").out.split())
    line = text.partition("In: ")[2].partition("} The assignor")[0] + "}"
    assert len(ask.dealt(json.loads(line))["assignment"]) == 5


def test_as_a_process_without_standard_input_and_with_a_reader_that_leaves() -> None:
    command = [*COMMAND, "whatif", "assign"]
    closed = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *command], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert (closed.returncode, closed.stdout) == (2, "")
    assert closed.stderr == "rebalance-lab: there is no standard input; name a FILE of JSON lines\n"
    lines = (json.dumps(case()) + "\n") * 5000
    left = subprocess.run(
        ["sh", "-c", '"$@" | head -n 1', "sh", *command],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert (left.returncode, len(left.stdout.splitlines()), left.stderr) == (0, 1, "")
