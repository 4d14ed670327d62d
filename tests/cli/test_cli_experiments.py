"""`scenarios`, `run`, `sweep`, `replay`: what they answer, and with which exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from cli_tools import CommandLine

from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.checks import CHECKS
from rebalance_lab.history.files import digest, read_events, read_trial, seal

QUICK = ["--set", "members=2", "--set", "partitions=2"]


def test_scenarios_are_listed(command: CommandLine) -> None:
    ended = command("scenarios")
    assert ended.code == 0
    assert "zombie" in ended.out
    assert "Z10" in ended.out


def test_scenarios_as_json(command: CommandLine) -> None:
    shape = command("scenarios", "--json").json
    assert {"crash", "leave", "zombie"} <= set(shape)
    assert "Z10" in shape["zombie"]["claims"]
    assert shape["zombie"]["parameters"]["pause_ms"] == {
        "default": 5000,
        "unit": "ms",
        "help": "how long the first member is paused",
    }


def test_one_scenario_shows_what_happens_and_its_settings(command: CommandLine) -> None:
    out = command("scenarios", "crash").out
    assert "Three members share a topic. The first is killed (kill -9)." in " ".join(out.split())
    assert "how long the runner waits until all nodes are at rest" in out
    assert "rebalance-lab scenarios crash --plants" in out
    assert "ignore-claim-conflict" not in out


def test_planted_bugs_are_listed_apart(command: CommandLine) -> None:
    assert "ignore-claim-conflict" in command("scenarios", "crash", "--plants").out
    assert "ignore-claim-conflict" in command("scenarios", "crash", "--json").json["crash"]["plants"]
    assert command.refused("scenarios", "--plants") == (
        "--plants: name a scenario, because each has planted bugs of its own"
    )


def test_run_as_json(command: CommandLine, tmp_path) -> None:
    ended = command("run", "zombie", "--seed", 7, *QUICK, "--store", tmp_path, "--json")
    shape = ended.json
    assert ended.code == 0
    assert set(shape) == {"trial", "scenario", "world", "seed", "history_sha256", "status", "checks", "measures"}
    assert (shape["scenario"], shape["world"], shape["seed"], shape["status"]) == (
        "zombie",
        "simulated",
        7,
        "as expected",
    )
    assert len(shape["history_sha256"]) == 64
    belief = shape["checks"]["belief_overlap"]
    assert set(belief) == {"outcome", "expected", "why", "witness"}
    assert (belief["outcome"], belief["expected"]) == ("violated", "violated")
    assert all(actor.startswith("m") and n >= 0 for actor, n in belief["witness"])
    assert shape["checks"]["registry_overlap"]["outcome"] == "clean"
    assert shape["measures"]["belief_overlap_longest_us"] > 1_000_000
    assert json.loads((tmp_path / shape["trial"] / "trial.json").read_text())["seed"] == 7
    assert command("run", "zombie", "--seed", 7, *QUICK, "--store", tmp_path, "--json").json == shape


def test_run_ends_with_its_findings_and_the_replay_command(command: CommandLine, tmp_path) -> None:
    ended = command("run", "zombie", *QUICK, "--control", "--store", tmp_path)
    assert ended.code == 0
    assert "zombie · simulated · described · seed 1 · control" in ended.out
    (clean,) = [line for line in ended.out.splitlines() if line.startswith("clean ")]
    assert "belief_overlap" in clean
    (again,) = [line for line in ended.out.splitlines() if line.startswith("again ")]
    assert again.split()[1:3] == ["rebalance-lab", "replay"]
    assert command("replay", again.split()[3]).code == 0


def test_findings_say_what_was_expected_and_name_members_by_actor(command: CommandLine, tmp_path) -> None:
    lines = command("run", "zombie", "--store", tmp_path).out.splitlines()
    assert lines[1] == "Found, as expected"
    assert lines[2].startswith("  belief_overlap: violated, longest ")
    assert lines[3].startswith("    m1 and m2 both believed for ")
    either = lines.index("Found; the scenario allows clean or violated")
    assert lines[either + 1] == "  churn: violated"
    surprise = command("run", "zombie", "--set", "plant=never-claim-last", "--store", tmp_path).out.splitlines()
    assert surprise[1] == "Not as expected"
    odd = surprise[2 : surprise.index("Found, as expected")]
    assert [line.split(",")[0] for line in odd if not line.startswith("    ")] == [
        "  contradiction: violated",
        "  omission: violated",
        "  unowned_window: violated",
    ]
    assert all(", expected clean" in line for line in odd if not line.startswith("    "))


@pytest.mark.parametrize("settings", [[], ["--control"], ["--set", "plant=pause-that-does-not-bite"]])
def test_run_fits_80_columns_but_for_what_is_copied(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = command("run", "zombie", *settings, "--store", tmp_path).out.splitlines()
    assert all(len(line) <= 80 or line.startswith(("trial ", "again ")) for line in lines)
    assert any(line.startswith("n/a      broker_change_noticed") for line in lines)


def test_a_choice_is_named_with_what_it_may_be(command: CommandLine) -> None:
    out = command("scenarios", "deadlock").out
    assert "release-before-retry" in out


def test_replay_refuses_a_history_that_was_changed(command: CommandLine, tmp_path) -> None:
    trial = command("run", "zombie", *QUICK, "--store", tmp_path, "--json").json["trial"]
    events = tmp_path / trial / "events.jsonl"
    events.write_bytes(b"".join(events.read_bytes().splitlines(keepends=True)[:-5]))
    assert "was changed after it was sealed" in command.refused("replay", trial, "--store", tmp_path)


def test_the_world_is_not_told_on_stderr(command: CommandLine, tmp_path) -> None:
    assert command("run", "crash", *QUICK, "--store", tmp_path).err == ""
    assert "trial ended" in command("--verbose", "run", "crash", *QUICK, "--store", tmp_path).err


@pytest.mark.parametrize(
    ("plant", "code", "status"),
    [("never-claim-last", 1, "surprise"), ("pause-that-does-not-bite", 2, "unknown")],
)
def test_exit_codes_of_run(command: CommandLine, tmp_path, plant: str, code: int, status: str) -> None:
    ended = command("run", "zombie", "--set", f"plant={plant}", "--store", tmp_path, "--json")
    assert (ended.code, ended.json["status"]) == (code, status)


@pytest.mark.parametrize(
    ("scenario", "plant", "in_vain"),
    [
        ("broker-crash", "forgets-last-batch", False),
        ("broker-crash", "elects-by-isr", True),  # there is one broker
        ("broker-crash", "pause-that-overstays", True),  # nothing is paused
        ("zombie", "pause-that-overstays", False),
    ],
)
def test_a_planted_bug_that_changes_nothing_is_named(
    command: CommandLine, tmp_path, scenario: str, plant: str, in_vain: bool
) -> None:
    said = f"rebalance-lab: planted bug {plant} changed nothing in this trial: without it the history is the same\n"
    assert command("run", scenario, "--set", f"plant={plant}", "--store", tmp_path).err == (said if in_vain else "")


def test_replay_gives_the_same_history_and_says_so(command: CommandLine, tmp_path) -> None:
    trial = command("run", "zombie", *QUICK, "--store", tmp_path, "--json").json
    ended = command("replay", trial["trial"], "--store", tmp_path)
    assert ended.code == 0
    assert "the same history, event for event" in ended.out
    shape = command("replay", trial["trial"], "--store", tmp_path, "--json").json
    assert (shape["replay_of"], shape["same_history"]) == (trial["trial"], True)
    assert shape["history_sha256"] == trial["history_sha256"]


def test_replay_tells_the_first_event_that_differs(command: CommandLine, tmp_path) -> None:
    trial = command("run", "zombie", *QUICK, "--store", tmp_path, "--json").json["trial"]
    events = tmp_path / trial / "events.jsonl"
    lines = events.read_text().splitlines(keepends=True)
    changed = json.loads(lines[3]) | {"at_us": json.loads(lines[3])["at_us"] + 1}
    events.write_text("".join([*lines[:3], json.dumps(changed) + "\n", *lines[4:]]))
    sealed = digest(read_events(events))  # as another version of the lab would have recorded it
    seal(tmp_path / trial, msgspec.structs.replace(read_trial(tmp_path / trial), history_sha256=sealed))
    ended = command("replay", trial, "--store", tmp_path)
    assert ended.code == 2
    assert "the history differs from the stored one: event 4, " in ended.err
    assert "the same history" not in ended.out


def test_replay_of_a_live_trial_says_that_the_schedule_may_differ(command: CommandLine, tmp_path) -> None:
    settings = ["--set", "members=1", "--set", "pause_ms=50", "--set", "rebalance_backoff_ms=50"]
    live = command("run", "zombie", "--control", "--world", "processes", *settings, "--store", tmp_path, "--json")
    assert (live.code, live.json["world"]) == (0, "processes")
    ended = command("replay", live.json["trial"], "--store", tmp_path, "--json")
    assert ended.code == 0
    assert "the schedule may differ" in ended.err
    assert ended.json["replay_of"] == live.json["trial"]
    assert ended.json["same_history"] is None
    assert ended.json["trial"] != live.json["trial"]
    assert (tmp_path / ended.json["trial"] / "trial.json").is_file()


def test_sweep_runs_every_combination_and_seed(command: CommandLine, tmp_path) -> None:
    ended = command("sweep", "zombie", "--set", "pause_ms=5000,500", "--seeds", 3, *QUICK, "--store", tmp_path)
    assert ended.code == 0
    assert len(list(tmp_path.glob("*/trial.json"))) == 6
    _, long, short = ended.out.split("pause_ms=")
    rows = {row[0]: row[1:] for row in cells(long)}
    assert long.startswith("5000, members=2, ") and rows["belief_overlap"][:4] == ["3", "0", "3", "0"]
    assert float(rows["belief_overlap"][4].removesuffix(" s")) > 1
    assert short.startswith("500, members=2, ") and "belief_overlap" not in {row[0] for row in cells(short)}
    assert "belief_overlap" in after(short, "clean    ")
    assert "status   6 as expected" in ended.out


def cells(text: str) -> list[list[str]]:
    """The rows of a table that was printed."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def after(text: str, word: str) -> list[str]:
    """The names in the list that begins with `word`."""
    return text[text.index(word) :].partition("status")[0].removeprefix(word).replace("\n", " ").split(", ")


