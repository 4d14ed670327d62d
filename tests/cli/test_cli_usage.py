"""Bad input: one line on stderr that says what is possible, exit 2, never a traceback."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from cli_tools import CommandLine, commands

from rebalance_lab.cli.failures import Failure, exit_code
from rebalance_lab.cli.main import app_of
from rebalance_lab.cli.options import choices, key_values
from rebalance_lab.cli.trial_runs import writable_store


def test_help_lists_every_command(command: CommandLine) -> None:
    ended = command("--help")
    assert (ended.code, ended.err) == (0, "")
    for name in (
        "demo",
        "explore",
        "scenarios",
        "checks",
        "run",
        "sweep",
        "replay",
        "shrink",
        "report",
        "claims",
        "tables",
        "history",
        "zookeeper",
        "topics",
        "join",
        "whatif",
    ):
        assert f" {name} " in ended.out


def test_help_texts_keep_their_line_breaks_on_80_columns() -> None:
    """Longer lines are broken twice: where they are here, and at the terminal's edge."""
    app = app_of()
    groups = [app, *(each.typer_instance for each in app.registered_groups)]
    callbacks = [each.callback for group in groups if group is not None for each in group.registered_commands]
    for callback in callbacks:
        assert callback is not None
        text = inspect.getdoc(callback) or ""
        assert text and max(len(line) for line in text.splitlines()) <= 78, callback.__name__


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_an_error_names_the_help_of_its_command(command: CommandLine, words: str) -> None:
    assert command.refused(*words.split(), "--zzz") == (f"No such option: --zzz (see rebalance-lab {words} --help)")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run zombie --world mars", "'containers' (see rebalance-lab run --help)"),
        ("run zombie --store", "requires an argument (see rebalance-lab run --help)"),
        ("explore --rules mine", "'kip-320' (see rebalance-lab explore --help)"),
        ("history show", "Missing argument 'TRIAL' (see rebalance-lab history show --help)"),
        ("history", "no command was given (see rebalance-lab history --help)"),
        ("history shw", "Did you mean 'show'? (see rebalance-lab history --help)"),
        ("fly", "No such command 'fly' (see rebalance-lab --help)"),
        ("--daisies", "No such option: --daisies (see rebalance-lab --help)"),
    ],
)
def test_so_does_every_other_error_of_usage(command: CommandLine, arguments: str, says: str) -> None:
    assert command(*arguments.split()).err.endswith(f"{says}\n")


def test_version(command: CommandLine) -> None:
    assert command("--version").out.startswith("rebalance-lab 0.")


def test_without_a_command_that_is_said_beside_the_help(command: CommandLine) -> None:
    ended = command()
    assert (ended.code, ended.err) == (2, "rebalance-lab: no command was given (see rebalance-lab --help)\n")
    assert " run " in ended.out


def test_for_an_unknown_scenario_the_command_that_lists_them_is_named(command: CommandLine, tmp_path) -> None:
    line = command.refused("run", "daisies", "--store", tmp_path)
    assert line == "there is no scenario daisies; all: rebalance-lab scenarios"


@pytest.mark.parametrize("name", ["run", "sweep", "scenarios"])
def test_of_a_scenario_that_is_nearly_one_the_nearest_is_named(command: CommandLine, name: str) -> None:
    line = command.refused(name, "spilt-brain")
    assert line == "there is no scenario spilt-brain; did you mean split-brain? All: rebalance-lab scenarios"


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (
            "pause=3",
            "scenario zombie has no parameter pause; did you mean pause_ms? All: rebalance-lab scenarios zombie",
        ),
        (
            "plnt=two-owners",
            "scenario zombie has no parameter plnt; did you mean plant? All: rebalance-lab scenarios zombie",
        ),
        (
            "plant=two-owner",
            "there is no planted bug two-owner; did you mean two-owners? All: rebalance-lab scenarios zombie --plants",
        ),
        (
            "assignor=roundrobbin",
            "there is no assignor roundrobbin; did you mean roundrobin? There are: ceil, range, roundrobin",
        ),
    ],
)
def test_so_does_the_nearest_of_other_names(command: CommandLine, setting: str, says: str) -> None:
    assert command.refused("run", "zombie", "--set", setting) == says


