"""`history show` and `history compare`: what they print, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import msgspec
import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine

from rebalance_lab.history.files import History, digest, load, seal
from rebalance_lab.trials import api

#: Lines of a piped answer that are longer than a terminal of this width are rare.
WIDTH = 100

QUICK = {"members": "2", "partitions": "2"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds of a small zombie, and the first again with one more partition."""
    folder = tmp_path_factory.mktemp("store")
    for seed, settings in ((1, QUICK), (2, QUICK), (1, QUICK | {"partitions": "3"})):
        api.run(api.make_plan("zombie", seed=seed, settings=settings), folder)
    return folder


@pytest.fixture(scope="module")
def trial(store: Path) -> Path:
    return next(each for each in sorted(store.iterdir()) if "-s1-" in each.name and load(each).trial.seed == 1)


@pytest.fixture(scope="module")
def history(trial: Path) -> History:
    return load(trial)


def rows(out: str) -> list[str]:
    return [line for line in out.splitlines() if not line.startswith("#")]


def test_a_whole_trial_is_a_line_an_event(command: CommandLine, trial: Path, history: History) -> None:
    ended = command("history", "show", trial)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[:2] == [f"# {history.trial.id}", "# zombie · simulated · described · seed 1"]
    assert lines[-1] == f"# {len(history.events)} of {len(history.events)} events"
    assert len(lines) == len(history.events) + 3
    assert "\x1b" not in ended.out
    ids = [f"{event.actor}#{event.n}" for event in history.events]
    assert [line.split()[1 if line.startswith(" ") else 2] for line in lines[2:-1]] == ids
    wordy = ("member-started", "decided", "observed", "multi_read")  # settings and lists: as long as they are
    plain = [line for line in lines if not any(word in line for word in wordy)]
    assert sum(len(line) > WIDTH for line in plain) < len(plain) / 50


def test_a_trial_is_found_by_its_name_in_the_store(command: CommandLine, trial: Path, store: Path) -> None:
    assert command("history", "show", trial.name, "--store", store) == command("history", "show", trial)


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        (["--layer", "belief,fault"], lambda event, _: event.layer in {"belief", "fault"}),
        (["--layer", "belief", "--layer", "fault"], lambda event, _: event.layer in {"belief", "fault"}),
        (["--actor", "m1,runner"], lambda event, _: event.actor in {"m1", "runner"}),
        (["--kind", "owned,disowned", "--actor", "m2"], lambda each, _: (each.layer, each.actor) == ("belief", "m2")),
        (["--from-ms", "300.5", "--to-ms", "600"], lambda event, since_us: 300_500 <= since_us <= 600_000),
    ],
)  # fmt: skip
def test_filters_must_all_hold(command: CommandLine, trial: Path, history: History, options, passes) -> None:
    origin_us = history.events[0].at_us
    expected = [[each.actor, each.n] for each in history.events if passes(each, each.at_us - origin_us)]
    assert expected
    out = command("history", "show", trial, *options, "--json").out
    assert [[each["actor"], each["n"]] for each in map(json.loads, out.splitlines())] == expected


def test_json_is_the_events_as_they_were_recorded(command: CommandLine, trial: Path) -> None:
    assert command("history", "show", trial, "--json").out == (trial / "events.jsonl").read_text()


def test_a_partition_is_shown_with_its_paths_phases_and_faults(command: CommandLine, trial: Path) -> None:
    lines = rows(command("history", "show", trial, "--partition", "t1/0").out)
    assert {"belief", "registry", "effect", "op", "fault"} == {line[3:].split()[2] for line in lines}
    assert any("create /consumers/g1/owners/t1/0 " in line for line in lines)
    assert {line[3:].split()[3] for line in lines if "t1/1" in line} <= {"decided"}
    assert sum(line.startswith("!!") for line in lines) == 3
    assert sum(line.startswith("==") for line in lines) >= 4


