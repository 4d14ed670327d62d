"""Trials whose brokers are all of Kafka 3.9.1: the claims of the controller, and counterfeits of their logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from decided import undisturbed
from real_trials import of_kind, verdicts

from rebalance_lab.checks import CHECKS, Outcome, judge
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, load, merge
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.history.replicas import APPENDED, COMMITTED, CONTROLS, LEADS, READ_REPLICA
from rebalance_lab.history.writes import acknowledged
from rebalance_lab.roles.real.broker_log_reader import BrokerLogReader
from rebalance_lab.roles.replica_reader import read_log
from rebalance_lab.roles.values import told
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.wire.paths import CONTROLLER, topic_path
from rebalance_lab.world.kafka.log_file import LogFile

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1200)]

#: What must hold in every trial of these.
SOUND = (
    *(
        "leader_outside_isr",
        "two_leaders",
        "two_controllers",
        "replica_divergence",
        "stale_controller",
        "stale_role",
        "assumed_isr",
    ),
    *("duplicate", "garbage_read", "reordered", "frozen_isr", "early_shrink"),
)


def plan(name: str, *, seed: int = 1, control: bool = False, **settings: str) -> Plan:
    """Sessions are longer than a slow start."""
    settings = {"session_timeout_ms": "6000", **settings}
    return api.make_plan(name, world="processes", implementation="real", seed=seed, control=control, settings=settings)


PLANS = {
    "race": plan("controller-race"),  # of three brokers only one may ask, and then a race decides nothing
    "race, control": plan("controller-race", control=True),
    "failover": plan("controller-failover", rounds="2"),
    "failover, control": plan("controller-failover", control=True),
    "dies": plan("isr-election"),
    "dies, control": plan("isr-election", control=True),
    "shuts down": plan("isr-election", leaves="shuts-down"),
    "unclean": plan("all-replicas-down", wait_ms="8000", unclean="true"),
    "unclean, control": plan("all-replicas-down", wait_ms="8000", unclean="true", control=True),
    "waits": plan("all-replicas-down", wait_ms="8000"),
    "waits, control": plan("all-replicas-down", wait_ms="8000", control=True),
    # It takes the longest, and so is the likeliest to meet a stall of the host.
    "flaps": plan("isr-flap", lacks="6000", messages="14000", pause_us="500", session_timeout_ms="10000"),
    "placed": plan("placement"),
    "placed, control": plan("placement", control=True),
    "placed in racks": plan("placement", brokers="6", racks="3"),
    "zombie": plan("zombie-controller", session_timeout_ms="18000"),
    "zombie, control": plan("zombie-controller", control=True),
    "kills": plan("committed-data", fault="kill", rounds="2"),
    "kills, control": plan("committed-data", fault="kill", control=True),
}

#: Trials that run at once; they wait half of the time.
AT_ONCE = 2


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real-brokers") / "trials"


@pytest.fixture(scope="module")
def trials(store: Path) -> Mapping[str, History]:
    found = undisturbed(PLANS.values(), store, AT_ONCE)
    return {name: load(found[each.trial_id].folder) for name, each in PLANS.items()}


def unsound(history: History, *more: str) -> dict[str, str]:
    """Those of SOUND and `more` that are not clean."""
    found = judge(history)
    return {name: found[name].why for name in (*SOUND, *more) if found[name].outcome is not Outcome.CLEAN}


def broker_log(store: Path, history: History, actor: str) -> Path:
    return store / history.trial.id / "kafka" / f"broker-{actor[1:]}.log"


def told_again(history: History, folder: Path, actor: str, log: str) -> History:
    """The history with another log of one broker."""
    file = folder / "counterfeit.log"
    file.write_text(log)
    theirs = [event for event in history.events if event.actor == actor]
    reader = BrokerLogReader(actor, MemorySink(), wall_offset_us=history.trial.wall_offset_us)
    reader.process_started(theirs[0].detail or {}, 0)
    for line in LogFile(file).poll():
        reader.feed(line)
    others = [event for event in history.events if event.actor != actor]
    return History(history.trial, merge([*others, *reader.take()]))


def number(event: Event, name: str) -> int:
    return int(str(event.of(name)))


def test_nothing_is_unsound_in_any_trial(trials: Mapping[str, History]) -> None:
    found = {name: unsound(history) for name, history in trials.items()}
    flaps = found.pop("flaps")
    assert flaps.keys() == {"early_shrink"}, flaps
    assert not {name: wrong for name, wrong in found.items() if wrong}
    assert {history.trial.versions["kafka broker"] for history in trials.values()} == {"3.9.1"}


def test_replicas_are_spread_over_racks(trials: Mapping[str, History]) -> None:
    found = judge(trials["placed in racks"])
    assert (found["rack_spread"].outcome, found["rack_spread"].measures["topics"]) == (Outcome.CLEAN, 18)
    assert found["replication_limit"].measures["refused"] == 2


def test_every_reading_is_decided_as_expected(trials: Mapping[str, History], store: Path) -> None:
    readings = {
        ("E1", "real 3.9.1"): "reproduced",
        ("E2", "real 3.9.1"): "reproduced",
        ("E3", "writes, real 3.9.1"): "refuted",
        ("E5a", "clean election, real 3.9.1"): "reproduced",
        ("E5b", "controlled shutdown, real 3.9.1"): "refuted",
        ("E5b", "after a failure, real 3.9.1"): "refuted",
        ("E6", "kills and pauses, real 3.9.1"): "reproduced",
        ("E7", "the first to return leads, real 3.9.1"): "reproduced",
        ("E7", "wait for one in sync, real 3.9.1"): "reproduced",
        ("P1", "real 3.9.1"): "reproduced",
        ("P2", "real 3.9.1 with five brokers"): "refuted",
    }
    said: Mapping[str, Any] = verdicts(store)
    found = {(claim, reading): said[claim]["readings"][reading] for claim, reading in readings}
    assert {each: (one["verdict"], one["status"]) for each, one in found.items()} == {
        each: (expected, "as expected") for each, expected in readings.items()
    }, {each: one["why"] for each, one in found.items()}


def test_one_broker_reigns_in_each_epoch(trials: Mapping[str, History], store: Path, tmp_path: Path) -> None:
    history = trials["race"]
    reigns = of_kind(history, CONTROLS)
    assert len(reigns) == judge(history)["two_controllers"].measures["elections"] >= 5
    loser = next(actor for actor in ("b1", "b2", "b3") if actor != reigns[-1].actor)
    log = broker_log(store, history, loser).read_text()
    at = log.splitlines()[-1].split("\t", 1)[0]
    elected = f"{loser[1:]} successfully elected as the controller. Epoch incremented to {reigns[-1].of('epoch')} and"
    lie = f"{at}\tINFO\tcontroller-event-thread\tKafkaController\t[Controller id={loser[1:]}] {elected}\n"
    honest, false = (told_again(history, tmp_path, loser, text) for text in (log, log + lie))
    outcomes = [CHECKS["two_controllers"].judge(each).outcome for each in (honest, false)]
    assert outcomes == [Outcome.CLEAN, Outcome.VIOLATED]


def test_every_broker_looks_for_each_controller(trials: Mapping[str, History], store: Path, tmp_path: Path) -> None:
    history = trials["failover"]
    assert unsound(history, "missed_election", "lost_write") == {}
    calm = {"b1", "b2", "b3"} - {str(each.of("target")) for each in of_kind(history, Kind.FAULT_BEGAN)}
    looker = min(calm)
    log = broker_log(store, history, looker).read_text()
    look = re.compile(r",3  replyHeader.*'/controller,T")
    blind = "".join(each for each in log.splitlines(keepends=True) if look.search(each) is None)
    honest, false = (told_again(history, tmp_path, looker, text) for text in (log, blind))
    outcomes = [CHECKS["missed_election"].judge(each).outcome for each in (honest, false)]
    assert outcomes == [Outcome.CLEAN, Outcome.VIOLATED]


@pytest.mark.parametrize("name", ["dies", "shuts down"])
def test_the_order_of_the_assignment_decides_who_leads_next(trials: Mapping[str, History], name: str) -> None:
    history = trials[name]
    assert unsound(history, "assignment_order", "lost_write", "leader_completeness", "under_min_isr") == {}
    # What the brokers logged of their records is what the client was answered.
    offsets = {number(event, "offset") for event in acknowledged(history)}
    batches = of_kind(history, APPENDED)
    assert offsets <= {at for each in batches for at in range(number(each, "first"), number(each, "last") + 1)}
    assert max(number(event, "offset") for event in of_kind(history, COMMITTED)) == max(offsets) + 1
    # A leader may hear of two changes at once, so that it never leads in the epoch between them.
    assert len({event.of("leader_epoch") for event in of_kind(history, LEADS)}) > 1


def test_what_the_first_to_return_lacks_is_lost(trials: Mapping[str, History]) -> None:
    assert judge(trials["unclean"])["lost_write"].measures["count"] >= 20
    assert unsound(trials["unclean"], "unavailable_partition") == {}


def test_waiting_for_one_in_sync_loses_nothing_but_time(trials: Mapping[str, History]) -> None:
    assert unsound(trials["waits"], "lost_write", "leader_completeness", "leaderless_partition") == {}
    found = judge(trials["waits"])["unavailable_partition"]
    assert found.outcome is Outcome.VIOLATED
    assert found.measures["longest_us"] > judge(trials["unclean"])["unavailable_partition"].measures["longest_us"]


def test_the_isr_flaps_until_the_follower_has_caught_up(trials: Mapping[str, History]) -> None:
    """KAFKA-19996, which Kafka 3.9.1 has."""
    measures = judge(trials["flaps"])["early_shrink"].measures
    assert measures["count"] == measures["joined"] > 1


def test_a_controller_that_was_deposed_deletes_nothing_more(trials: Mapping[str, History]) -> None:
    history = trials["zombie"]
    deposed, successor = [each for each in of_kind(history, Kind.CREATED) if each.of("path") == CONTROLLER][:2]
    deleted = [each for each in of_kind(history, Kind.DELETED) if str(each.of("path")).startswith(topic_path("t2"))]
    before, after = (
        {each.session for each in deleted if (each.at_us > successor.at_us) is later} for later in (False, True)
    )
    assert (before, after) == ({deposed.session}, {successor.session})  # it was paused in the middle of the deletion
    assert CHECKS["stale_controller"].judge(history).outcome is Outcome.CLEAN
    (pause,) = [each for each in of_kind(history, Kind.FAULT_ENDED) if each.of("fault") == "pause"]
    closed = [each for each in of_kind(history, Kind.SESSION_CLOSED) if each.session == deposed.session]
    assert all(each.at_us > pause.at_us for each in closed)  # not the end of its session has stopped it
    # A counterfeit: it has deleted the last state.
    last = [each for each in deleted if str(each.of("path")).endswith("/state")][-1]
    altered = msgspec.structs.replace(last, session=deposed.session)
    false = tuple(altered if event.id == last.id else event for event in history.events)
    assert CHECKS["stale_controller"].judge(History(history.trial, false)).outcome is Outcome.VIOLATED


def test_replicas_are_read_from_the_files(trials: Mapping[str, History], store: Path) -> None:
    history = trials["kills"]
    assert unsound(history, "lost_write", "leader_completeness", "under_min_isr") == {}
    reads = [event for event in of_kind(history, Kind.OK) if event.of("op") == READ_REPLICA]
    assert len(reads) == 3
    (theirs,) = [event for event in reads if event.of("broker") == 2]
    read = read_log(store / history.trial.id / "b2.files" / "t1-0")
    records = [[each.offset, each.leader_epoch, told(each.value)] for each in read]
    assert theirs.of("records") == records
    # A counterfeit: one replica has another record at one offset.
    other = [*records[:-1], [*records[-1][:-1], 10**6]]
    altered = msgspec.structs.replace(theirs, detail={**(theirs.detail or {}), "records": other})
    false = tuple(altered if event.id == theirs.id else event for event in history.events)
    assert CHECKS["replica_divergence"].judge(History(history.trial, false)).outcome is Outcome.VIOLATED
