"""Whether missed_watch convicts honest members with a topic filter: their rebalances for topics run on the event
thread, so the notification of a member that comes meanwhile waits until they are done."""

from __future__ import annotations

import random
from collections.abc import Sequence
from unittest.mock import patch

import pytest

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.faults.cluster import set_topic
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import Stage
from rebalance_lab.trials.stages.simulated.stage import simulate


async def topics_come(lab: GroupLab, gaps_ms: Sequence[int]) -> None:
    for number, gap_ms in enumerate(gaps_ms, 2):
        await set_topic(lab, f"t{number}", 2)
        await lab.sleep_ms(gap_ms)


async def members_come(lab: GroupLab, gaps_ms: Sequence[int]) -> None:
    for gap_ms in gaps_ms:
        await lab.sleep_ms(gap_ms)
        await lab.start_member(MemberOptions(whitelist="t.*"), wait=False)


def trial(seed: int, rules: str) -> History:
    """Some members' fetchers stop at once and others' slowly, so attempts fail on what is still owned."""
    chosen = random.Random(seed)
    stops_ms = [1000, chosen.choice((0, 20, 300))]
    topics = [chosen.randrange(50) for _ in range(8)]
    joins = [chosen.randrange(200) for _ in range(2)]

    async def play(stage: Stage) -> None:
        lab = GroupLab(stage)
        lab.begin()
        await lab.prepare()
        lab.phase("joining")
        for stop_ms in stops_ms:
            await lab.start_member(MemberOptions(whitelist="t.*", fetcher_stop_ms=stop_ms))
        await lab.rest("joined")
        lab.phase("topics and members come")
        async with lab.tasks.scope("topics and members") as scope:
            scope.spawn(topics_come(lab, topics), "topics")
            scope.spawn(members_come(lab, joins), "members")
        await lab.rest("recovered")
        await lab.close()

    settings = {
        "rebalance_backoff_ms": str(chosen.choice((50, 200, 500))),
        "rebalance_max_retries": str(chosen.choice((1, 2, 4))),
    }
    with patch("rebalance_lab.trials.stages.simulated.stage.play", play):
        history, _ = simulate(make_plan("leave", seed=seed, rules=rules, settings=settings))
    return history


def longest_wait_us(history: History) -> int:
    """Of a notification that members changed, on the event thread's queue."""
    queued = {each.id: each for each in events_of(history, Kind.NOTIFICATION_QUEUED)}
    waits = [
        handled.at_us - queued[handled.actor, handled.of("of")].at_us  # type: ignore[index]
        for handled in events_of(history, Kind.NOTIFICATION_HANDLED)
        if handled.of("path") == "/consumers/g1/ids"
    ]
    return max(waits)


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_members_whose_event_thread_rebalances_for_topics_are_not_convicted(rules: str) -> None:
    waits_us = []
    for seed in range(6):
        history = trial(seed, rules)
        finding = CHECKS["missed_watch"].judge(history)
        assert finding.outcome is Outcome.CLEAN, (seed, finding)
        assert finding.measures["changes"] == 2
        waits_us.append(longest_wait_us(history))
    assert max(waits_us) > 1_000_000  # it does wait for a rebalance with slow fetchers
