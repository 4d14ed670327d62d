"""A node that was killed is started again under its name, in every world."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_stories import of_kind, played

from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.history.events import Event, Kind, Layer, encode
from rebalance_lab.history.files import HistoryError, load
from rebalance_lab.history.intervals import belief_intervals, effect_intervals
from rebalance_lab.history.recorder import FileSink, next_number
from rebalance_lab.roles.spec import Leave
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, GroupLab
from rebalance_lab.trials import api
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.nodes import on_this_machine

NOBODY = "127.0.0.1:1"


async def one_of_two_comes_back(lab: GroupLab) -> None:
    await lab.prepare()
    lab.phase("joining")
    first, _ = await lab.start_members(2)
    await lab.rest("joined")
    lab.phase("killed")
    await kill(lab, first)
    await lab.rest("one left")
    lab.phase("again")
    await restart(lab, first)
    await lab.first_rebalance(first)
    await lab.rest("two again")
    await lab.close()


@pytest.fixture(scope="module")
def events() -> tuple[Event, ...]:
    return played(one_of_two_comes_back)


def of_actor(events: tuple[Event, ...], actor: str) -> list[Event]:
    return [event for event in events if event.actor == actor]


class TestSimulated:
    def test_its_events_are_counted_on(self, events: tuple[Event, ...]) -> None:
        numbers = [event.n for event in of_actor(events, "m1")]
        assert numbers == list(range(len(numbers)))

    def test_each_life_has_its_own_id_and_session(self, events: tuple[Event, ...]) -> None:
        lives = [event.member for event in of_kind(events, Kind.MEMBER_STARTED) if event.actor == "m1"]
        sessions = [event.session for event in of_kind(events, Kind.CONNECTED) if event.actor == "m1"]
        assert len(set(lives)) == len(set(sessions)) == 2
        assert lives[0] is not None
        assert lives[1] is not None
        assert lives[0].rpartition("-")[2] != lives[1].rpartition("-")[2]

    def test_what_the_first_life_believed_ends_with_it_and_the_second_works(self, events: tuple[Event, ...]) -> None:
        killed_us, again_us = (
            next(e.at_us for e in of_kind(events, Kind.FAULT_BEGAN) if e.of("fault") == fault)
            for fault in ("kill", "restart")
        )
        for found in (belief_intervals(events), effect_intervals(events)):
            own = [interval for interval in found if interval.actor == "m1"]
            assert all(interval.end_us <= killed_us or interval.begin_us > again_us for interval in own)
            assert any(interval.begin_us > again_us for interval in own)

    def test_no_rest_before_the_session_of_the_first_life_has_ended(self) -> None:
        async def at_once(lab: GroupLab) -> None:
            await lab.prepare()
            member = await lab.start_member()
            await lab.rest("joined")
            await kill(lab, member)
            await restart(lab, member)
            await lab.rest("again")
            await lab.close()

        story = played(at_once, session_timeout_ms="5000")
        (ended,) = [e for e in of_kind(story, Kind.SESSION_CLOSED) if e.session == of_actor_sessions(story)[0]]
        again = [event for event in of_kind(story, Kind.REST_REACHED) if event.of("phase") == "again"]
        assert again[0].at_us > ended.at_us

    def test_only_what_was_killed_is_started_again(self) -> None:
        async def alive(lab: GroupLab) -> None:
            await lab.prepare()
            await restart(lab, await lab.start_member())

        with pytest.raises(TrialError, match="m1 cannot be started again: it is running; kill it first"):
            played(alive)


def of_actor_sessions(events: tuple[Event, ...]) -> list[str | None]:
    return [event.session for event in of_kind(events, Kind.CONNECTED) if event.actor == "m1"]


class TestNumbers:
    def test_a_file_goes_on_after_its_last_event(self, tmp_path: Path) -> None:
        file = tmp_path / "m1.jsonl"
        assert next_number(file) == 0
        file.write_text("")
        assert next_number(file) == 0
        sink = FileSink(file)
        for n in range(2):
            sink.write(Event(actor="m1", n=n, at_us=n, layer=Layer.OP, kind=Kind.WARNED))
        sink.close()
        assert next_number(file) == 2

    @pytest.mark.parametrize("lost", [1, 9])
    def test_a_line_that_was_cut_off_is_cut_back(self, tmp_path: Path, lost: int) -> None:
        """One byte is the line feed alone: the next event would join the line."""
        file = tmp_path / "m1.jsonl"
        whole = [encode(Event(actor="m1", n=n, at_us=n, layer=Layer.OP, kind=Kind.WARNED)) + b"\n" for n in range(2)]
        file.write_bytes(b"".join(whole)[:-lost])
        assert next_number(file) == 1
        assert file.read_bytes() == whole[0]

    def test_a_file_of_something_else_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "m1.jsonl"
        file.write_text('{"actor": "m1", "n"\n')
        with pytest.raises(HistoryError, match=r"m1\.jsonl: its last line is not an event"):
            next_number(file)


def test_a_process_that_takes_no_command_can_be_ended(tmp_path: Path) -> None:
    """What it did not take stands in a buffer, which is written once more when its standard input is closed."""
    spec = AS_PLANNED.spec(api.make_plan("leave", world="processes"), "m1", connect=NOBODY, events=str(tmp_path / "e"))
    process = on_this_machine("m1", [spec], tmp_path)
    process.process.kill()
    with pytest.raises(TrialError, match=r"m1 \(pid \d+\) does not accept commands: "):
        process.tell(Leave("m1"))
    process.end()
    assert process.process.exit_code == process.process.killed


IN_CONTAINERS = pytest.param("containers", marks=[pytest.mark.docker, pytest.mark.timeout(580)])


@pytest.mark.parametrize("world", ["processes", IN_CONTAINERS])
def test_a_process_is_started_again_under_its_name(world: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if world == "containers":
        request.getfixturevalue("docker_engine")  # there is one, or the test is skipped
    plan = api.make_plan("fast-restart", world=world, settings={"session_timeout_ms": "2000"})
    history = load(api.run(plan, tmp_path).folder)
    events = of_actor(history.events, "m1")
    assert [event.n for event in events] == list(range(len(events)))
    assert len({event.member for event in events if event.kind is Kind.MEMBER_STARTED}) == 2
    assert [event.kind for event in events].count(Kind.PROCESS_STARTED) == 2
    restarted = [event for event in history.events if event.kind is Kind.FAULT_BIT and event.of("fault") == "restart"]
    assert len(restarted) == 1
