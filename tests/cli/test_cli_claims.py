"""The ledger on the terminal and as JSON; the demo's frame."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cli_tools import CommandLine, Shell
from rich.console import Console
from verdict_story import reproduced

from rebalance_lab.analysis import analyse as analyse_module
from rebalance_lab.analysis.claims import BY_CONSTRUCTION
from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.analysis.ledger import Expected, Judgement, Quantifier, Status
from rebalance_lab.analysis.results import Analysis, Frequency, LeftOut, Measured, TrialOutcome, Verdict, of_trial
from rebalance_lab.cli import claims, demo, report
from rebalance_lab.cli.claims import Judging, Watched
from rebalance_lab.history.files import Trial, load
from rebalance_lab.history.views import gave_up

REPRODUCED = reproduced(witness="zombie-1", replay="rebalance-lab replay trials/zombie-1")
UNKNOWN = replace(REPRODUCED, claim="Z1", verdict=Judgement.UNKNOWN, status=Status.UNKNOWN, witness=None, replay=None)
NOT_RUN = replace(
    UNKNOWN,
    claim="E1",
    verdict=Judgement.NOT_RUN,
    status=Status.NOT_RUN,
    live=0,
    simulated=0,
    why="no scenario yet",
)
SHIPPED = replace(NOT_RUN, claim="Z7b", reading="shipped", expected=Expected.REFUTED)
DESCRIBED = replace(REPRODUCED, claim="Z7b", reading="described", verdict=Judgement.REFUTED, status=Status.SURPRISE)


def analysis(*verdicts: Verdict) -> Analysis:
    return Analysis(verdicts=verdicts, outcomes=(), intervals=(), trials=())


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [((REPRODUCED, NOT_RUN), 0), ((REPRODUCED, UNKNOWN), 2), ((DESCRIBED, UNKNOWN), 1), ((NOT_RUN,), 0)],
)
def test_claims_exit_code(command: CommandLine, monkeypatch, verdicts: tuple[Verdict, ...], code: int) -> None:
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(*verdicts))
    assert command("claims").code == code


@pytest.mark.parametrize(
    ("names", "code", "shown"),
    [
        (["z10"], 0, ["Z10"]),
        (["E1", "Z10"], 2, ["Z10", "E1"]),
        (["E1"], 2, ["E1"]),
        (["E1", "Z7b"], 1, ["E1", "Z7b"]),
    ],
)
def test_claims_by_name(command: CommandLine, monkeypatch, names: list[str], code: int, shown: list[str]) -> None:
    """The others count for nothing. One that was not run is unknown, with the reason."""
    found = analysis(REPRODUCED, UNKNOWN, NOT_RUN, DESCRIBED, SHIPPED)
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: found)
    ended = command("claims", *names)
    assert ended.code == code
    assert {line.split()[0] for line in ended.out.splitlines() if line[:1] in {"Z", "E"}} - {"Each"} == set(shown)
    assert ("no scenario yet" in ended.out) == ("E1" in shown)
    assert list(command("claims", *names, "--json").json) == shown


def test_a_claim_that_does_not_exist(command: CommandLine) -> None:
    assert "there is no claim E77" in command.refused("claims", "E77")


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ({"left_out": (LeftOut("t1", "t1/trial.json cannot be read"),)}, "t1: t1/trial.json cannot be read"),
        ({"cut_off": ("t2",)}, "t2: it was interrupted before its end; remove the folder"),
    ],
)
def test_what_is_left_out_is_named_and_leaves_it_unknown(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: dict[str, Any], told: str
) -> None:
    found = replace(analysis(REPRODUCED), **missing)
    monkeypatch.setattr(analyse_module, "analyse", lambda *_, **__: found)
    assert command("run", "crash", "--set", "members=1", "--store", tmp_path).code == 0
    for name in ("claims", "report"):
        ended = command(name, "--store", tmp_path)
        assert (ended.code, ended.err.splitlines()[-2:]) == (2, ["1 trial is left out:", f"  {told}"])
    monkeypatch.setattr(analyse_module, "analyse", lambda *_, **__: replace(found, verdicts=(DESCRIBED,)))
    assert command("claims", "--store", tmp_path).code == 1  # a surprise is known


def test_claims_as_json(command: CommandLine, monkeypatch) -> None:
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(REPRODUCED, DESCRIBED, SHIPPED))
    shape = command("claims", "--json").json
    assert list(shape) == ["Z10", "Z7b"]
    assert shape["Z7b"]["status"] == "surprise"
    assert list(shape["Z7b"]["readings"]) == ["described", "shipped"]
    reading = shape["Z10"]["readings"]["all"]
    assert (reading["expected"], reading["verdict"], reading["trials"]) == ("reproduced", "reproduced", 201)
    assert (reading["witness"], reading["why"]) == ("zombie-1", "201 of 201 trials show it")


def test_surprises_come_first_and_what_was_not_run_is_named(command: CommandLine, monkeypatch) -> None:
    monkeypatch.setattr(
        claims, "analysed", lambda _store, **_: analysis(REPRODUCED, UNKNOWN, NOT_RUN, DESCRIBED, SHIPPED)
    )
    out = command("claims").out
    assert out.index("Z7b") < out.index("Z1 ") < out.index("Z10")
    assert "Not run: 2 readings: E1, Z7b (shipped) (why" in out
    assert "  all: reproduced, as expected; live: 1 of 1 show it" in out
    assert "    rebalance-lab replay trials/zombie-1\n" in out


CONSTRUCTED = replace(DESCRIBED, verdict=Judgement.REPRODUCED, status=Status.AS_EXPECTED, by_construction=True)
NOT_APPLIED = replace(
    REPRODUCED,
    claim="Z16",
    expected=Expected.DOES_NOT_APPLY,
    verdict=Judgement.DOES_NOT_APPLY,
    status=Status.DOES_NOT_APPLY,
    witness=None,
)


def test_what_holds_by_construction_stands_apart_and_counts_for_nothing(command: CommandLine, monkeypatch) -> None:
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(CONSTRUCTED, REPRODUCED, SHIPPED))
    ended = command("claims")
    told = " ".join(ended.out.split())
    assert told.index("Z10") < told.index(BY_CONSTRUCTION) < told.index("Z7b")
    assert "  described: reproduced, by construction; " in ended.out
    assert "1 reading of claims was tested: 1 as expected, in " in told
    assert "1 more holds by construction, which is not evidence." in told
    shape = command("claims", "--json").json
    assert shape["Z7b"]["status"] == "not run"
    assert shape["Z7b"]["readings"]["described"]["by_construction"]


def test_only_a_surprise_by_construction_counts(command: CommandLine, monkeypatch) -> None:
    broken = replace(CONSTRUCTED, verdict=Judgement.REFUTED, status=Status.SURPRISE)
    undecided = replace(CONSTRUCTED, verdict=Judgement.UNKNOWN, status=Status.UNKNOWN)
    said = ("1 reading of claims was tested: 1 surprising, in", "No claim was tested yet, in")
    for verdict, code, counted in ((broken, 1, said[0]), (undecided, 0, said[1])):
        monkeypatch.setattr(claims, "analysed", lambda _store, verdict=verdict, **_: analysis(verdict, SHIPPED))
        ended = command("claims")
        assert ended.code == code
        assert f"\n{counted}" in ended.out


def test_what_a_claim_does_not_apply_to_is_no_failure(command: CommandLine, monkeypatch) -> None:
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(REPRODUCED, NOT_APPLIED))
    ended = command("claims")
    assert ended.code == 0
    assert "  all: does not apply; live: 1 of 1 lack what the claim is about" in ended.out
    assert "1 as expected and 1 to which the claim does not apply" in " ".join(ended.out.split())
    assert command("claims", "--json").json["Z16"]["status"] == "does not apply"


def test_claims_tell_how_often_with_the_interval(command: CommandLine, monkeypatch) -> None:
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(REPRODUCED))
    assert claims.seen(REPRODUCED, "live") == "1 of 1 show it (21–100 %)"
    assert claims.seen(REPRODUCED, "simulated") == "180 of 200 show it (85–93 %), 3 undecided"
    assert claims.seen(replace(REPRODUCED, frequencies=(Frequency("live", 0, 0, None, None, 0),)), "live") == ""
    undecided = (Frequency("live", 0, 0, None, None, 2),)
    assert claims.seen(replace(REPRODUCED, frequencies=undecided), "live") == "2 undecided"
    shown = " ".join(command("claims").out.split())
    assert "the number of undecided trials" in shown and "180 of 200 show it" in " ".join(shown.split())
    (simulated,) = [
        each
        for each in command("claims", "--json").json["Z10"]["readings"]["all"]["frequencies"]
        if each["world"] == "simulated"
    ]
    assert simulated == {
        "world": "simulated",
        "shown": 180,
        "decided": 200,
        "low": 0.8506,
        "high": 0.9342,
        "undecided": 3,
    }


def test_claims_tell_what_was_measured(command: CommandLine, monkeypatch) -> None:
    measured = Measured("live", "c_longest_us", "time without a leader", 2, 1_000_000, 1_500_000.0, 2_000_000)
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(replace(REPRODUCED, measured=(measured,))))
    assert "\n    time without a leader: 1.500 s (1.000 s to 2.000 s) in live trials\n" in command("claims").out
    assert command("claims", "--json").json["Z10"]["readings"]["all"]["measured"] == [asdict(measured)]


@pytest.mark.parametrize(("quantifier", "do"), [("always", "contradict it"), ("exists", "do not show it")])
def test_of_a_refuted_claim_the_trials_that_refute_it_are_counted(quantifier: str, do: str) -> None:
    worlds = (Frequency("live", 0, 5, 0.0, 0.43, 0), Frequency("simulated", 200, 200, 0.98, 1.0, 0))
    refuted = replace(REPRODUCED, quantifier=Quantifier(quantifier), verdict=Judgement.REFUTED, frequencies=worlds)
    assert claims.seen(refuted, "live") == f"5 of 5 {do} (57–100 %)"
    assert claims.seen(refuted, "simulated") == "200 of 200 show it (98–100 %)"  # one world may refute it alone


def test_what_the_demo_found_live_fits_the_terminal_and_names_members_shortly(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    live = Trial("zombie-processes-1-1795432278840-30872", "zombie", "processes", "zk", "described", 1, False, {})
    simulated = Trial("zombie-simulated-s1", "zombie", "simulated", "zk", "described", 1, False, {})
    why = "g_host-m1-1480000000000-1a2b3c4d and g_host-m2-1480000000000-1a2b3c4d both believed " * 3
    found = TrialOutcome(**of_trial(live), check="belief_overlap", outcome="violated", why=why, witness=(("m1", 7),),
                         longest_us=1, count=1)  # fmt: skip
    demo.show_found(replace(analysis(), trials=(live, simulated), outcomes=(found,)), Path("trials"))
    out = capsys.readouterr().out
    assert "  belief_overlap: m1 and m2 both believed m1" in out
    assert "  in the simulator: rebalance-lab replay trials/zombie-simulated-s1\n" in out
    assert live.id not in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_batch_of_the_demo_is_told_when_its_last_trial_has_ended() -> None:
    herd_alone = demo.Batch("herd", 1, "shipped", control=True, settings={"members": "8"})
    batches = {"simulated": (demo.Batch("zombie", 2), herd_alone), "processes": (herd_alone,)}
    (zombies, (herd,)), ((live,),) = ([each.plans(world) for each in its] for world, its in batches.items())
    ended: Any = [zombies[1], live, herd, zombies[0]]  # a plan says of a trial what is asked of it here
    assert list(demo.finished(batches, ended)) == [
        "processes herd, shipped, control, members=8: 1 trial",
        "simulated herd, shipped, control, members=8: 1 trial",
        "simulated zombie, described: 2 trials",
    ]


def test_the_demo_runs_what_its_claims_need() -> None:
    """Universal claims need five live trials and 200 simulated seeds of each rule set, and all need controls."""
    for batches, universal in ((demo.LIVE, 5), (demo.SIMULATED, 200)):
        for scenario in ("walkthrough", "herd"):
            for rules in demo.BOTH:
                its = [each for each in batches if (each.scenario, each.rules) == (scenario, rules)]
                assert sum(each.seeds for each in its if not each.control) >= universal, (scenario, rules)
                assert any(each.control for each in its), (scenario, rules)
        for scenario in demo.FAILURES:
            for rules in demo.BOTH:
                assert {each.control for each in batches if (each.scenario, each.rules) == (scenario, rules)} == {
                    False,
                    True,
                }


def test_a_report_without_trials_is_refused(command: CommandLine, tmp_path) -> None:
    assert command.refused("report", "--store", tmp_path).startswith(f"{tmp_path} holds no trial; ")


def test_a_report_says_where_it_is(command: CommandLine, monkeypatch, tmp_path) -> None:
    command("run", "crash", "--store", tmp_path)
    monkeypatch.setattr(report, "analysed", lambda *_: analysis(REPRODUCED))
    ended = command("report", "--store", tmp_path)
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == str(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!")


def test_the_demo_does_its_steps_in_order_and_ends_with_its_claims(command: CommandLine, monkeypatch, tmp_path) -> None:
    done: list[str] = []

    def second(state: demo.Demo) -> None:
        done.append("second")
        state.statuses = [Status.AS_EXPECTED, Status.SURPRISE]

    steps = (demo.Step("First.", lambda _state: done.append("first")), demo.Step("Second.", second))
    monkeypatch.setattr(demo, "STEPS", steps)
    ended = command("demo", "--store", tmp_path)
    assert (ended.code, done) == (1, ["first", "second"])
    assert ended.out.splitlines() == ["1/2 First.", "2/2 Second."]


def test_a_demo_that_tested_nothing_has_failed(command: CommandLine, monkeypatch, tmp_path) -> None:
    def nothing(state: demo.Demo) -> None:
        state.statuses = [Status.NOT_RUN]

    monkeypatch.setattr(demo, "STEPS", (demo.Step("Nothing.", nothing),))
    ended = command("demo", "--store", tmp_path)
    assert ended.code == 2
    assert "was not tested" in ended.err


def test_the_demo_s_trials_go_to_its_store(command: CommandLine, monkeypatch, tmp_path) -> None:
    steps = (demo.Step("Two.", demo.trials(simulated=[demo.Batch("zombie", 2)])),)
    monkeypatch.setattr(demo, "STEPS", steps)
    ended = command("demo", "--store", tmp_path)
    assert (ended.code, ended.err) == (0, "simulated zombie, described: 2 trials\n")
    seeds = sorted(json.loads(path.read_text())["seed"] for path in tmp_path.glob("*/trial.json"))
    assert seeds == [1, 2]
    assert len(list(tmp_path.glob("*/.judgement"))) == 2


def test_the_demo_begins_with_the_story_and_the_picture_of_a_zombie(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    demo.first_picture(demo.Demo(tmp_path))
    *told, last = capsys.readouterr().out.splitlines()
    assert "is paused for 5.00 s" in " ".join(told)
    assert max(map(len, told)) <= 80
    picture = Path(last.removeprefix("  The picture: "))
    assert picture.parent == tmp_path / "pages"
    assert picture.read_text().startswith("<!")


def test_a_ledger_without_trials_is_not_run_and_makes_no_store(shell: Shell, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = shell("claims", "--json")
    assert ended.code == 0
    assert {each["status"] for each in ended.json.values()} == {"not run"}
    assert {"Z1", "Z10", "E1", "P1", "G1", "A0", "N1", "C1"} <= set(ended.json)
    assert ended.err == "There is no store trials: nothing was tested. `run` and `sweep` create one.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_unchanged_store_is_answered_without_java(shell: Shell, tmp_path, monkeypatch) -> None:
    trial = shell("run", "zombie", "--store", tmp_path / "trials", "--json").json["trial"]
    first = shell("claims", "--json", "--store", tmp_path / "trials")
    assert first.json["Z10"]["readings"]["described"]["simulated"] == 1
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    again = shell("claims", "--json", "--store", tmp_path / "trials")
    assert (again.code, again.out, again.err) == (first.code, first.out, first.err)
    assert shell("report", "--store", tmp_path / "trials").code == first.code
    assert shell("report", tmp_path / "trials" / trial).code == 0
    assert "java cannot be run" in shell.refused("claims", "--rejudge", "--store", tmp_path / "trials")


@dataclass
class Counting:
    """In place of a Spark: it has judged so many trials."""

    judged: int = 0


def drawn(watched: Watched, *, terminal: bool) -> str:
    """What stands on stderr after the line was drawn once."""
    stderr = StringIO()
    with Console(file=stderr, force_terminal=terminal, width=80).status(watched):
        pass
    return stderr.getvalue()


def test_a_terminal_is_told_how_many_trials_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Counting()
    watched = Watched(Judging(), 1200, Path("trials"))
    monkeypatch.setattr(Judging, "start", lambda _, **__: spark)
    assert "Reading 1,200 trials of trials" in drawn(watched, terminal=True)
    watched.start()
    assert "Reading 1,200 trials of trials" in drawn(watched, terminal=True)
    spark.judged = 7
    assert drawn(watched, terminal=False) == ""
    assert "7 of 1,200 trials of trials judged" in drawn(watched, terminal=True)
    spark.judged = 1300  # some were judged again after a worker had ended
    assert "1,200 of 1,200 trials of trials judged" in drawn(watched, terminal=True)
    spark.judged = 0  # Spark has stopped
    assert "1,200 of 1,200 trials of trials judged" in drawn(watched, terminal=True)


def test_claims_and_tables_watch_the_spark_that_they_start(command: CommandLine, monkeypatch, tmp_path) -> None:
    started = []

    def start(watched: Watched, **_: bool) -> None:
        started.append((watched.trials, watched.store))
        raise SparkStartError("no Spark in this test")

    monkeypatch.setattr(Watched, "start", start)
    store = tmp_path / "trials"
    command("run", "zombie", "--store", store)
    assert "no Spark in this test" in command.refused("claims", "--rejudge", "--store", store)
    assert "no Spark in this test" in command.refused("tables", "--store", store, "--out", tmp_path / "tables")
    assert started == [(1, store)] * 2


def test_a_store_that_was_named_must_be_there(command: CommandLine, tmp_path) -> None:
    told = command.refused("claims", "--store", tmp_path / "nowhere")
    assert told.startswith(f"There is no store {tmp_path}/nowhere: nothing was tested. ")
    assert told.endswith("; --store names another.")


def test_cores_are_of_this_machine_only(command: CommandLine, tmp_path) -> None:
    for name in ("claims", "report"):
        told = command.refused(name, "--store", tmp_path, "--cores", 2, "--master", "spark://127.0.0.1:1")
        assert told == "--cores is for this machine, and --master for a cluster; leave one of them out"


@pytest.mark.parametrize(
    "arguments", [["claims"], ["report"], ["tables", "--out", "out"], ["sweep", "herd", "--seeds", "2"]]
)
def test_a_spark_of_many_local_cores_is_refused(command: CommandLine, tmp_path: Path, arguments: list[str]) -> None:
    """It took three minutes to find that so many threads cannot be started."""
    told = command.refused(*arguments, "--store", tmp_path, "--master", "local[99999]")
    why = "Invalid value for '--master': local[99999]: at most 256 local cores"
    assert told == f"{why} (see rebalance-lab {arguments[0]} --help)"


def test_claims_say_when_nothing_was_tested(command: CommandLine, monkeypatch) -> None:
    monkeypatch.setattr(claims, "analysed", lambda _store, **_: analysis(NOT_RUN))
    assert command("claims").out.splitlines()[0].startswith("Nothing was tested: ")


def test_a_store_that_is_a_file_holds_no_trials(command: CommandLine, tmp_path) -> None:
    (tmp_path / "file").touch()
    assert "is not a folder" in command.refused("claims", "--store", tmp_path / "file")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupted_analysis_is_no_verdict(command: CommandLine, monkeypatch, tmp_path, number, code) -> None:
    def interrupted(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            raise RuntimeError("what Spark makes of it")  # noqa: B904

    monkeypatch.setattr("rebalance_lab.analysis.analyse.analyse", interrupted)
    ended = command("claims", "--store", tmp_path)
    assert (ended.code, ended.out) == (code, "")
    assert "Traceback" not in ended.err


def test_a_demo_ends_with_the_error_of_a_trial_that_fails(command: CommandLine, monkeypatch, tmp_path) -> None:
    never_leaves = demo.Batch("leave", 1, settings={"fetcher_stop_ms": "9000000"})
    monkeypatch.setattr(demo, "STEPS", (demo.Step("One.", demo.trials(simulated=[never_leaves])),))
    ended = command("demo", "--store", tmp_path)
    assert ended.code == 2
    assert "the clean leave of m" in ended.err
    (folder,) = (sealed.parent for sealed in tmp_path.glob("*/trial.json"))
    assert gave_up(load(folder)) is not None, "the trial is kept, with why"