def test_around_shows_neighbours_that_pass_the_filters(command: CommandLine, trial: Path, history: History) -> None:
    beliefs = [event for event in history.events if event.layer == "belief"]
    (fault,) = [event for event in history.events if event.kind == "fault-ended"]
    at = sum(event.at_us < fault.at_us for event in beliefs)
    wanted = [*beliefs[at - 2 : at], fault, *beliefs[at : at + 2]]
    shown = rows(command("history", "show", trial, "--around", f"runner#{fault.n}:2", "--layer", "belief").out)
    assert [line[3:].split()[1] for line in shown] == [f"{event.actor}#{event.n}" for event in wanted]
    assert shown[2].startswith(">> ")
    assert len(rows(command("history", "show", trial, "--around", f"runner#{fault.n}").out)) == 21
    assert len(rows(command("history", "show", trial, "--around", "runner#0:3").out)) == 4


def test_nothing_that_passes_is_an_answer_too(command: CommandLine, trial: Path, history: History) -> None:
    ended = command("history", "show", trial, "--kind", "warned")
    assert (ended.code, rows(ended.out)) == (0, [])
    assert ended.out.splitlines()[-1] == f"# 0 of {len(history.events)} events"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--layer", "beliefs"],
            "--layer beliefs does not exist; did you mean belief? There are: belief, registry, effect, fault, op",
        ),
        (["--kind", "own"], "--kind own does not exist; did you mean owned?"),
        (["--kind", "daisies"], "--kind daisies does not exist; there are: owned, disowned, "),
        (["--actor", "m9"], "no actor m9 recorded an event; there are: m1, m2, runner, zookeeper"),
        (["--partition", "t1"], "--partition t1: write TOPIC/NUMBER, such as t1/0"),
        (["--partition", "t1/9"], "no event names partition t1/9; there are: t1/0, t1/1"),
        (["--around", "m1"], "--around m1: write ACTOR#N or ACTOR#N:COUNT, such as m1#45:20"),
        (["--around", "m7#3"], "there is no event m7#3: no actor m7; there are: m1, m2, runner, zookeeper"),
        (["--around", "m1#99999"], "there is no event m1#99999: m1 recorded m1#0 to m1#"),
        (["--from-ms", "2", "--to-ms", "1"], "--from-ms 2 is after --to-ms 1: there is nothing in between"),
        (["--from-ms", "soon"], "Invalid value for '--from-ms': must be a number (see"),
    ],
)
def test_bad_options(command: CommandLine, trial: Path, options: list[str], says: str) -> None:
    assert says in command.refused("history", "show", trial, *options)


def test_folders_that_are_no_trials(command: CommandLine, trial: Path, tmp_path: Path) -> None:
    assert "there is no trial yesterday" in command.refused("history", "show", "yesterday", "--store", tmp_path)
    assert "holds no trial.json" in command.refused("history", "show", tmp_path)
    (tmp_path / "trial.json").write_text("{")
    assert "trial.json cannot be read" in command.refused("history", "show", tmp_path)
    (tmp_path / "trial.json").write_bytes((trial / "trial.json").read_bytes())
    (tmp_path / "events.jsonl").write_text("{}\n")
    assert "events.jsonl:1 is not an event" in command.refused("history", "show", tmp_path)
    (tmp_path / "events.jsonl").write_bytes(b"".join((trial / "events.jsonl").read_bytes().splitlines(True)[1:]))
    assert "was changed after it was sealed" in command.refused("history", "show", tmp_path)
    assert "was changed after it was sealed" in command.refused("history", "compare", trial, tmp_path)


def test_a_reader_that_has_read_enough_is_no_failure(trial: Path) -> None:
    """`history show … | head -1`: the pipe closes long before the answer ends."""
    with subprocess.Popen(
        [*COMMAND, "history", "show", str(trial), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT_S) == 128 + signal.SIGPIPE, "as shells report it of other commands"


def test_on_a_terminal_lines_are_coloured_and_cut_at_its_edge(trial: Path) -> None:
    ours, its = os.openpty()
    ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}}
    with subprocess.Popen(
        [*COMMAND, "history", "show", str(trial), "--layer", "fault,op", "--actor", "runner,m1", "--to-ms", "3000"],
        stdin=subprocess.DEVNULL,
        stdout=its,
        env=environment | {"TERM": "xterm-256color"},
    ) as process:
        os.close(its)
        out = _everything(ours)
        assert process.wait(LIMIT_S) == 0
    lines = out.splitlines()
    assert re.search(r"\x1b\[1;31m!! .* fault-began .*\x1b\[0m", out)
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert max(map(len, plain)) == WIDTH
    assert any(line.endswith("…") for line in plain)
    assert all(line[3:].split()[0].replace(".", "").isdigit() for line in plain[2:-1]), "a line was broken"


