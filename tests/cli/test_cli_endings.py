"""How commands end: exit codes, streams that are closed or full, errors that nothing foresaw, and signals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine, Ended, Shell, background, commands, end, next_line

from rebalance_lab.cli import main, scenarios
from rebalance_lab.cli.at_once import FOREGROUND
from rebalance_lab.history.files import trial_folders
from rebalance_lab.kernel.interruption import SIGNALS, Interrupted, Interruption
from rebalance_lab.trials import api


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = f'lab() {{ {" ".join(COMMAND)} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=folder, timeout=LIMIT_S, check=False
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("lab scenarios >&-", "standard output is closed; send it to a file, or to /dev/null"),
        (
            "lab scenarios 1</dev/null",
            "standard output is open for reading only; send it to a file, or to /dev/null",
        ),
        ("lab scenarios >/dev/full", "cannot write to standard output: No space left on device"),
        ("lab run herd >/dev/full", "cannot write to standard output: No space left on device"),
        ("lab whatif place --help >/dev/full", "cannot write to standard output: No space left on device"),
    ],
)
def test_an_answer_that_cannot_be_written_is_an_error(tmp_path: Path, line: str, why: str) -> None:
    ended = shell(line, tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert why in ended.stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_to_all_processes_ends_a_sweep_in_one_line(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, a terminal that closes, and `timeout` signal the workers as well, and the process that removes
    semaphores. The workers may be dead before the command has noted its own signal."""
    arguments = ["sweep", "zombie", "--seeds", "4000"]
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, cwd=tmp_path, start_new_session=True)
    try:
        give_up = time.monotonic() + LIMIT_S
        while not trial_folders(tmp_path / "trials"):
            assert process.poll() is None and time.monotonic() < give_up
            time.sleep(0.05)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 128 + number, err
    assert err.startswith(f"rebalance-lab: interrupted by {number.name};".encode()), err
    assert err.count(b"\n") == 1, err


#: A command whose clean-up waits for a lock that nobody gives back.
STANDS_STILL = """
import sys, threading
from rebalance_lab.cli import main

def stands_still(*_arguments, **_named):
    try:
        print("ready", flush=True)
        threading.Event().wait()
    finally:
        threading.Event().wait()

main.app_of, main.LAST_RESORT_S = lambda _wanted: stands_still, 0.2
sys.exit(main.main(["run", "herd"]))
"""


def cut_short(script: str, number: signal.Signals, *arguments: str) -> str:
    """What a script says in one line that gets the signal when it is ready, and is ended by force."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(number)
            _, err = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode == 128 + number, err
    (line,) = err.splitlines()
    return line


@pytest.mark.parametrize("number", SIGNALS)
def test_a_clean_up_that_stands_still_is_cut_short(number: signal.Signals) -> None:
    line = cut_short(STANDS_STILL, number)
    assert line.startswith(
        f"rebalance-lab: interrupted by {number.name}; the clean-up did not end within 0.2 s and was cut short"
    )
    assert "it stood at wait (threading.py:" in line and "stands_still (<string>:" in line


#: A broker that does not hear that it is to end.
NEVER_ENDS = """
import sys
from rebalance_lab.cli import broker, main
from rebalance_lab.kernel import Future

class NeverEnds:
    def __init__(self, *_arguments):
        pass

    async def run(self, _closing):
        print("ready", flush=True)
        await Future("what never comes")

