"""The rules by which replicas agree on one log, as they were in five stages of Kafka's history.

Each stage mends a loss or a divergence of the one before it. All brokers of a cluster follow the same rules, except in
the middle of an upgrade (`broker.versions`).
"""

from __future__ import annotations

from enum import StrEnum


class ReplicationRules(StrEnum):
    """- HIGH_WATERMARK: a follower cuts its log at its own high watermark (0.8 to 0.10).
    - KIP_101: it asks the leader where its latest leader epoch ended (0.11, 1.x).
    - KIP_279: the answer names the epoch that it is about, and the follower asks again if it does not have it; a new
      leader writes its epoch down before its first record (2.0.1).
    - KIP_320_FIRST_TRY: no question; each fetch names the epoch of the last record, and the leader's answer says where
      the logs part. A design that was given up, because fetches do not name the current leader epoch.
    - KIP_320: every request names the leader epoch that the follower knows, and a leader of another epoch refuses it
      (2.1); logs that part are found by fetches (2.7 to 3.9).
    """

    HIGH_WATERMARK = "high-watermark"
    KIP_101 = "kip-101"
    KIP_279 = "kip-279"
    KIP_320_FIRST_TRY = "kip-320-first-try"
    KIP_320 = "kip-320"

    @property
    def asks_for_epochs(self) -> bool:
        """A new follower asks where its latest epoch ended before it fetches (OffsetForLeaderEpoch)."""
        return self in {ReplicationRules.KIP_101, ReplicationRules.KIP_279}

    @property
    def starts_epochs(self) -> bool:
        """A new leader writes down at once that its epoch starts at the end of its log, and knows an end of epochs
        before its first (KAFKA-7415, 2.0.1). Before, an epoch started with its first record, and a leader that had none
        of an epoch nor of one before it answered that its end is undefined (`LeaderEpochFileCache` of 1.1.1)."""
        return self is not ReplicationRules.KIP_101

    @property
    def compares_epochs(self) -> bool:
        """An answer about an earlier epoch than that of the question is understood."""
        return self not in {ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101}

    @property
    def truncates_on_fetch(self) -> bool:
        """Fetches name the epoch of the last record, and answers where the logs part."""
        return self in {ReplicationRules.KIP_320_FIRST_TRY, ReplicationRules.KIP_320}

    @property
    def fences(self) -> bool:
        """Followers name the leader epoch that they know."""
        return self is ReplicationRules.KIP_320

    @property
    def joins_from_epoch_start(self) -> bool:
        """A follower joins the ISR only once it has all up to the start of the current leader epoch (KAFKA-7128)."""
        return self not in {ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101}

    @property
    def resumes_after_same_leader(self) -> bool:
        """A follower whose leader is elected again does not truncate: it keeps fetching (0.8.2). Kafka did so up to
        2.0.0, even if the follower had missed an epoch (KAFKA-7164, `Partition.makeFollower`); KIP_101 leaves that out,
        to show the mistakes of KIP-101 alone."""
        return self is ReplicationRules.HIGH_WATERMARK

    @property
    def restarts_out_of_range(self) -> bool:
        """A follower whose offset the leader does not have, although the leader's log is not shorter, drops its log
        (0.8.2; later only if the leader's log starts behind it)."""
        return self is ReplicationRules.HIGH_WATERMARK


class IsrWriter(StrEnum):
    """Which broker writes a change of the ISR: the controller, as from Kafka 2.7 on, or the leader, as before."""

    CONTROLLER = "controller"
    LEADER = "leader"