def _everything(descriptor: int) -> str:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(descriptor, 65_536)
        except OSError:  # EIO: the other side has closed the terminal
            part = b""
        if not part:
            os.close(descriptor)
            return b"".join(parts).decode()
        parts.append(part)


# -- compare --------------------------------------------------------------------------------


def test_a_history_is_the_same_as_itself(command: CommandLine, trial: Path, history: History) -> None:
    ended = command("history", "compare", trial, trial)
    assert ended.code == 0
    assert rows(ended.out) == [f"the same history, event for event: {len(history.events)} events"]
    assert command("history", "compare", trial, trial, "--json").json == {
        "same": True,
        "a": history.trial.id,
        "b": history.trial.id,
        "events": len(history.events),
    }


def test_two_seeds_part_somewhere(command: CommandLine, trial: Path, store: Path, history: History) -> None:
    other = next(each for each in sorted(store.iterdir()) if load(each).trial.seed == 2)
    theirs = load(other).events
    index = next(n for n, pair in enumerate(zip(history.events, theirs, strict=False)) if pair[0] != pair[1])
    ended = command("history", "compare", trial, other, "--context", "2")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[2] == "# not the same experiment: seed 1 and 2"
    assert lines[-1].startswith(f"# the same up to event {index}; event {index + 1} differs in: ")
    assert [line[:2] for line in rows(ended.out)] == ["  "] * min(index, 2) + ["A "] * 3 + ["B "] * 3
    (mine, yours) = [line for line in lines if line[3:].startswith(">> ")]
    assert mine[6:].split()[1] == f"{history.events[index].actor}#{history.events[index].n}"
    assert yours[6:].split()[1] == f"{theirs[index].actor}#{theirs[index].n}"
    shape = command("history", "compare", trial, other, "--json").json
    assert (shape["same"], shape["event"]) == (False, index + 1)
    assert shape["a_event"]["at_us"] == history.events[index].at_us
    assert shape["b_event"]["n"] == theirs[index].n


def test_other_settings_are_told(command: CommandLine, trial: Path, store: Path) -> None:
    other = next(each for each in sorted(store.iterdir()) if load(each).trial.parameters["partitions"] == 3)
    ended = command("history", "compare", trial, other)
    assert ended.code == 1
    assert "# not the same experiment: partitions 2 and 3" in ended.out


def test_a_history_that_ends_first(command: CommandLine, trial: Path, history: History, tmp_path: Path) -> None:
    shorter = tmp_path / "shorter"
    shorter.mkdir()
    lines = (trial / "events.jsonl").read_bytes().splitlines(True)
    (shorter / "events.jsonl").write_bytes(b"".join(lines[:-3]))
    seal(shorter, msgspec.structs.replace(history.trial, history_sha256=digest(history.events[:-3])))
    ended = command("history", "compare", trial, shorter, "--context", "1")
    count = len(history.events) - 3
    assert ended.out.splitlines()[-1] == f"# the same up to event {count}; event {count + 1} differs"
    assert "B  (ended)" in ended.out.splitlines()


def test_kinds_that_a_subject_added_can_be_chosen(command: CommandLine, tmp_path: Path) -> None:
    plan = api.make_plan("broker-crash", settings={"messages": "20", "kills": "1"})
    trial = api.run(plan, tmp_path).folder
    line = [*COMMAND, "history", "show", str(trial), "--kind", "leads,controls", "--json"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, check=True)  # knows no subject yet
    shown = [json.loads(line)["kind"] for line in ended.stdout.splitlines()]
    assert (shown.count("leads"), shown.count("controls")) == (2, 2)
    assert command.refused("history", "show", trial, "--kind", "lead").endswith("; did you mean leads?")
