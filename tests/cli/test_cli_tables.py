"""`tables` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_tools import CommandLine, Shell
from thorough import only_thorough

from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.history.files import TRIAL_FILE


@pytest.mark.slow
def test_it_writes_tables_says_what_it_wrote_and_names_what_it_left_out(
    command: CommandLine, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, out, log = tmp_path / "trials", tmp_path / "there" / "tables", tmp_path / "log"
    for scenario in ("crash", "zombie"):
        assert command("run", scenario, "--store", store).code == 0
    (store / "zombie-simulated-described-s1" / TRIAL_FILE).write_text("{")
    monkeypatch.setenv("COLUMNS", "80")
    ended = shell("tables", "--store", store, "--out", out, "--event-log", log, "--ui")
    assert ended.code == 2
    assert "Spark's pages: http://127.0.0.1:" in ended.err
    assert "1 trial is left out:\n  zombie-simulated-described-s1: " in ended.err
    assert "│ trials      │     1 │     1 │" in ended.out
    assert f'\n  pandas.read_parquet("{out}/episodes")\n' in ended.out
    assert all(len(line) <= 80 for line in ended.out.splitlines() if str(out) not in line)
    assert len(list((out / "trials" / "scenario=crash" / "world=simulated").glob("*.parquet"))) == 1
    (events,) = log.rglob("events_*")
    assert events.stat().st_size > 0
    assert sorted(path.name for path in out.parent.iterdir()) == ["tables"]
    before = (out / "tables.json").stat()
    assert "tables exists already; remove it" in command.refused("tables", "--store", store, "--out", out)
    assert (out / "tables.json").stat() == before


@pytest.mark.slow
@only_thorough
def test_what_it_wrote_as_json(command: CommandLine, shell: Shell, tmp_path: Path) -> None:
    assert command("run", "crash", "--store", tmp_path / "trials").code == 0
    ended = shell("tables", "--store", tmp_path / "trials", "--out", tmp_path / "tables", "--json")
    assert ended.code == 0
    assert json.loads(ended.out) == json.loads((tmp_path / "tables" / "tables.json").read_text())
    assert ended.json["tables"]["trials"]["rows"] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--store", "nowhere", "--out", "tables"), "nowhere holds no trial; run some"),
        (("--store", "trials", "--out", "trials"), "trials exists already; remove it, or choose another folder"),
        (("--store", "trials", "--out", "file/tables"), "file/tables cannot be written: file is not a folder; choose"),
        (("--store", "trials", "--out", "tables", "--cores", "2", "--master", "local"), "leave one of them out"),
        (("--store", "trials", "--out", "tables", "--event-log", "file"), "cannot write Spark's event log to file"),
        (("--store", "trials"), "--out"),
    ],
)
def test_what_cannot_be_done_is_told_before_spark_starts(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("run", "crash", "--set", "members=1").code == 0
    (tmp_path / "file").touch()

    def start(**_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("rebalance_lab.analysis.session.start", start)
    assert told in command.refused("tables", *arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "trials"]


@pytest.mark.parametrize(("more_than", "compiles"), [(0, True), (1 << 30, False)])
def test_spark_compiles_queries_over_many_events_only(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more_than: int, compiles: bool
) -> None:
    assert command("run", "crash", "--store", tmp_path / "trials", "--set", "members=1").code == 0
    started = []

    def start(*, many_rows: bool, **_: object) -> None:
        started.append(many_rows)
        raise SparkStartError("not for a test")

    monkeypatch.setattr("rebalance_lab.cli.tables.MANY_BYTES", more_than)
    monkeypatch.setattr("rebalance_lab.analysis.session.start", start)
    command.refused("tables", "--store", tmp_path / "trials", "--out", tmp_path / "tables")
    assert started == [compiles]
