"""The words for faults and for changes of a group.

A member that joins, a broker that goes and a topic that grows are injected and proven like faults,
but they break nothing: they are called changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.events import Event, Kind


@dataclass(frozen=True, slots=True)
class FaultWords:
    """The words for one fault.

    - `noun`: its name. `suffers`: what happens to its target, as a sentence's predicate; `many`: the
      same for several targets.
    - `band`: the same, short, to follow the target's name.
    - `begins`, `ends`: labels of its begin and end in a diagram, before the target's name. An empty
      `ends` is not drawn.
    - `alone`: why it is normal by itself. `change`: whether it is a change, which breaks nothing.
    """

    noun: str
    suffers: str
    band: str
    begins: str
    ends: str
    many: str
    alone: str
    change: bool = False


_LEAVE = FaultWords("leave", "leaves cleanly", "leaves", "leaves:", "", "leave cleanly", "Members leave.", change=True)
_BROKER = "Brokers come and go, as machines do."

#: By the fault's name.
FAULTS = {
    "join": FaultWords("join", "joins", "joins", "joins:", "", "join", "Members come.", change=True),
    "leave": _LEAVE,
    "restart": FaultWords(
        "restart",
        "is started again",
        "starts again",
        "starts again:",
        "",
        "are started again",
        "Supervisors start dead processes again.",
        change=True,
    ),
    "pause": FaultWords(
        "pause",
        "is paused",
        "paused",
        "pauses",
        "wakes",
        "are paused",
        "Processes stop now and then: for garbage collection, swapping, or a virtual machine's migration.",
    ),
    "kill": FaultWords("kill", "is killed", "killed", "kills", "", "are killed", "Processes die."),
    "cut": FaultWords(
        "cut",
        "is cut off from ZooKeeper",
        "cut off",
        "cuts off",
        "heals",
        "are cut off",
        "Networks lose messages without notice.",
    ),
    "expire": FaultWords(
        "expiry",
        "loses its session while it is alive",
        "session ended",
        "expires",
        "",
        "lose their session",
        "A server may end any session; the member learns of it when it speaks to a server again.",
    ),
    "lag": FaultWords(
        "lag",
        "lags behind the other ZooKeeper servers",
        "lags",
        "holds back",
        "catches up:",
        "lag",
        "ZooKeeper promises that all servers see changes in the same order, not at the same time.",
    ),
    "lose-reply": FaultWords(
        "lost reply",
        "does not get the reply to a request that was carried out",
        "reply lost",
        "loses reply:",
        "",
        "lose a reply",
        "A connection may break between a request and its reply.",
    ),
    "server-kill": FaultWords("outage", "is down", "down", "kills", "restarts", "are down", "Servers die."),
    "server-pause": FaultWords(
        "standstill", "stands still", "stands still", "stops", "wakes", "stand still", "Servers stop now and then."
    ),
    "duplicate-id": FaultWords(
        "duplicate id",
        "gets a twin: another member starts with its id",
        "gets a twin",
        "twin of",
        "",
        "get a twin",
        "Nothing checks that an id set by hand is unique.",
    ),
    "obstacle": FaultWords(
        "obstacle",
        "has a foreign znode where its owner znodes belong",
        "obstructed",
        "obstructs",
        "clears",
        "are obstructed",
        "Any program may create a znode anywhere.",
    ),
}


def fault_words(event: Event) -> FaultWords:
    """The words for a fault, given one of its events; made from its name if it is not in FAULTS."""
    name, target = str(event.of("fault")), str(event.of("target"))
    if name == "broker":
        return _broker(comes=event.of("comes") is not False)
    if name == "topic":
        return _topic(target, event)
    said = name.replace("_", " ").replace("-", " ")
    fallback = FaultWords(said, f"suffers {said}", said, f"{said}:", f"{said} ends:", f"suffer {said}", "It happens.")
    return FAULTS.get(name, fallback)


def fault_told(event: Event) -> str:
    """The begin, proof or end of a fault in a few words: `m1 is paused`, `the pause of m1 ends`."""
    words, target = fault_words(event), event.of("target")
    if event.kind is Kind.FAULT_BEGAN:
        return f"{target} {words.suffers}"
    if event.kind is Kind.FAULT_BIT:
        return f"the {words.noun} of {target} is proven: {event.of('proof')}"
    return f"the {words.noun} of {target} ends"


def _broker(*, comes: bool) -> FaultWords:
    turn = "comes" if comes else "goes"
    return FaultWords("change", turn, turn, f"{turn}:", "", turn.removesuffix("s"), _BROKER, change=True)


def _topic(target: str, event: Event) -> FaultWords:
    partitions, before = event.of("partitions"), event.of("before")
    verb = f"grows to {partitions} partitions" if before else f"comes, with {partitions} partitions"
    words = "A topic gets more partitions when it has too few."
    return FaultWords("change", verb, f"has {partitions}", "topic:", "", "change", words, change=True)