@pytest.mark.parametrize("name", ["run", "sweep"])
def test_for_an_unknown_setting_the_command_that_lists_them_is_named(command: CommandLine, tmp_path, name: str) -> None:
    line = command.refused(name, "zombie", "--set", "daisies=3", "--store", tmp_path)
    assert line == "scenario zombie has no parameter daisies; all: rebalance-lab scenarios zombie"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "zombie", "--set", "pause_ms=soon"], "pause_ms=soon: must be a whole number (ms)"),
        (["run", "zombie", "--set", "members=0"], "members=0: must be 1 or more"),
        (["run", "zombie", "--set", "pause_ms"], "--set pause_ms: write it as key=value"),
        (["run", "zombie", "--set", "members=2", "--set", "members=3"], "--set members is given twice"),
        (["run", "zombie", "--set", "plant=daisies"], "there is no planted bug daisies; there are: "),
        (["run", "zombie", "--world", "mars"], "'mars' does not exist; there are: "),
        (["run", "zombie", "--rules", "mine"], "there is no rule set mine; there are: "),
        (["run", "zombie", "--seed", "x"], "Invalid value for '--seed': must be a whole number (see"),
        (["zookeeper", "--nodes", "10"], "Invalid value for '--nodes': must be 9 or less (see"),
        (["run", "zombie", "--seed", "-1"], "Invalid value for '--seed': must be 0 or more"),
        (
            ["run", "zombie", "--rules", "described", "--members", "real"],
            "--rules described is not what real members follow; leave it out with --members real",
        ),
        (
            ["sweep", "zombie", "--rules", "described", "--members", "mixed"],
            "--rules described is not what real members follow; leave it out with --members mixed",
        ),
        (["run", "zombie", "--brokers", "real"], "--brokers real: scenario zombie has no real brokers; use --members"),
        (
            ["sweep", "isr-election", "--members", "real"],
            "--members real: scenario isr-election has no real members; use --brokers",
        ),
        (["run", "broker-crash", "--brokers", "real"], "scenario broker-crash has no real brokers; leave it out"),
        (["run", "isr-election", "--brokers", "real"], "real brokers need real processes: --world processes"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["fly"], "No such command 'fly'"),
        (["sweep", "zombie", "--seeds", "0"], "must be 1 or more"),
        (["sweep", "zombie", "--conf", "spark.a=b"], "--conf needs Spark; add --master, as --master local[4]"),
        (["sweep", "zombie", "--store", "hdfs://h/t"], "--store hdfs://h/t: a URI needs Spark; add --master"),
        (["replay", "yesterday"], "there is no trial yesterday"),
        (["topics", "--zookeeper", "h:1", "--create", "t", "--partitions", "3"], "--bootstrap is missing; "),
        (["topics", "--zookeeper", "h:x", "--create", "t", "--partitions", "3", "--fixture"], "no port from 1 to"),
        (["join", "--zookeeper", "h:1", "--group", "g", "--topic", "t:none"], "--topic t:none: write T or T:STREAMS"),
        (
            ["join", "--zookeeper", "h:1", "--group", "g", "--topic", "t", "--assignor", "luck"],
            "known are ceil, range, roundrobin",
        ),
        (["join", "--zookeeper", "h:1", "--group", "a b", "--topic", "t"], "id a b is illegal, contains"),
        (["zookeeper", "--nodes", "3", "--port", "2181"], "--port 2181 with --nodes 3: only a single server's port"),
        (["report", "--store", "nowhere"], "nowhere holds no trial; run some: rebalance-lab run zombie"),
    ],
)
def test_bad_input(command: CommandLine, monkeypatch, tmp_path, arguments: list[str], says: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in command.refused(*arguments)


def test_a_store_that_is_a_file(command: CommandLine, tmp_path) -> None:
    store = tmp_path / "store"
    store.touch()
    line = command.refused("run", "zombie", "--store", store)
    assert line == f"cannot write to the store {store}: {store} is not a folder; choose another with --store"


def test_commands_may_try_one_store_at_the_same_time(tmp_path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: writable_store(tmp_path), range(400))) == {tmp_path}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_is_read_only(command: CommandLine, tmp_path) -> None:
    tmp_path.chmod(0o500)
    assert "Permission denied; choose another with --store" in command.refused("run", "zombie", "--store", tmp_path)


def test_a_trial_that_was_cut_off(command: CommandLine, tmp_path) -> None:
    (tmp_path / "half").mkdir()
    assert "half holds no trial.json" in command.refused("replay", "half", "--store", tmp_path)


def test_java_missing(command: CommandLine, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "needs Java 17 or later" in command.refused("zookeeper")
    store = tmp_path / "store"
    assert "needs Java 17 or later" in command.refused("run", "zombie", "--world", "processes", "--store", store)
    assert list(store.iterdir()) == [], "of a trial that never began"


def test_no_docker_engine(command: CommandLine, monkeypatch, tmp_path) -> None:
    pytest.importorskip("docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    store = tmp_path / "store"
    assert "no docker engine answers" in command.refused("run", "zombie", "--world", "containers", "--store", store)
    assert list(store.iterdir()) == [], "of a trial that never began"


def loaded_for(command: str) -> set[str]:
    code = "import sys; from rebalance_lab.cli.main import app_of; app_of(sys.argv[1]); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code, command], check=True, capture_output=True, text=True)
    return set(found.stdout.split())


def test_no_command_waits_for_spark_or_statistics_unless_it_needs_them() -> None:
    loaded = loaded_for("")
    assert {"rebalance_lab.cli.join", "rebalance_lab.cli.run"} <= loaded
    assert not {"pyspark", "pandas", "scipy", "numpy"} & loaded


@pytest.mark.parametrize("command", ["history", "whatif", "topics", "produce", "consume", "join", "zookeeper"])
def test_a_command_loads_neither_others_nor_trials_that_it_does_not_run(command: str) -> None:
    loaded = loaded_for(command)
    assert f"rebalance_lab.cli.{command}" in loaded
    assert not {"rebalance_lab.cli.demo", "rebalance_lab.trials.api", "rebalance_lab.report.page"} & loaded


def test_settings_as_texts() -> None:
    assert key_values(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(Failure, match="--config =1: write it as key=value"):
        key_values(["=1"], "--config")


def test_a_setting_has_one_value_or_several() -> None:
    assert choices(["a=1,2", "b=x"]) == {"a": ["1", "2"], "b": ["x"]}
    assert choices(None) == {}


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([], 0),
        (["as expected", "not run"], 0),
        (["as expected", "unknown"], 2),
        (["unknown", "surprise", "as expected"], 1),
    ],
)
def test_exit_codes(statuses: list[str], code: int) -> None:
    assert exit_code(statuses) == code
