"""The lab's own settings of a member: what Kafka 0.8.2 does not have.

They stand among Kafka's settings (`key=value`), all are boolean and false by default, and none
is a setting that Kafka ever had. With all of them off a member does what its rule set says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from zkconsumer.properties import Properties

#: The defect of claim Z16. A member that meets a conflict keeps the owner znodes that it won. Every further attempt, of
#: this rebalance and of later ones, tries only the missing ones again. It releases nothing and reads nothing, so the
#: member keeps the snapshot from which it decided. A trigger of its watches stays pending, or runs such an attempt.
#: Attempts and back-off count as usual; when they are used up, the member is a ghost that still holds its part. This
#: ends with the last missing claim, with a new session, or with one of the two cures below. Two members whose plans
#: overlap, each with a part of the overlap, wait for each other forever.
KEEP_CLAIMS = "keep.claims.on.conflict"


def _cure(name: str, *, against: str, since: str) -> bool:
    """A cure's field. `against`: ids of defects (docs/defects.md) or a claim; `since`: the Kafka that has it."""
    found: bool = field(default=False, metadata={"name": name, "against": against, "since": since})
    return found


@dataclass(frozen=True, slots=True)
class Cures:
    """Remedies, one switch each. `CURES` has name, defect and Kafka version of every one.

    - `release_before_retry`: with kept claims, an attempt first deletes them and reads again.
      0.8.2 does both at the end of the failed attempt, before its back-off; here they are held
      during the back-off.
    - `release_on_watch`: the same, but only once a watch has fired since the snapshot was read.
    - `restart_after_failure`: when a rebalance of any thread has failed, the connector is shut down, and after one
      back-off a new one is created, with a new consumer id.
    - `validate_strategy`: an unknown partition.assignment.strategy is refused.
    - `check_owner_before_delete`: a release reads the owner znode first and leaves it alone when
      another session made it (one read more for each; a race of one round trip remains).
    - `check_session_of_own_node`: a conflicting id znode counts as ours if our session made it,
      and otherwise the registration fails at once, without waiting.
    - `stop_retrying_on_shutdown`: the shutdown flag is looked at before each attempt.
    - `undo_failed_claims`: whatever interrupts the claim step, owner znodes made in it are deleted.
    - `skip_vanished_members`: a member that is listed, and gone when it is read, is left out.
    - `multi_read`: an attempt reads the registrations of all members with one multi-read, not with one
      request each. The server does as many reads; the member waits for one reply.
    """

    release_before_retry: bool = _cure(
        "release.claims.before.retry", against="Z16", since="0.8.2 at the latest, there without a switch"
    )
    release_on_watch: bool = _cure("release.claims.on.watch", against="Z16", since="none")
    restart_after_failure: bool = _cure(
        "restart.after.failure", against="F6, F9", since="none: KAFKA-4228 proposed it; users are told to do it"
    )
    validate_strategy: bool = _cure("validate.strategy", against="S5", since="0.9 (KAFKA-2032)")
    check_owner_before_delete: bool = _cure("check.owner.before.delete", against="S4", since="none")
    check_session_of_own_node: bool = _cure("check.session.of.own.node", against="F4", since="0.9 (KAFKA-1387)")
    stop_retrying_on_shutdown: bool = _cure("stop.retrying.on.shutdown", against="F10", since="0.9 (KAFKA-1848)")
    undo_failed_claims: bool = _cure("undo.failed.claims", against="F7", since="none: kafka-node#981 is a port's")
    skip_vanished_members: bool = _cure(
        "skip.vanished.members", against="F3", since="none: 0.8.2 does it for brokers, in getAllBrokersInCluster"
    )
    multi_read: bool = _cure("multi.read", against="Z7c", since="none: ZooKeeper has it since 3.6")


NO_CURES = Cures()


@dataclass(frozen=True, slots=True)
class Cure:
    """What one switch of `Cures` is: its setting, its field there, and why."""

    name: str
    attribute: str
    against: str
    since: str


CURES: tuple[Cure, ...] = tuple(
    Cure(each.metadata["name"], each.name, each.metadata["against"], each.metadata["since"]) for each in fields(Cures)
)


@dataclass(frozen=True, slots=True)
class LabSettings:
    """`keep_claims_on_conflict`: see KEEP_CLAIMS."""

    keep_claims_on_conflict: bool = False
    cures: Cures = NO_CURES

    @property
    def switched_on(self) -> tuple[str, ...]:
        """The names of those that are on."""
        kept = (KEEP_CLAIMS,) if self.keep_claims_on_conflict else ()
        return (*kept, *(each.name for each in CURES if getattr(self.cures, each.attribute)))


#: Nothing but what the rule set says.
NO_LAB_SETTINGS = LabSettings()


def read_lab_settings(properties: Properties) -> LabSettings:
    """The lab's settings among Kafka's. Raises IllegalArgumentException for a value that is not a boolean."""
    cures = {each.attribute: properties.boolean(each.name, False) for each in CURES}
    return LabSettings(properties.boolean(KEEP_CLAIMS, False), Cures(**cures))
