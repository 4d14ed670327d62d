"""Worlds in which a claim is false and the history cannot show it: its check says unknown, or does not apply."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from counterfeit import trial

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims
from zkconsumer.fetchers import Fetchers

_TAKE, _FETCHERS = Claims.take, Fetchers.__init__

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


def finding(check: str, history: History) -> Finding | None:
    return CHECKS[check].judge(history) if CHECKS[check].applies(history) else None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("world", [gives_up_for_another_reason, nothing_to_share])
def test_z9_is_not_decided(world: Any, seed: int) -> None:
    assert finding("stays_wrong", world(seed)) is None
