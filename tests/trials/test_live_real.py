"""Real members and their brokers as the runner sees them, without a JVM."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Kernel
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, MemberOptions
from rebalance_lab.subjects.zk_group.real import RealConsumer, RealEvents, RealMembers
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.kafka.broker import KafkaBroker

#: The log of a member whose first rebalance failed.
STOPPED = Path(__file__).parents[1] / "vectors" / "console_consumer_stopped.log"


def test_a_process_may_end_once_its_log_says_that_its_consumer_stops(tmp_path: Path) -> None:
    plan = make_plan("fast-restart", world="processes", implementation="real")
    spec = AS_PLANNED.spec(plan, "m2", connect="here", events=str(tmp_path / "m2.jsonl"))
    log_file = tmp_path / "m2.log"
    consumer = SimpleNamespace(program=SimpleNamespace(log_file=log_file, pid=os.getpid()), may_end=False)
    events = RealEvents(spec, cast("RealConsumer", consumer), wall_offset_us=0, members_zxid=lambda _g, _r: -1)
    before, stopping, after = STOPPED.read_text().partition("Error processing message, stopping consumer: \n")
    assert stopping
    log_file.write_text(before)  # its last line is not complete
    assert Kind.ATTEMPT_FAILED in {event.kind for event in events.poll()}
    assert not consumer.may_end
    with log_file.open("a") as log:
        log.write(stopping + after)
    assert events.poll()[-1].kind is Kind.MEMBER_CLOSED
    assert consumer.may_end
    events.close()


def test_a_real_member_is_not_told_how_slowly_to_stop(tmp_path: Path) -> None:
    plan = make_plan("uncontrolled", world="processes", implementation="real")
    spec = MemberOptions(fetcher_stop_ms=4000).spec(plan, "m1", connect="here", events="")
    with pytest.raises(TrialError, match=r"^m1: .* as fast as it can, not in 4000 ms"):
        RealConsumer(spec, tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing was started


def brokers(folder: Path) -> RealMembers:
    """One broker that has no process any more, and keeps its data in `folder`."""
    stage = RealMembers(make_plan("leave", world="processes", implementation="real"), folder, cast("Kernel", None))
    gone = SimpleNamespace(broker_id=0, data_dir=folder / "broker-0", kill=lambda: None)
    stage._brokers.append(cast("KafkaBroker", gone))
    return stage


def test_the_data_of_brokers_go_with_the_trial(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "broker-0"
    (data / "t1-0").mkdir(parents=True)
    (data / "t1-0" / "0.log").write_bytes(b"x")
    brokers(tmp_path).end()
    assert not data.exists()
    brokers(tmp_path).end()  # one that never had any
    assert caplog.messages == []


def test_data_that_cannot_be_removed_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "broker-0"
    data.mkdir()

    def refuse(_folder: object) -> None:
        raise PermissionError(13, "Permission denied", str(data / "t1-0"))

    monkeypatch.setattr("rebalance_lab.subjects.zk_group.real.shutil.rmtree", refuse)
    brokers(tmp_path).end()
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith(f"the data of broker 0 stay in {data}: ")
    assert "Permission denied" in told.getMessage()


@pytest.mark.parametrize(("implementation", "stop_ms"), [("real", 0), ("mixed", 0), ("ours", 100)])
def test_a_herd_with_real_members_has_fetchers_that_stop_at_once(implementation: str, stop_ms: int) -> None:
    plan = make_plan("herd", world="processes", implementation=implementation)
    assert plan.number("fetcher_stop_ms") == stop_ms
    assert ("fetcher_stop_ms" in plan.changed) == (stop_ms == 0)  # so a stored trial's plan is the same again
