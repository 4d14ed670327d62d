"""The report's words: what an event is, why it is fine alone, and why several are wrong together."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind

#: Why the events of a witness are wrong together, by check.
TOGETHER = {
    "belief_overlap": (
        "Two members hold the same partition in their memory at one moment. The registry cannot prevent it: "
        "it has one owner, but nobody tells the other member before it asks."
    ),
    "effect_overlap": (
        "Two members work on the same partition at one moment. Whatever they read is read twice, and nothing "
        "fences the one that is no longer owner."
    ),
    "registry_overlap": (
        "The registry has two owners of one partition. A znode cannot have two, so either the recording has a hole "
        "or the server is broken: believe nothing else in this trial before that is cleared up."
    ),
    "unowned_window": (
        "Members live and the group has had its time, and still nobody owns the partition. Its messages wait."
    ),
    "registration": (
        "A registration and the owner znodes must vanish exactly with their session. Here they did not, "
        "so others see a member that is gone, or miss one that lives."
    ),
}

#: Why an event is fine alone, by kind.
ALONE = {
    Kind.OWNED: "A member owns what it has just claimed: its create of the owner znode succeeded.",
    Kind.DISOWNED: "A member gives up before it sends the release, so nobody can be given it too early.",
    Kind.WORKED: "A member works on what it claimed until its own rebalance stops its fetchers.",
    Kind.SESSION_OPENED: "A member that connects gets a session.",
    Kind.SESSION_CLOSED: "A server closes a session it has heard nothing from for the timeout, or on request.",
    Kind.CREATED: "A create succeeds when no znode stands there.",
    Kind.CHANGED: "A write without a version always succeeds.",
    Kind.DELETED: "Ephemeral znodes go with their session; an owner may also delete its own.",
    Kind.FAILED: "ZooKeeper refuses what its rules forbid.",
    Kind.FAULT_BEGAN: "Processes stop now and then: garbage collection, swapping, a moved virtual machine.",
    Kind.FAULT_BIT: "The proof that the fault took effect.",
    Kind.FAULT_ENDED: "A process that was stopped goes on where it was, and knows nothing of the time between.",
    Kind.CONNECTED: "A client reconnects when it can.",
    Kind.DISCONNECTED: "Connections break; a session outlives that.",
    Kind.EXPIRED: "A client learns of its expiry only when it speaks to a server again.",
    Kind.MEMBER_STARTED: "Members join.",
    Kind.MEMBER_CLOSED: "Members leave.",
    Kind.OBSERVED: "An outside session reads what stands there.",
}

_FALLBACK_TOGETHER = "Each event is allowed alone; together they break the rule above."
_FALLBACK_ALONE = "Allowed by itself."


def together(check: str) -> str:
    """Why a violation of the check is wrong, in a sentence or two."""
    return TOGETHER.get(check.replace("-", "_"), _FALLBACK_TOGETHER)


def alone(event: Event) -> str:
    """Why the event is fine alone."""
    if event.kind is Kind.FAULT_BEGAN and event.of("fault") == "leave":
        return "Members leave."
    return ALONE.get(event.kind, _FALLBACK_ALONE)


def title(check: str) -> str:
    """A check's name for people: `Belief overlap`."""
    words = check.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]


def deed(event: Event, name: str) -> str:
    """What the event is, in a few words; `name` is the short name of the member it is about."""
    place = "" if event.topic is None else f"{event.topic}/{event.partition}"
    path = str(event.of("path") or "")
    fault, target = event.of("fault"), event.of("target")
    texts = {
        Kind.OWNED: f"{name} now believes it owns {place}",
        Kind.DISOWNED: f"{name} no longer believes it owns {place}",
        Kind.WORKED: f"{name} works on {place}",
        Kind.SESSION_OPENED: f"session {event.session} opens",
        Kind.SESSION_CLOSED: f"ZooKeeper closes session {event.session}" + (f" of {name}" if name else ""),
        Kind.CREATED: f"{path} is created" + (f" for {name}" if name else ""),
        Kind.CHANGED: f"{path} is written" + (f" for {name}" if name else ""),
        Kind.DELETED: f"{path} is deleted" + (" with its session" if event.of("with_session") else ""),
        Kind.FAILED: f"a write is refused (code {event.of('code')})",
        Kind.FAULT_BEGAN: f"{fault} of {target} begins",
        Kind.FAULT_BIT: f"{fault} of {target} is proven: {event.of('proof')}",
        Kind.FAULT_ENDED: f"{fault} of {target} ends",
        Kind.CONNECTED: f"{name or event.actor} is connected, session {event.session}",
        Kind.DISCONNECTED: f"{name or event.actor} loses its connection",
        Kind.EXPIRED: f"{name or event.actor} learns that session {event.session} is gone",
        Kind.OBSERVED: f"an outside session reads {path}: {event.of('children')}",
        Kind.MEMBER_STARTED: f"{name} starts",
        Kind.MEMBER_CLOSED: f"{name} has closed",
    }
    return texts.get(event.kind, event.kind.value.replace("-", " ") + (f" {place}" if place else ""))
