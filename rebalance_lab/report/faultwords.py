"""What happens to a group from outside, in plain words: faults, and changes that are none.

A member that joins, a broker that goes and a topic that grows are injected and proven as faults
are, but nothing is broken by them: people read them as changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.events import Event, Kind


@dataclass(frozen=True, slots=True)
class FaultWords:
    """`noun`: the thing itself; `suffers`: what its target does or suffers, in a sentence; `band`:
    the same, short, behind the target's name; `begins`, `ends`: its turns in a diagram, before the
    target's name (an empty end is not told); `many`: `suffers` of several, after their number;
    `alone`: why it is fine; `change`: nothing is broken by it."""

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
    "pause": FaultWords(
        "pause",
        "is paused",
        "paused",
        "pauses",
        "wakes",
        "are paused",
        "Processes stop now and then: garbage collection, swapping, a moved virtual machine.",
    ),
    "kill": FaultWords("kill", "is killed", "killed", "kills", "", "are killed", "Processes die."),
    "cut": FaultWords(
        "cut",
        "is cut off from ZooKeeper",
        "cut off",
        "cuts off",
        "heals",
        "are cut off",
        "Networks lose what they carry, and tell nobody.",
    ),
    "expire": FaultWords(
        "expiry",
        "loses its session, though it lives",
        "session ended",
        "expires",
        "",
        "lose their session",
        "A server may end any session; the member hears of it when it speaks to a server again.",
    ),
    "lag": FaultWords(
        "lag",
        "lags behind the other ZooKeeper servers",
        "lags",
        "holds back",
        "catches up:",
        "lag",
        "ZooKeeper promises that all servers see one order, not that all are equally far.",
    ),
    "lose-reply": FaultWords(
        "lost reply",
        "never gets the reply to a request that was done",
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
        "Nobody checks that an id set by hand is the only one.",
    ),
    "obstacle": FaultWords(
        "obstacle",
        "has a foreign znode where its owners belong",
        "obstructed",
        "obstructs",
        "clears",
        "are obstructed",
        "Any program may create a znode where it likes.",
    ),
}


def fault_words(event: Event) -> FaultWords:
    """The words for a fault, from one of its events; one that has none here is called by its name."""
    name, target = str(event.of("fault")), str(event.of("target"))
    if name == "broker":
        return _broker(comes=event.of("comes") is not False)
    if name == "topic":
        return _topic(target, event)
    said = name.replace("_", " ").replace("-", " ")
    fallback = FaultWords(said, f"suffers {said}", said, f"{said}:", f"{said} ends:", f"suffer {said}", "It happens.")
    return FAULTS.get(name, fallback)


def fault_told(event: Event) -> str:
    """A fault's begin, proof or end in a few words: `m1 is paused`, `the pause of m1 ends`."""
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
    words = "More partitions are asked for when a topic has too few."
    return FaultWords("change", verb, f"has {partitions}", "topic:", "", "change", words, change=True)