broker.Broker, broker.LAST_RESORT_S = NeverEnds, 0.2
no_leave = ["--set", "controlled.shutdown.enable=false"]
sys.exit(main.main(["broker", "--zookeeper", "127.0.0.1:1", "--data", sys.argv[1], *no_leave]))
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_broker_that_does_not_end_is_cut_short_and_says_what_it_waits_for(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Found by one shot in 150: a broker that was asked to end as it registered served on."""
    line = cut_short(NEVER_ENDS, number, str(tmp_path))
    assert line.startswith(f"rebalance-lab: interrupted by {number.name}; the broker did not end within 0.2 s")
    assert "waits for what never comes" in line


def test_without_a_place_for_errors_the_exit_code_says_it(tmp_path: Path) -> None:
    ended = shell("lab scenarios nope 2>&-", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "")


@pytest.mark.parametrize("arguments", [["scenarios"], ["run", "herd"], ["--help"], ["--version"]])
def test_a_reader_that_has_gone_ends_a_command_in_silence(tmp_path: Path, arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as gone:
        ended = subprocess.run(
            [*COMMAND, *arguments], stdout=gone, stderr=subprocess.PIPE, cwd=tmp_path, timeout=LIMIT_S, check=False
        )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, b"")


def test_an_error_that_nothing_foresaw_is_one_line_and_2(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("no reason\nat all")

    monkeypatch.setattr(scenarios, "scenario_names", broken)
    ended = command("scenarios")
    assert (ended.code, ended.out) == (2, "")
    why = "unexpected ZeroDivisionError: no reason; rebalance-lab -v shows where it was raised"
    assert ended.err == f"rebalance-lab: {why}\n"
    assert "test_cli_endings.py" in command("-v", "scenarios").err


@pytest.mark.parametrize("text", ["NaN", "inf", "1e400", "-1"])
def test_a_time_that_is_not_one_is_refused(command: CommandLine, text: str) -> None:
    assert "--from-ms" in command.refused("history", "show", "t", f"--from-ms={text}")


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_is_answered_by_its_exit_code(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals
) -> None:
    monkeypatch.setattr(api, "run", lambda *_: signal.raise_signal(number))
    ended = command("run", "herd", "--store", tmp_path)
    assert (ended.code, ended.out) == (128 + number, "")
    assert ended.err == f"rebalance-lab: interrupted by {number.name}; what was not finished does not count\n"
    assert signal.getsignal(number) is not signal.SIG_IGN


@pytest.mark.parametrize("number", SIGNALS)
def test_a_foreground_command_ends_by_every_signal(number: signal.Signals, tmp_path: Path) -> None:
    with background("zookeeper", "--data", tmp_path, "--json") as process:
        (pid,) = next_line(process)["pids"]["zookeeper"]
        ended = end(process, number)
    assert (ended.code, ended.err) == (0, "")
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("name", [*FOREGROUND, "run", "consume"])
def test_a_signal_at_the_very_beginning(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, name: str, number: signal.Signals
) -> None:
    monkeypatch.setattr(main, "app_of", lambda _wanted: lambda *_arguments, **_options: signal.raise_signal(number))
    ended = command("-v", name, "--data", "run")
    if name in FOREGROUND:
        assert ended == Ended(0, "", "")
    else:
        assert (ended.code, ended.out) == (128 + number, "")
        assert ended.err.startswith(f"rebalance-lab: interrupted by {number.name}; ")


def test_an_error_whose_trace_cannot_be_written_ends_in_one_line(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is short: what fails first is the command, and then the trace of it for -v."""
    monkeypatch.setattr(main, "app_of", lambda _wanted: raises(ImportError("x.so: failed to map segment")))
    monkeypatch.setattr(main._log, "debug", raises(MemoryError()))
    ended = command("-v", "scenarios")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("rebalance-lab: unexpected ImportError: x.so: failed to map segment; ")


def test_an_error_of_python_beside_a_command_ends_in_one_line(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As C code raises it that gets no memory for the error that it means."""
    monkeypatch.setattr(main, "_carried_out", raises(SystemError("error return without exception set")))
    ended = command("scenarios")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("rebalance-lab: there is not enough memory; ")


def raises(error: Exception) -> Callable[..., NoReturn]:
    def call(*_arguments: object, **_named: object) -> NoReturn:
        raise error

    return call


#: Runs the console script, but with a module of the commands that never ends loading. It sleeps in pieces, as Python
#: notices a signal that arrives just before a sleep only after it.
LOADING = """
import sys, time
from rebalance_lab.__main__ import main

class Endless:
    def find_spec(self, name, *_):
        if name == "rebalance_lab.cli.main":
            print("loading", flush=True)
            while True:
                time.sleep(0.01)

sys.meta_path.insert(0, Endless())
sys.exit(main())
"""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("name", [*FOREGROUND, "run", "claims"])
def test_a_signal_while_the_commands_are_loaded(name: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LOADING, "-v", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        ended = end(process, number)
    told = f"rebalance-lab: interrupted by {number.name}; no command was running\n"
    assert ended == (Ended(0, "", "") if name in FOREGROUND else Ended(128 + number, "", told))


def test_what_nohup_ignores_is_ignored_while_the_commands_are_loaded() -> None:
    code = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{LOADING}"
    with subprocess.Popen(
        [sys.executable, "-c", code, "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGHUP)
        assert end(process, signal.SIGTERM).code == 128 + signal.SIGTERM


#: Runs the console script with a command that leaves something whose end is a signal: it goes when Python itself ends.
ENDING = """
import os, signal, sys, types
from rebalance_lab.__main__ import main

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=int(sys.argv[1]), write=os.write):
        kill(pid, number)
        write(1, b"the end")

sys.modules["rebalance_lab.cli.main"] = types.SimpleNamespace(main=lambda: 1)
sys.left = Last()
sys.exit(main())
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_python_ends(number: signal.Signals) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, str(int(number))], capture_output=True, timeout=LIMIT_S, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, b"the end", b"")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_client_that_waits_for_a_broker_is_interrupted(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with background("consume", "--topic", "t", "--bootstrap", address) as process:
            silent.settimeout(LIMIT_S)
            connection, _ = silent.accept()  # it waits for an answer now
            with connection:
                ended = end(process, number)
    assert (ended.code, ended.out) == (128 + number, "")
    assert ended.err == f"rebalance-lab: interrupted by {number.name}; no records of t were printed\n"


def test_what_nohup_ignores_stays_ignored(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    really = api.run

    def disturbed(*arguments: Any) -> api.TrialResult:
        signal.raise_signal(signal.SIGHUP)
        return really(*arguments)

    monkeypatch.setattr(api, "run", disturbed)
    try:
        assert command("run", "herd", "--store", tmp_path).code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run", "herd", "--set", "members=100000000"], "members=100000000: must be 5000 or less"),
        (["run", "zombie", "--set", "pause_ms=99999999999999999999"], "must be 10800000 or less"),
        (["sweep", "herd", "--set", "members=2,100000000"], "members=100000000: must be 5000 or less"),
        (["sweep", "herd", "--seeds", "1000000000"], "must be 1000000 or less"),
        (["sweep", "herd", "--set", "members=2,3,2"], "--set members: 2 is given twice"),
        (
            ["sweep", "herd", "--set", "members=2,02"],
            "is wanted 2 times: give each seed and each value",
        ),
        (["topics", "--bootstrap", "h:1", "--create", "t", "--partitions", "2147483648"], "must be 2147483647 or less"),
        (["topics", "--bootstrap", "h:1", "--create", "t", "--replication", "32768"], "must be 32767 or less"),
        (["consume", "--bootstrap", "h:1", "--topic", "t", "--partition", "2147483648"], "must be 2147483647 or less"),
        (["produce", "--bootstrap", "h:1", "--topic", "t", "--partition", "2147483648"], "must be 2147483647 or less"),
        (["claims", "--cores", "100000000"], "Invalid value for '--cores': must be 256 or less"),
    ],
)
def test_what_would_run_for_ever_or_elsewhere_is_refused(command: CommandLine, arguments: list[str], why: str) -> None:
    assert why in command.refused(*arguments)


