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
