"""Worlds in which a claim is false and the history cannot show it: its check says unknown, or does not apply."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import counterfeit_zombies
import msgspec
import pytest
from counterfeit import trial
from counterfeit_keepers import reporting

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.pause import pause
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import registry
from rebalance_lab.scenarios import zombie
from rebalance_lab.subjects.zk_group.lab import GroupLab
from zkconsumer.claims import Claims
from zkconsumer.fetchers import Fetchers
from zkconsumer.group_view import Snapshot
from zkconsumer.rebalance import Rebalancer

_TAKE, _FETCHERS, _PAUSE = Claims.take, Fetchers.__init__, pause

_STANDSTILL_US = 1_000_000

#: Kafka's defaults, and a stop that outlasts the budget of retries.
SLOW = {"rebalance_backoff_ms": "2000", "session_timeout_ms": "6000", "slow_stop_ms": "6500"}


class _NoOffsets(Exception):
    """The member that joins cannot open its file of offsets."""


async def _cannot_take(claims: Claims, plan: Any) -> list[Any]:
    if plan.owners and "host-m2" in plan.owners[0][1]:
        raise _NoOffsets("cannot open the file of offsets")
    return await _TAKE(claims, plan)


def _stops_at_once(fetchers: Fetchers, *args: Any, **more: Any) -> None:
    _FETCHERS(fetchers, *args, **more)
    fetchers._stop_us = 0


def gives_up_for_another_reason(seed: int) -> History:
    """Z9: every member releases in time. The one that joins gives up because of an error of its own."""
    with patch.object(Claims, "take", _cannot_take), patch.object(Fetchers, "__init__", _stops_at_once):
        return trial("uncontrolled", seed)


def nothing_to_share(seed: int) -> History:
    """Z9's denial: with one partition the member that joins wants nothing, so that no stop is too long for it."""
    return trial("uncontrolled", seed, settings={**SLOW, "partitions": "1"})


async def _reports_late(fetchers: Fetchers) -> None:
    """A fetch is reported a period later, when its chunk has been taken; after a standstill no more is fetched."""
    await fetchers._finder.find([each.partition for each in fetchers._shares])
    fetchers._working = True
    fetched_us = fetchers._tasks.now_us()
    while fetchers._tasks.now_us() - fetched_us < _STANDSTILL_US:
        fetched_us = fetchers._tasks.now_us()
        await fetchers._tasks.sleep(fetchers._period_us)
        fetchers._fetch()
    fetchers._working = False


def one_late_report(seed: int) -> History:
    """Z10: the paused member wakes, reports what it fetched before the pause, and is fenced."""
    with patch.object(Fetchers, "_work", _reports_late):
        return trial("zombie", seed)


async def _ends_another(lab: GroupLab, member: Any, duration_ms: int) -> None:
    await _PAUSE(lab, member, duration_ms)
    await lab.sleep_ms(200)
    await lab.members[1].process.expire()  # of this no fault tells


def another_zombie(seed: int) -> History:
    """Z10: the paused member is fenced. The server ends the session of another, which works on."""
    with patch.object(zombie, "pause", _ends_another), patch.object(Fetchers, "_work", counterfeit_zombies._fenced):
        return trial("zombie", seed)


def owned_by_an_operator(seed: int) -> History:
    """Z9: no member is slow to release. What the one that joins meets are owner znodes that an operator made in the
    session of the runner, and took away later. Forged: in the claim's own world they are what the slow one had."""
    history = trial("uncontrolled", seed)
    runner = next(each.session for each in history.events if each.kind is Kind.CONNECTED and each.actor == "runner")
    began_us = [each.at_us for each in history.events if each.kind is Kind.REBALANCE_BEGAN and each.actor == "m1"][1]
    standing: set[object] = set()
    forged: dict[EventId, Event] = {}
    for event in registry(history):
        path = event.of("path")
        if event.partition is None or ("-m1-" not in str(event.member) and path not in standing):
            continue
        if event.kind is Kind.CREATED and event.at_us < began_us:
            standing.add(path)
        elif event.kind is Kind.DELETED and path in standing:
            standing.remove(path)
        else:
            continue
        detail = {**(event.detail or {}), **({"data": "maintenance"} if event.kind is Kind.CREATED else {})}
        forged[event.id] = msgspec.structs.replace(event, session=runner, member=None, detail=detail)
    return History(history.trial, tuple(forged.get(each.id, each) for each in history.events))


def deals_from_memory(seed: int) -> History:
    """Z8: ZooKeeper shows nobody the past. One member deals from the list that it read in its rebalance before."""

    def seen(self: Rebalancer, snapshot: Snapshot) -> Snapshot:
        former, self._snapshot = self._snapshot, snapshot
        return former if former is not None and "host-m1" in self._settings.consumer_id else snapshot

    with patch.object(Rebalancer, "_seen", seen):
        return trial("split-brain", seed, settings={"lag_ms": "50"})


def _failed_without_an_attempt(rebalancer: Rebalancer) -> None:
    rebalancer._report.step(Kind.REBALANCE_ENDED, outcome="failed", attempts=0)


def _failed_on_an_error(rebalancer: Rebalancer) -> None:
    rebalancer._report.step(Kind.ATTEMPT_BEGAN, attempt=0)
    rebalancer._report.step(Kind.ATTEMPT_FAILED, attempt=0, why="no memory left", reason="error", conflicts=[])
    rebalancer._report.step(Kind.REBALANCE_ENDED, outcome="failed", attempts=1)


def finding(check: str, history: History) -> Finding | None:
    return CHECKS[check].judge(history) if CHECKS[check].applies(history) else None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("world", [gives_up_for_another_reason, nothing_to_share, owned_by_an_operator])
def test_z9_is_not_decided(world: Any, seed: int) -> None:
    assert finding("stays_wrong", world(seed)) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("world", [one_late_report, another_zombie])
def test_z10_is_not_decided(world: Any, seed: int) -> None:
    found = finding("zombie_overlap", world(seed))
    assert found is not None
    assert found.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("seed", range(3))
def test_z8_is_not_decided(seed: int) -> None:
    """No member saw another view than the others: the one that remembers contradicts them."""
    history = deals_from_memory(seed)
    found = finding("disagreement", history)
    assert found is not None
    assert found.outcome is Outcome.UNKNOWN
    assert found.why.endswith("which it had not read in that attempt")
    contradiction = finding("contradiction", history)
    assert contradiction is not None
    assert contradiction.outcome is Outcome.VIOLATED


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("report", [_failed_without_an_attempt, _failed_on_an_error])
def test_z5a_is_not_decided(report: Any, seed: int) -> None:
    """A member keeps a share that stays the same, and reports that the rebalance failed before it gave that up."""
    found = finding("order_in_rebalance", reporting(report)(seed))
    assert found is not None
    assert found.outcome is Outcome.UNKNOWN
    assert found.why.endswith("unless it failed before its release, for a reason that the history does not show")