def file_options() -> Iterator[tuple[str, str]]:
    """Every option of every command that is a file or folder: the command's words, and the option."""
    for words, known in commands():
        for parameter in known.params:
            if parameter.type_descriptor.annotation is Path:
                yield words, max(parameter.opts, key=len)


FILE_OPTIONS = list(file_options())


def test_the_options_are_found() -> None:
    assert {("run", "--store"), ("zookeeper", "--data"), ("report", "--out"), ("join", "--security")} <= {*FILE_OPTIONS}


@pytest.mark.parametrize(("words", "option"), FILE_OPTIONS)
def test_an_empty_name_is_not_the_current_folder(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    why = "is empty; name a file or folder"
    told = f"Invalid value for '{option}': {why} (see rebalance-lab {words} --help)"
    assert command.refused(*words.split(), f"{option}=") == told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["replay", "shrink", "report", "history show", "history compare"])
def test_an_empty_name_is_no_trial(command: CommandLine, words: str) -> None:
    names = ["", ""] if words == "history compare" else [""]
    assert command.refused(*words.split(), *names) == "the name of a trial is empty"


@pytest.mark.parametrize("option", ["--layer", "--actor", "--kind"])
def test_an_empty_filter_is_refused(command: CommandLine, option: str) -> None:
    assert (
        command.refused("history", "show", "t", option, ",") == f"{option} is empty; name what to show, or leave it out"
    )


def test_a_key_is_separated_by_something(command: CommandLine) -> None:
    told = command.refused("produce", "--bootstrap", "h:1", "--topic", "t", "--key-separator", "")
    assert told.startswith("--key-separator is empty; ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "--out"],
        ["report", "zombie-simulated-described-s1", "--out"],
        ["report", "zombie-simulated-described-s1", "--trace"],
        ["agree", "zombie", "--out"],
    ],
    ids=lambda each: "".join(each[::2]),
)
def test_a_place_where_nothing_can_be_written_is_told_before_the_work(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("run", "zombie").code == 0
    (tmp_path / "a.file").touch()
    (tmp_path / "folder.svg").mkdir()
    before = sorted(tmp_path.rglob("*"))
    option = arguments[-1]
    assert command.refused(*arguments, "folder.svg") == f"{option} folder.svg is a folder; name a file"
    told = command.refused(*arguments, "a.file/page.svg")
    assert told == f"cannot write {option} a.file/page.svg: a.file is not a folder; choose another file"
    if arguments[0] == "report":
        for name in (".", "..", "/"):
            assert command.refused(*arguments, name) == f"{option} {name} is a folder; name a file"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    """Spark itself tries for a minute."""
    command = Shell()
    assert command("run", "herd", "--store", tmp_path).code == 0
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    master = f"spark://127.0.0.1:{port},127.0.0.1:{port}"
    told = command.refused("claims", "--store", tmp_path, "--master", master)
    assert told == f"Spark's master {master} cannot be reached: [Errno 111] Connection refused"


@contextmanager
def _late() -> Iterator[Interruption]:
    """A signal comes when the block has ended, and before the handlers are those from before."""
    yield Interruption()
    raise Interrupted(signal.SIGINT)


def test_a_signal_after_the_command_has_ended_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "interruptible", _late)
    assert main.main(["whatif", "nothing"]) == 2
    assert main.main(["--version"]) == 0
    assert "interrupted" not in capsys.readouterr().err


def test_a_signal_before_the_exit_code_is_known_ends_as_any(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(main, "_carried_out", interrupted)
    assert main.main(["scenarios"]) == 128 + signal.SIGTERM
    told = "rebalance-lab: interrupted by SIGTERM; what was not finished does not count\n"
    assert capsys.readouterr().err == told
    assert main.main(["zookeeper"]) == 0
    assert capsys.readouterr().err == ""
