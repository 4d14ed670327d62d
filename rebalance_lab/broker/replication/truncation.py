"""Where a follower cuts its log, so that it is a prefix of its leader's (`AbstractFetcherThread`, Kafka 3.9.1)."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEnd


@dataclass(frozen=True, slots=True)
class Truncation:
    """Cut the log at `offset`. `complete`: False if the leader must be asked again, about the epoch that is then the
    latest one."""

    offset: int
    complete: bool = True


class UnknownEpoch(Exception):
    """A reader has records of a leader epoch that is later than any in the leader's log."""


def diverging(end: EpochEnd, last_epoch: int, fetch_offset: int) -> EpochEnd | None:
    """Where the logs of a reader and of its leader part; None if they do not (KIP-320, KIP-595).

    `last_epoch`: that of the reader's last record. `end`: what the leader's log answers about it. `fetch_offset`: the
    end of the reader's log. Raises UnknownEpoch.
    """
    if end.epoch == UNDEFINED_EPOCH:
        raise UnknownEpoch(f"leader epoch {last_epoch} is later than any of this log")
    return end if end.epoch < last_epoch or end.offset < fetch_offset else None


def at_leader_end(leader_end: int, end_offset: int) -> Truncation | None:
    """What follows if the leader does not have the end of the follower's log; None if it is not the leader's log that
    is shorter. From 0.8.2 to 1.1 the follower's broker halts instead, unless the topic allows unclean elections
    (`ReplicaFetcherThread.handleOffsetOutOfRange`)."""
    return Truncation(leader_end) if leader_end < end_offset else None


def must_restart(leader_start: int, end_offset: int, *, restarts_out_of_range: bool) -> bool:
    """Whether a follower drops its whole log and begins where the leader's log starts, if `at_leader_end` was None."""
    return restarts_out_of_range or leader_start > end_offset


def at_high_watermark(high_watermark: int, end_offset: int) -> Truncation:
    """The rule of 0.8, and of later ones for a log without leader epochs."""
    return Truncation(min(high_watermark, end_offset))


def at_epoch_end(
    leaders: EpochEnd, own: EpochEnd, *, high_watermark: int, end_offset: int, compares_epochs: bool
) -> Truncation:
    """What follows from the leader's answer about an epoch of the follower.

    `leaders`: the largest epoch in the leader's log that is not larger than the one it was asked about, and its end.
    `own`: the same of the follower's log, for the epoch of the answer. `compares_epochs`: False before KIP-279, when
    the answer had no epoch.
    """
    if leaders.offset == UNDEFINED_OFFSET:
        return at_high_watermark(high_watermark, end_offset)
    if not compares_epochs or UNDEFINED_EPOCH in (leaders.epoch, own.epoch):
        return Truncation(min(leaders.offset, end_offset))
    if own.epoch != leaders.epoch:
        return Truncation(min(own.offset, end_offset), complete=False)
    return Truncation(min(own.offset, leaders.offset, end_offset))
