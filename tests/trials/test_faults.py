"""Each fault tells that it began, bit (with a proof that stands in the history), and ended."""

from __future__ import annotations

import pytest
from lab_stories import Script, of_kind, played

from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.faults import faults
from rebalance_lab.checks.overlaps import overlaps
from rebalance_lab.faults.cluster import add_broker, remove_broker, set_topic
from rebalance_lab.faults.duplicate_id import join_as
from rebalance_lab.faults.expire import expire
from rebalance_lab.faults.join import join
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.storm import flap, storm
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.intervals import belief_intervals
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.trials.stage import TrialError


def story(do: Script, members: int = 2) -> Script:
    async def script(lab: GroupLab) -> None:
        lab.begin()
        await lab.prepare()
        for _ in range(members):
            await lab.start_member()
        await lab.rest("joined")
        await do(lab)
        await lab.rest("recovered")
        await lab.close()

    return script


async def one_paused(lab: GroupLab) -> None:
    await pause(lab, lab.members[0], 5000)


async def one_killed(lab: GroupLab) -> None:
    await kill(lab, lab.members[0])


async def one_left(lab: GroupLab) -> None:
    await leave(lab, lab.members[0])


async def one_joined(lab: GroupLab) -> None:
    await join(lab)


async def one_expired(lab: GroupLab) -> None:
    await expire(lab, lab.members[0])


async def one_doubled(lab: GroupLab) -> None:
    same = MemberOptions(consumer_id="same")
    first = await lab.start_member(same)
    await lab.rest("named")
    await join_as(lab, first, same)


async def stormy(lab: GroupLab) -> None:
    await storm(lab, 2, lab.members[:1])


async def flapping(lab: GroupLab) -> None:
    await flap(lab, 2, 300, 300)


async def grown(lab: GroupLab) -> None:
    await set_topic(lab, "t1", 9)


async def new_topic(lab: GroupLab) -> None:
    await set_topic(lab, "t2", 3)


async def brokers_changed(lab: GroupLab) -> None:
    await add_broker(lab, 7)
    await remove_broker(lab, 7)


def history(events: tuple[Event, ...]) -> History:
    trial = Trial("t", "leave", "simulated", "zk", "described", 1, False, {})
    return History(trial, events)


@pytest.mark.parametrize(
    ("do", "names"),
    [
        (one_paused, ["pause"]),
        (one_killed, ["kill"]),
        (one_left, ["leave"]),
        (one_joined, ["join"]),
        (one_expired, ["expire"]),
        (one_doubled, ["duplicate-id"]),
        (stormy, ["join", "join", "leave"]),
        (flapping, ["join", "leave", "join", "leave"]),
        (grown, ["topic"]),
        (new_topic, ["topic"]),
        (brokers_changed, ["broker", "broker"]),
    ],
)
def test_a_fault_bites_and_ends(do: Script, names: list[str]) -> None:
    events = played(story(do))
    told = faults(history(events))
    assert [fault.why_not_bitten for fault in told] == [None] * len(names)
    assert sorted(str(fault.began.of("fault")) for fault in told) == sorted(names)
    assert all(fault.ended is not None and fault.ended.at_us >= fault.began.at_us for fault in told)
    assert all(fault.bit is not None and fault.bit.of("proof") for fault in told)


def test_a_pause_inside_a_session_is_not_said_to_outlast_it() -> None:
    async def short(lab: GroupLab) -> None:
        await pause(lab, lab.members[0], 500)

    (fault,) = faults(history(played(story(short))))
    assert (fault.must_outlast_session, fault.closed) == (False, None)


def test_an_expired_member_comes_back_with_another_session() -> None:
    events = played(story(one_expired))
    sessions = [event.session for event in of_kind(events, Kind.CONNECTED) if event.actor == "m1"]
    assert len(sessions) == len(set(sessions)) == 2
    (gone,) = [event for event in of_kind(events, Kind.EXPIRED) if event.actor == "m1"]
    assert gone.session == sessions[0]


def test_a_grown_topic_is_owned_whole() -> None:
    events = played(story(grown))
    last = [event for event in of_kind(events, Kind.OBSERVED) if event.of("owners")][-1]
    owners = last.of("owners")
    assert isinstance(owners, dict)
    assert sorted(int(number) for number in owners) == list(range(9))


def test_who_comes_with_an_id_of_its_own_is_no_double() -> None:
    async def two(lab: GroupLab) -> None:
        await join_as(lab, lab.members[0], MemberOptions())

    with pytest.raises(TrialError, match="give both one"):
        played(story(two))


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_of_two_members_with_one_id_the_second_waits_unregistered_until_the_first_has_left(rules: str) -> None:
    async def then_it_leaves(lab: GroupLab) -> None:
        await one_doubled(lab)
        await lab.rest("doubled")
        first, second = lab.members[-2:]
        await leave(lab, first)
        await lab.first_rebalance(second)

    events = played(story(then_it_leaves), rules=rules)
    finding = CHECKS["registration"].judge(history(events))
    assert finding.why.startswith("g1_same (m4, session")
    assert finding.measures["unregistered"] == 1
    [rest] = [event for event in of_kind(events, Kind.REST_REACHED) if event.of("phase") == "recovered"]
    belief = [one for one in belief_intervals(events) if one.begin_us < rest.at_us <= one.end_us]
    assert {one.actor for one in belief} == {"m1", "m2", "m4"}
    assert not overlaps(belief, closed=False)


def test_two_of_one_id_that_register_in_one_millisecond_both_own_everything() -> None:
    """Their payloads are equal, so the second takes the first's id and owner znodes for its own
    (0.8.2 does not ask whose session made them)."""

    async def at_once(lab: GroupLab) -> None:
        lab.begin()
        await lab.prepare()
        same = MemberOptions(consumer_id="same")
        both = [await lab.start_member(same, wait=False) for _ in range(2)]
        await lab.until(lambda: any(each.started and each.state.rebalances for each in both), "a first rebalance")
        await lab.rest("both are there")
        await lab.close()

    together = {"start_min_us": "0", "start_max_us": "0"}  # no process takes longer to start than the other
    told = [CHECKS["belief_overlap"].judge(history(played(at_once, seed=seed, **together))) for seed in range(1, 13)]
    twice = [finding for finding in told if "each as g1_same" in finding.why]
    assert twice
    assert all(finding.measures["count"] == 6 for finding in twice), "each of the six partitions"
    assert len(twice) < len(told), "in different milliseconds the second waits"
