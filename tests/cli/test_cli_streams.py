"""Standard streams and widths that are none: the exit code stays, and no file takes the place of a stream."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_tools import COMMAND, LIMIT_S, CommandLine

from rebalance_lab.cli.streams import forget_impossible_width, forgetful


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = f'lab() {{ {" ".join(COMMAND)} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", command],
        input="",
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("errors", ["2>/dev/full", "2>&-", "2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [("claims", 0), ("nope", 2)],
)
def test_what_stderr_cannot_take_is_dropped(tmp_path: Path, arguments: str, code: int, errors: str) -> None:
    """Of `claims` without a store, the remark that there is none."""
    assert shell(f"lab {arguments} {errors}", tmp_path).returncode == code


def test_both_streams_are_full(tmp_path: Path) -> None:
    assert shell("lab run herd >/dev/full 2>/dev/full", tmp_path).returncode == 2


#: Runs the console script with commands of its own: one that opens a file, and starts a process that tells its streams.
DESCRIPTORS = """
import subprocess, sys, types
from rebalance_lab.__main__ import main

TELLS = "import os; told = [os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)]; open('told', 'w').write(str(told))"

def run():
    with open("mine", "w"):
        return subprocess.run([sys.executable, "-c", TELLS]).returncode

sys.modules["rebalance_lab.cli.main"] = types.SimpleNamespace(main=run)
sys.exit(main())
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path, closed: str) -> None:
    (tmp_path / "script.py").write_text(DESCRIPTORS)
    assert shell(f"{sys.executable} script.py {closed}", tmp_path).returncode == 0
    told = (tmp_path / "told").read_text()
    assert "/mine" not in told
    assert told.count("/dev/null") == closed.count("&-")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_characters_that_a_terminal_lacks_are_escaped(tmp_path: Path, encoding: str) -> None:
    for line in ("lab claims", "lab run $'\\xff'"):
        ended = shell(line, tmp_path, PYTHONIOENCODING=encoding)
        assert "Error" not in ended.stderr
        assert ended.returncode == (2 if line.startswith("lab run $") else 0), ended.stderr


@pytest.mark.parametrize("columns", ["0", "-5", "1_0", "٣", "99999999999999999999", " "])
def test_a_width_that_is_none_is_not_used(tmp_path: Path, columns: str) -> None:
    environment = {"COLUMNS": columns}
    forget_impossible_width(environment)
    assert environment == {}


def test_a_width_is_used(tmp_path: Path) -> None:
    environment = {"COLUMNS": "72"}
    forget_impossible_width(environment)
    assert environment == {"COLUMNS": "72"}
    forget_impossible_width({})
    assert shell("lab scenarios", tmp_path, COLUMNS="0").stdout == shell("lab scenarios", tmp_path).stdout != ""


def test_what_is_written_arrives_or_is_dropped() -> None:
    reading, writing = os.pipe()
    stream = forgetful(writing)
    print("naïve \udcff", file=stream)
    assert os.read(reading, 100) == b"na\xc3\xafve \\udcff\n"
    assert (stream.fileno(), stream.isatty()) == (writing, False)
    os.close(reading)
    with pytest.raises(OSError, match="pipe") as gone:
        os.write(writing, b"x")
    assert gone.value.errno == errno.EPIPE
    print("to nobody", file=stream, flush=True)
    os.close(writing)


def test_commands_that_cannot_be_loaded(tmp_path: Path) -> None:
    """For want of memory. Python itself starts with less."""
    ended = shell("ulimit -v 20000; lab scenarios", tmp_path)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("rebalance-lab: the commands cannot be loaded: ")


def test_a_command_that_cannot_be_loaded(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rebalance_lab.cli.run", None)
    ended = command("run", "herd")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("rebalance-lab: the commands cannot be loaded: ModuleNotFoundError import of ")
    assert command("checks", "one_winner").code == 0, "the others can"
