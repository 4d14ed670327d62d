"""`whatif place`: recorded placements through the command, what is drawn, and lines that are wrong."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from cli_tools import CommandLine, Ended

from rebalance_lab.cli.placing import Topic

VECTORS = Path(__file__).parents[1] / "vectors"
CASES = [
    case
    for version in ("0_8", "3_9")
    for case in json.loads((VECTORS / f"placement_{version}.json").read_text(encoding="utf-8"))["cases"]
]

TOPIC: dict[str, Any] = {"brokers": [1, 2, 3], "partitions": 2, "replication": 2}


@pytest.fixture
def ask(command: CommandLine, monkeypatch: pytest.MonkeyPatch):
    def asked(*lines: object) -> Ended:
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(texts))))
        return command("whatif", "place")

    return asked


def test_every_recorded_case_is_answered_as_it_was_recorded(ask) -> None:
    ended = ask(*({name: value for name, value in each.items() if name in Topic.__struct_fields__} for each in CASES))
    told = f"of {len(CASES)} lines, 7 could not be answered; stdout says why"  # Kafka refuses these
    assert (ended.code, ended.err) == (2, f"rebalance-lab: {told}\n")
    answers = [json.loads(line) for line in ended.out.splitlines()]
    for recorded, answer in zip(CASES, answers, strict=True):
        assert answer.get("assignment") == recorded["assignment"], recorded["name"]
        assert ("error" in answer) is ("error" in recorded)
    assert sum("error" in answer for answer in answers) == 7


def test_leaders_and_replicas_are_counted(ask) -> None:
    ended = ask(TOPIC | {"fixed_start_index": 0})
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == {
        "assignment": {"0": [1, 2], "1": [2, 3]},
        "fixed_start_index": 0,
        "next_replica_shift": 0,
        "leaders": {"1": 1, "2": 1, "3": 0},
        "replicas": {"1": 1, "2": 2, "3": 1},
    }


def test_what_is_drawn_is_named_and_can_be_drawn_and_given_again(ask) -> None:
    drawn = ask(TOPIC | {"seed": 4}).json
    assert ask(TOPIC | {"seed": 4}).json == drawn
    given = {name: drawn[name] for name in ("fixed_start_index", "next_replica_shift")}
    assert ask(TOPIC | given).json == drawn
    starts = {json.dumps(ask(TOPIC | {"seed": seed}).json["assignment"]) for seed in range(40)}
    assert len(starts) == 6  # three first leaders, and two gaps to the first follower


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "not JSON"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "unknown field `x`"),
        ({"brokers": [1]}, "missing required field `partitions`"),
        (TOPIC | {"brokers": []}, "length >= 1"),
        (TOPIC | {"brokers": [1, 1]}, "broker 1 occurs more than once"),
        (TOPIC | {"brokers": [-1, 1]}, ">= 0"),
        (TOPIC | {"racks": ["a"]}, "`racks` has 1 entries for 3 brokers"),
        (TOPIC | {"racks": ["a", None, "b"]}, "Not all brokers have rack information"),
        (TOPIC | {"replication": 4}, "Replication factor: 4 larger than available brokers: 3."),
        (TOPIC | {"partitions": 0}, "Number of partitions must be larger than 0."),
        (TOPIC | {"partitions": 1_000_001}, "<= 1000000"),
        (TOPIC | {"partitions": 1_000_000, "brokers": list(range(99)), "replication": 99}, "the limit is 20000000"),
    ],
)
def test_what_cannot_be_is_reported_in_the_line_and_the_rest_goes_on(ask, line: object, says: str) -> None:
    ended = ask(line, TOPIC)
    assert (ended.code, ended.err) == (2, "rebalance-lab: of 2 lines, 1 could not be answered; stdout says why\n")
    refused, placed = (json.loads(each) for each in ended.out.splitlines())
    assert says in refused["error"]
    assert "assignment" in placed


def test_the_example_of_the_help_is_true(command: CommandLine, ask) -> None:
    shown = " ".join(command("whatif", "place", "--help").out.split())
    example = json.loads(shown.split("In: ", 1)[1].split('"racks"', 1)[0])
    answer = json.loads(shown.split("Out: ", 1)[1].split("The first replica", 1)[0])
    assert ask(example).json == answer
