"""How far a follower is with its leader's log, and where it begins (`AbstractFetcherThread`, Kafka 3.9.1)."""

from __future__ import annotations

from enum import Enum

from rebalance_lab.broker.replication.rules import ReplicationRules


class FetchState(Enum):
    """- TRUNCATING: the log may have records that the leader has not.
    - FETCHING: it is a prefix of the leader's, or fetches find out where it is not.
    - FAILED: nothing more is fetched until the controller gives the replica a role again.
    """

    TRUNCATING = "truncating"
    FETCHING = "fetching"
    FAILED = "failed"


#: state -> the states it may change to. A log that needs more than one cut stays in TRUNCATING.
FETCH_TRANSITIONS: dict[FetchState, frozenset[FetchState]] = {
    FetchState.TRUNCATING: frozenset(FetchState),
    FetchState.FETCHING: frozenset({FetchState.FETCHING, FetchState.FAILED}),
    FetchState.FAILED: frozenset(),
}


def first_state(rules: ReplicationRules, *, leader: int, followed: int | None, has_epochs: bool) -> FetchState:
    """Of a replica that is to follow `leader`: whether it truncates its log before it fetches. `followed`: the leader
    that it has followed until now; None if it followed none. `has_epochs`: its log has leader epochs."""
    resumes = followed == leader and rules.resumes_after_same_leader
    finds_out_by_fetching = rules.truncates_on_fetch and has_epochs
    return FetchState.FETCHING if resumes or finds_out_by_fetching else FetchState.TRUNCATING


def asks_leader(rules: ReplicationRules, *, has_epochs: bool) -> bool:
    """Whether a replica that truncates asks its leader where its latest leader epoch ended. Otherwise it cuts its log
    at its own high watermark."""
    return rules.asks_for_epochs and has_epochs
