"""The report's words: terms for readers who never used Kafka or ZooKeeper, what happens in an event, why it is
fine alone, and why several are wrong together.
"""

from __future__ import annotations

from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import TOGETHER
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.report.text import listed, shortened

#: (term, explanation). Each explanation uses only terms that stand before it.
WORDS = (
    (
        "partition",
        "One part of a topic’s messages. `t1/0` is partition 0 of topic t1. Only one member of a group reads it.",
    ),
    ("group, member", "A group is a set of programs that share the partitions of topics. m1, m2 … are its members."),
    ("ZooKeeper", "A small store of named records, kept on one or more servers. Members find each other through it."),
    ("znode", "One record in ZooKeeper. It has a path, like a file."),
    (
        "session",
        "ZooKeeper’s contact with one member. It ends if ZooKeeper hears nothing from the member for the timeout.",
    ),
    ("ephemeral", "An ephemeral znode is deleted when the session that created it ends."),
    ("registration", "A member’s own znode, under `ids`. It shows the others that the member exists."),
    ("owner znode", "A znode that names the member that owns a partition. There is at most one for each partition."),
    (
        "watch, notification",
        "A member asks ZooKeeper for a message when something changes. It gets one, and must ask again.",
    ),
    ("rebalance", "A member gives up all it owns, reads which members there are, computes its share, and claims it."),
    ("to deal", "To compute which member gets which partition. Every member does this for itself, by the same rule."),
    ("attempt, retry", "One try of a rebalance. After a conflict a member waits (the back-off) and tries again."),
    ("at rest", "Nothing has happened for a while, and no member has anything left to do."),
    ("belief", "What a member thinks it owns."),
    ("registry", "The owners according to ZooKeeper."),
    ("effect", "The partitions that a member really works on."),
    ("zombie", "A member that others consider dead, and that goes on working."),
    (
        "fault, control",
        "A fault is a disturbance on purpose, such as a pause. The control is the same trial without it.",
    ),
    ("witness", "The fewest recorded events that prove an anomaly."),
    (
        "reproduced, refuted",
        "The trials confirm a claim, or contradict it. With too few trials the claim stays unknown.",
    ),
    (
        "as expected, surprise",
        "The outcome is, or is not, the one that was expected. That does not make a claim true.",
    ),
    ("either", "The scenario allows both outcomes of this check: it may be clean or violated."),
    (
        "simulated, real",
        "A simulated trial runs in virtual time, and its seed chooses every schedule; others run on a real ZooKeeper.",
    ),
    ("described, shipped", "Members that behave as the articles say, or as Kafka 0.8.2.2 does."),
)


# -- checks and events ----------------------------------------------------------------------------


#: Changes of a group at rest, by the names that their phases have.
CHANGES = {
    "join": "one joins",
    "leave": "one leaves",
    "crash": "one is killed",
    "broker": "a broker comes or goes",
    "topic": "a topic changes",
}
#: Why an event is fine alone, by kind.
ALONE = {
    Kind.OWNED: "A member owns what it has just claimed: its create of the owner znode succeeded.",
    Kind.DISOWNED: "A member gives up a partition before it sends the release, so no other member gets it too early.",
    Kind.WORKED: "A member works on what it claimed until its own rebalance stops its fetchers.",
    Kind.SESSION_OPENED: "A member that connects gets a session.",
    Kind.SESSION_CLOSED: "A server closes a session on request, or after hearing nothing for the timeout.",
    Kind.CREATED: "A create succeeds if no znode has that path.",
    Kind.CHANGED: "A write without a version always succeeds.",
    Kind.DELETED: "Ephemeral znodes are deleted with their session; an owner may also delete its own.",
    Kind.FAILED: "ZooKeeper refuses what its rules forbid.",
    Kind.FAULT_BIT: "The proof that the fault took effect.",
    Kind.FAULT_ENDED: "A stopped process continues where it was, and does not know how much time has passed.",
    Kind.CONNECTED: "A client reconnects when it can.",
    Kind.DISCONNECTED: "Connections break; a session survives that.",
    Kind.EXPIRED: "A client learns of its expiry only when it speaks to a server again.",
    Kind.MEMBER_STARTED: "Members join.",
    Kind.MEMBER_CLOSED: "Members leave.",
    Kind.OBSERVED: "An outside session reads what is there.",
    Kind.MEMBER_CLOSING: "Members leave.",
    Kind.INVOKED: "A member asks ZooKeeper for what its rule needs.",
    Kind.OK: "ZooKeeper did what it was asked.",
    Kind.FAILED_OP: "ZooKeeper refuses to create a znode that exists. That keeps owners apart.",
    Kind.INFO: "After a connection breaks it is unknown whether a request was carried out.",
    Kind.WATCH_FIRED: "A watch fires once, after the change.",
    Kind.NOTIFICATION_QUEUED: "One thread delivers all notifications, one after another.",
    Kind.NOTIFICATION_HANDLED: "One thread delivers all notifications, one after another.",
    Kind.REBALANCE_TRIGGERED: "Several triggers lead to one rebalance, as each rebalance reads everything anyway.",
    Kind.REBALANCE_BEGAN: "A member rebalances whenever something it watches has changed.",
    Kind.ATTEMPT_BEGAN: "A failed attempt is repeated, up to rebalance.max.retries attempts in all.",
    Kind.DECIDED: "Each member deals for itself, from what it has just read.",
    Kind.ATTEMPT_FAILED: "A member that meets another member's claim gives its own claims back and waits.",
    Kind.REBALANCE_ENDED: "A rebalance ends when an attempt succeeds, or when no attempts are left.",
    Kind.WARNED: "Kafka logs this and goes on.",
    Kind.REST_REACHED: "The group was quiet for long enough, and no member had anything left to do.",
    Kind.REST_MISSED: "The runner waits only for a limited time.",
    Kind.PHASE: "The experiment goes on.",
    Kind.TRIAL_ENDED: "The recording ends.",
}


