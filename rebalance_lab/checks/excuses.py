"""Why a rebalance of 0.8.2 may end although its member has not given up what it owned (Z5a).

There are three reasons (`ZookeeperConsumerConnector`, `rebalance` and `syncedRebalance`):

- An attempt found no broker: it ends with a warning, and the registry had no broker at some moment of the attempt.
- The member was shutting down: it reported that it began to close before the rebalance ended.
- Every attempt failed. For each the history shows why: a conflict that the registry witnesses (`conflicts`), or a
  request that was answered with an error, or that a lost connection left without an answer. An attempt that failed
  for another reason may have failed before its release; so may a rebalance that failed and reports no attempt.
"""

from __future__ import annotations

from enum import Enum

from rebalance_lab.checks.brokers import may_lack_brokers
from rebalance_lab.checks.conflicts import met
from rebalance_lab.checks.lives import Attempt, Life, Rebalance
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.warnings import NO_BROKERS


class Excuse(Enum):
    """`POSSIBLE`: the history does not show it, and does not contradict it."""

    SHOWN = "shown"
    POSSIBLE = "possible"
    NONE = "none"


def excuse(history: History, life: Life, rebalance: Rebalance, attempt: Attempt, ended: Event) -> Excuse:
    """Whether a rebalance, ended with `ended`, may have given up nothing. `attempt`: its last one."""
    if ended.of("outcome") == "shutdown":
        closing = life.closing
        return Excuse.SHOWN if closing is not None and closing.at_us <= ended.at_us else Excuse.NONE
    if ended.of("outcome") == "failed":
        tried = rebalance.attempts
        shown = bool(tried) and all(_failed(history, life, each) for each in tried)
        return Excuse.SHOWN if shown else Excuse.POSSIBLE
    return Excuse.SHOWN if found_no_broker(history, attempt, ended) else Excuse.NONE


def _failed(history: History, life: Life, attempt: Attempt) -> bool:
    """Whether the history shows why an attempt failed."""
    failed = attempt.failed
    if failed is None:
        return False
    return met(history, life, attempt) or any(
        event.actor == life.actor and attempt.began.n < event.n < failed.n
        for event in events_of(history, Kind.FAILED_OP, Kind.DISCONNECTED, Kind.EXPIRED)
    )


def found_no_broker(history: History, attempt: Attempt, ended: Event) -> bool:
    """Whether an attempt warned that it found no broker, and the registry may have had none."""
    warned = any(
        event.actor == ended.actor
        and attempt.began.n < event.n < ended.n
        and str(event.of("message")).endswith(NO_BROKERS)  # real ones name the member before
        for event in events_of(history, Kind.WARNED)
    )
    return warned and may_lack_brokers(history, attempt.began.at_us, ended.at_us)