def test_a_sweep_is_legible_on_80_columns(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    settings = ("--set", "pause_ms=5000,500", "--set", "rebalance_backoff_ms=250,500")
    ended = command("sweep", "zombie", *settings, "--seeds", 1, *QUICK, "--store", tmp_path)
    lines = ended.out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert [line.partition(", members")[0] for line in lines if line.startswith("pause_ms=")] == [
        f"pause_ms={pause}, rebalance_backoff_ms={backoff}" for pause in (5000, 500) for backoff in (250, 500)
    ]
    named = [row[0] for row in cells(ended.out)]
    assert "zombie_overlap" in named and set(named) <= set(CHECKS)
    heads = [line for line in lines if "check" in line]
    assert len(heads) == 4 and all("violated" in line and "longest" in line for line in heads)


def test_sweep_as_json_gives_a_line_a_trial(command: CommandLine, tmp_path) -> None:
    ended = command("sweep", "zombie", "--seeds", 2, "--set", "plant=never-claim-last", "--store", tmp_path, "--json")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 1
    assert sorted(line["seed"] for line in lines) == [1, 2]
    assert {line["status"] for line in lines} == {"surprise"}


def test_sweep_names_every_surprise_with_its_seed_and_replay_command(command: CommandLine, tmp_path) -> None:
    ended = command("sweep", "zombie", "--seeds", 11, "--set", "plant=never-claim-last", "--store", tmp_path)
    assert ended.code == 1
    named = [line for line in ended.out.splitlines() if line.startswith("surprise: ")]
    found = "(contradiction violated, omission violated, unowned_window violated)"
    assert [line.split(": ")[1] for line in named] == [
        f"seed {n}, plant=never-claim-last {found}" for n in range(1, 12)
    ]
    for line in (named[0], named[-1]):
        assert command(*line.split(": ")[2].split()[1:]).code == 1


def test_sweep_as_json_names_surprises_on_stderr(command: CommandLine, tmp_path) -> None:
    ended = command("sweep", "zombie", "--seeds", 1, "--set", "plant=never-claim-last", "--store", tmp_path, "--json")
    assert len(ended.out.splitlines()) == 1
    assert ended.err.startswith("surprise: seed 1, plant=never-claim-last (contradiction violated, ")


@pytest.mark.parametrize("store", ["trials", "hdfs://namenode:8020/trials"])
def test_spark_gets_the_settings_of_a_sweep(command: CommandLine, tmp_path, monkeypatch, store: str) -> None:
    monkeypatch.chdir(tmp_path)
    started = []

    def start(*, settings: Mapping[str, str], **_: object) -> None:
        started.append(settings)
        raise SparkStartError("not for a test")

    monkeypatch.setattr("rebalance_lab.analysis.session.start", start)
    spark = ["--master", "local[2]", "--conf", "spark.executor.memory=600m"]
    assert "not for a test" in command.refused("sweep", "zombie", *spark, "--store", store)
    assert started == [{"spark.executor.memory": "600m"}]


def test_sweep_lists_some_of_the_unknown(command: CommandLine, tmp_path) -> None:
    plant = "plant=pause-that-does-not-bite"
    ended = command("sweep", "zombie", "--seeds", 7, "--set", plant, "--store", tmp_path)
    assert ended.code == 2
    assert ended.out.count(f"{plant}: rebalance-lab replay ") == 5
    assert "… and 2 more that are unknown" in ended.out


def test_a_trial_that_fails_is_named_and_the_others_go_on(command: CommandLine, tmp_path) -> None:
    slow = ("--set", "fetcher_stop_ms=0,9000000")  # longer than a clean leave may take
    sweep = ("sweep", "leave", *QUICK, *slow, "--seeds", 2, "--store", tmp_path)
    ended = command(*sweep)
    assert ended.code == 2
    assert len(list(tmp_path.glob("*/trial.json"))) == 4
    assert "2 failed" in next(line for line in ended.out.splitlines() if line.startswith("status "))
    failed = [line for line in ended.out.splitlines() if line.startswith("failed: ")]
    assert [line.split(": ")[1].split(", ")[0] for line in failed] == ["seed 1", "seed 2"]
    again = command(*failed[1][failed[1].index(": rebalance-lab ") :].split()[2:])
    assert (again.code, again.out) == (2, "")
    replayed = command("replay", again.err.split()[-1])
    assert replayed.code == 2
    assert "replay   the same history, event for event" in replayed.out
    assert "the runner gave up, as before: the clean leave of m" in replayed.err
    lines = [json.loads(line) for line in command(*sweep, "--json").out.splitlines()]
    assert sorted(line["status"] for line in lines) == ["as expected", "as expected", "failed", "failed"]
    assert all(line["why"].startswith("GaveUp: ") for line in lines if line["status"] == "failed")
    assert "fetcher_stop_ms=9000000\nno trial was completed\n" in ended.out


def test_a_surprise_can_be_made_smaller(command: CommandLine, tmp_path) -> None:
    ended = command("sweep", "zombie", "--seeds", 2, "--set", "plant=never-claim-last", "--store", tmp_path)
    (line,) = [line for line in ended.out.splitlines() if line.startswith("to make it smaller: ")]
    shrunk = command(*line.split(": ")[1].split()[1:], "--runs", 2, "--json").json
    assert shrunk["shrunk_from"].startswith("zombie-simulated-described-s1-")
    assert shrunk["surprise"] is True