_FALLBACK_ALONE = "Allowed by itself."


def together(check: str) -> str:
    """Why a violation of the check is wrong, in a sentence or two."""
    return CHECKS[check].together if check in CHECKS else TOGETHER


def alone(event: Event) -> str:
    """Why the event is fine alone."""
    if event.kind is Kind.FAULT_BEGAN or (event.kind is Kind.FAULT_ENDED and event.of("fault") != "pause"):
        return kind_of(event).alone
    return ALONE.get(event.kind, _FALLBACK_ALONE)


def title(check: str) -> str:
    """A check's name for people: `Belief overlap`."""
    words = check.replace("_", " ").replace("-", " ")
    return (check in CHECKS and CHECKS[check].title) or words[:1].upper() + words[1:]


def statement(check: str) -> str:
    """The statement that a check tests; the title of a check that tests none."""
    return (check in CHECKS and CHECKS[check].statement) or title(check)


def deed(event: Event, name: str) -> str:
    """What happens in an event, in a few words. `name`: the short name of the event's member."""
    place = "" if event.topic is None else f"{event.topic}/{event.partition}"
    path = str(event.of("path") or "")
    if event.layer is Layer.FAULT:
        return _fault_deed(event)
    texts = {
        Kind.OWNED: f"{name} now believes it owns {place}",
        Kind.DISOWNED: f"{name} no longer believes it owns {place}",
        Kind.WORKED: f"{name} stops working on {place}" if event.of("last") else f"{name} works on {place}",
        Kind.SESSION_OPENED: f"session {event.session} opens",
        Kind.SESSION_CLOSED: f"ZooKeeper closes session {event.session}" + (f" of {name}" if name else ""),
        Kind.CREATED: f"{path} is created" + (f" for {name}" if name else ""),
        Kind.CHANGED: f"{path} is written" + (f" for {name}" if name else ""),
        Kind.DELETED: f"{path} is deleted" + (" with its session" if event.of("with_session") else ""),
        Kind.FAILED: f"a write is refused (code {event.of('code')})",
        Kind.CONNECTED: f"{name or event.actor} is connected, session {event.session}",
        Kind.DISCONNECTED: f"{name or event.actor} loses its connection",
        Kind.EXPIRED: f"{name or event.actor} learns that session {event.session} is gone",
        Kind.OBSERVED: f"an outside session reads {path}: {shortened(str(event.of('children')), 120)}",
        Kind.INVOKED: f"{name or event.actor} asks: {event.of('op')} {path}",
        Kind.OK: f"{name or event.actor} is answered: {event.of('op')} {path}",
        Kind.FAILED_OP: f"{name or event.actor} is refused: {event.of('op')} {path} ({event.of('error')})",
        Kind.WATCH_FIRED: f"{name or event.actor}'s watch on {path} fires",
        Kind.REBALANCE_BEGAN: f"{name} begins to rebalance",
        Kind.ATTEMPT_FAILED: f"{name}'s attempt fails: {event.of('why')}",
        Kind.REBALANCE_ENDED: f"{name}'s rebalance ends: {event.of('outcome')}",
        Kind.DECIDED: f"{name} deals from a list of {event.of('members')} members and wants {_wants(event)}",
        Kind.PHASE: f"phase {event.of('name')}",
        Kind.REST_REACHED: "the group is at rest",
        Kind.REST_MISSED: f"{_missed(event)}: {event.of('why')}",
        Kind.WARNED: f"{name or event.actor} warns: {shortened(str(event.of('message')), 200)}",
        Kind.MEMBER_STARTED: f"{name} starts",
        Kind.MEMBER_CLOSED: f"{name} has closed",
    }
    return texts.get(event.kind, event.kind.value.replace("-", " ") + (f" {place}" if place else ""))


def _fault_deed(event: Event) -> str:
    """The begin, proof or end of a fault: `m1 is paused`, `the pause of m1 ends`."""
    kind, target = kind_of(event), event.of("target")
    if event.kind is Kind.FAULT_BEGAN:
        return f"{target} {kind.suffers}"
    if event.kind is Kind.FAULT_BIT:
        return f"the {kind.noun} of {target} is proven: {event.of('proof')}"
    return f"the {kind.noun} of {target} ends"


def _wants(event: Event) -> str:
    """The partitions that a member wants, as text."""
    wants = event.of("wants")
    places = [f"{each[0]}/{each[1]}" for each in wants] if isinstance(wants, list | tuple) else []
    return listed(places) if places else "nothing"


def _missed(event: Event) -> str:
    return "the runner gives up" if event.of("gave_up") is True else "the group does not come to rest"
