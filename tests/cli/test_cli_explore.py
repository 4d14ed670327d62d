"""`explore`: a counterexample as a story, in 80 columns and in JSON, and how the command ends."""

from __future__ import annotations

import pytest
from cli_tools import CommandLine

from rebalance_lab.explore.plants import RuleBug, planted

HIGH_WATERMARK = """\
high-watermark: 3 replicas, 1 record, 2 leader epochs. 1,750 states and 4,744
transitions searched, until the search ended.

committed (no committed record is lost): violated after 7 steps.

    Broker 1 leads in epoch 0. All 3 replicas are empty and in sync.
 1. A producer writes a to broker 1.
      broker 1 leads in epoch 0     [0:a]                high watermark 0
 2. Broker 2 fetches offset 0 from broker 1, and gets 0:a.
      broker 2 follows 1 in epoch 0 [0:a]                high watermark 0
 3. Broker 3 fetches offset 0 from broker 1, and gets 0:a.
      broker 3 follows 1 in epoch 0 [0:a]                high watermark 0
 4. Broker 2 fetches offset 1 from broker 1; the answer is lost.
 5. Broker 3 fetches offset 1 from broker 1; the answer is lost. Broker 1
    commits up to offset 1.
      broker 1 leads in epoch 0     [0:a]                high watermark 1
 6. The controller gives the leadership to broker 2, in epoch 1.
      ZooKeeper: leader 2, epoch 1, in sync 1, 2, 3
 7. Broker 3 hears that broker 2 leads in epoch 1, and follows it. It truncates
    its log to its high watermark, 0.
      broker 3 follows 2 in epoch 1 []                   high watermark 0
So: 0:a was committed, and broker 3, which is in sync according to ZooKeeper,
    does not have it. If it leads, the record is lost.
"""


def test_a_lost_record_is_told_as_a_story(command: CommandLine) -> None:
    ended = command("explore", "--rules", "high-watermark", "--records", "1", "--epochs", "2")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == HIGH_WATERMARK


def test_rules_that_hold(command: CommandLine) -> None:
    ended = command("explore", "--rules", "kip-320", "--records", "1", "--epochs", "2", "--property", "weak-isr")
    assert (ended.code, ended.err) == (0, "")
    assert "): holds in all of them." in " ".join(ended.out.split())


@pytest.mark.parametrize(
    ("rules", "more"), [("high-watermark", ("--epochs", "2", "--crashes", "1", "--late-answers")), ("kip-101", ())]
)
def test_all_that_it_says_is_in_the_json(command: CommandLine, rules: str, more: tuple[str, ...]) -> None:
    bounds = ("--rules", rules, "--records", "1", *more)
    wanted = ("--property", "committed", "--property", "weak-isr")
    told = command("explore", *bounds, *wanted).out
    answer = command("explore", *bounds, *wanted, "--json").json
    assert max(map(len, told.splitlines())) <= 80
    assert (answer["rules"], answer["bounds"]["records"], answer["ending"]) == (rules, 1, "found")
    words = " ".join(told.split())
    for story in answer["counterexamples"].values():
        for step in story["steps"]:
            assert " ".join(step["step"].split()) in words
            assert all(line in told for line in step["state"])
        assert story["end"] in words


def test_it_ends_with_1_if_a_promise_is_broken_that_the_rules_keep(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = ("--records", "1", "--epochs", "2", "--forget-followers")
    monkeypatch.setattr("rebalance_lab.cli.explore.planted", lambda _: planted(RuleBug.UNFENCED_ISR))
    assert command("explore", "--rules", "kip-320", *bounds).code == 1


def test_it_ends_with_1_if_a_planted_bug_is_not_found(command: CommandLine) -> None:
    bounds = ("--rules", "kip-320", "--records", "1", "--epochs", "1")
    assert command("explore", *bounds, "--plant", "joins-early").code == 1
    assert command("explore", *bounds, "--epochs", "2", "--plant", "elects-out-of-sync").code == 0


def test_too_many_states_are_an_error(command: CommandLine) -> None:
    ended = command("explore", "--rules", "kip-320", "--most-states", "1000")
    assert ended.code == 2
    assert ended.err == ("rebalance-lab: there are more than 1,000 states; lower the bounds, or raise --most-states\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rules", "kip-999"), "'kip-999' does not exist; there are: 'high-watermark', 'kip-101', "),
        (("--rules", "kip-101", "--records", "0"), "must be 1 or more"),
    ],
)
def test_bad_input_is_one_line(command: CommandLine, arguments: tuple[str, ...], says: str) -> None:
    assert says in command.refused("explore", *arguments)


def test_its_help_names_the_bugs_that_it_plants(command: CommandLine) -> None:
    shown = command("explore", "--help").out
    assert [bug for bug in RuleBug if bug not in shown] == []
