"""The report's words: what an event is, why it is fine alone, and why several are wrong together."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.report.faultwords import fault_told, fault_words
from rebalance_lab.report.text import listed, shortened

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
        "A registration and the owner znodes must live exactly as long as their session. Here they did not, so others "
        "see a member that is gone, or miss one that lives."
    ),
    "zombie_overlap": (
        "ZooKeeper has buried the member and given its partitions away, and it goes on: nothing reaches it before it "
        "speaks to a server again, and nothing checks what it does meanwhile."
    ),
    "orphan_owner": (
        "The owner znode says that the partition is taken, so nobody else claims it; but who is named there is gone, "
        "or knows nothing of it. It lasts until that session ends."
    ),
    "omission": (
        "The group is at rest and every member believes that all is well, and still a partition has no owner that "
        "reads it. Nobody will notice: nothing changes any more that could make them look again."
    ),
    "stays_wrong": (
        "A member that has no attempts left does nothing more, and stays registered. The others count it and leave "
        "it its share, and nobody tells anybody that nobody owns that share."
    ),
    "non_convergence": (
        "Every member follows the rule, sees a conflict, and tries again as the others do. Nobody knows whether the "
        "others have succeeded, so nobody can tell waiting from waiting for ever."
    ),
    "disagreement": (
        "Each is sure of its share. But they dealt from lists that differ, and nothing binds them to one another: so "
        "their shares overlap, or leave a hole."
    ),
    "contradiction": (
        "Both dealt from the same list, by rules that differ. Each is sure of its share, and their shares overlap or "
        "leave a hole: no retry mends that."
    ),
    "hold_and_wait": (
        "Each member waits for a partition that the next one holds, and gives up nothing while it waits. None of them "
        "can go on before another does."
    ),
    "missed_watch": (
        "A watch fires once, and a change that comes before it is set again is not told. The member goes on with a "
        "view of the group that is no longer true."
    ),
    "churn": (
        "Every member gives up all it owns and takes it again, whatever changed: what need not move is interrupted "
        "all the same."
    ),
    "herd_cost": (
        "Every member watches the same list, reads everything at the same moment and tells nobody: the cost grows "
        "with the square of the group."
    ),
    "conflict_cost": (
        "A member that was not fetching claims at once, and meets the owner znodes of members whose fetchers have yet "
        "to stop: its attempt fails, and everything is read again."
    ),
    "broker_change_noticed": "A member that does not hear of brokers keeps to what it has, and does not rebalance.",
    "default_group": (
        "A member that names no group has to be in some group all the same, or it cannot share topics with anybody: it "
        "is refused, or it is alone in a group of its own."
    ),
    "group_is_global": (
        "Who rebalances for whom is a matter of the group alone. A member that does not hear of others that read other "
        "topics is not told of its group's changes at all."
    ),
    "kept_claims": (
        "A member that waits for what another has, and keeps what it claimed itself, may be what the other waits for."
    ),
    "order_in_rebalance": "A member that claims before it has given up holds what another may already wait for.",
    "startup_order": "What a member does before it watches, it may do on a view that has already changed.",
    "ceil_rule": (
        "Range gives the first members one partition more; N = ceil(P/C) gives each N, and the last ones what is left."
    ),
    "published_rows": "The published walk-through has another row here: rule and example do not agree.",
}

#: Statements that checks put to the test, in words that can hold or fail.
STATEMENTS = {
    "churn": "A change moves no more partitions than it must, and interrupts none that stays",
    "herd_cost": "Reads, writes, notifications and rebalances of each change are those of the formula",
    "conflict_cost": "No change costs more reads or writes than the formula, even where claims conflict",
    "broker_change_noticed": "Every member rebalances when a broker comes or goes",
    "default_group": "Members that name no group are all in one, the default group",
    "group_is_global": "Members rebalance for others of their group with which they share no topic",
    "kept_claims": "Members give back what they claimed before they wait to try again",
    "order_in_rebalance": "Members give up all they own before they take their share",
    "startup_order": "A member registers, watches ids, watches brokers, then rebalances",
    "ceil_rule": "Each member gets N = ceil(P/C) partitions, the i-th those from iN to (i+1)N-1",
    "published_rows": "After each step the ownership is that of the published walk-through",
}

#: Changes of a group at rest, by the name that their phases bear.
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
    Kind.DISOWNED: "A member gives up before it sends the release, so nobody can be given it too early.",
    Kind.WORKED: "A member works on what it claimed until its own rebalance stops its fetchers.",
    Kind.SESSION_OPENED: "A member that connects gets a session.",
    Kind.SESSION_CLOSED: "A server closes a session it has heard nothing from for the timeout, or on request.",
    Kind.CREATED: "A create succeeds when no znode stands there.",
    Kind.CHANGED: "A write without a version always succeeds.",
    Kind.DELETED: "Ephemeral znodes go with their session; an owner may also delete its own.",
    Kind.FAILED: "ZooKeeper refuses what its rules forbid.",
    Kind.FAULT_BIT: "The proof that the fault took effect.",
    Kind.FAULT_ENDED: "A process that was stopped goes on where it was, and knows nothing of the time between.",
    Kind.CONNECTED: "A client reconnects when it can.",
    Kind.DISCONNECTED: "Connections break; a session outlives that.",
    Kind.EXPIRED: "A client learns of its expiry only when it speaks to a server again.",
    Kind.MEMBER_STARTED: "Members join.",
    Kind.MEMBER_CLOSED: "Members leave.",
    Kind.OBSERVED: "An outside session reads what stands there.",
    Kind.MEMBER_CLOSING: "Members leave.",
    Kind.INVOKED: "A member asks ZooKeeper for what its rule needs.",
    Kind.OK: "ZooKeeper did what it was asked.",
    Kind.FAILED_OP: "ZooKeeper refuses a create where a znode stands: that is what keeps owners apart.",
    Kind.INFO: "A connection that breaks leaves open whether a request was done.",
    Kind.WATCH_FIRED: "A watch fires once, after the change.",
    Kind.NOTIFICATION_QUEUED: "One thread hands all notifications out, one after another.",
    Kind.NOTIFICATION_HANDLED: "One thread hands all notifications out, one after another.",
    Kind.REBALANCE_TRIGGERED: "Several triggers make one rebalance: each reads everything anyway.",
    Kind.REBALANCE_BEGAN: "A member rebalances whenever something it watches has changed.",
    Kind.ATTEMPT_BEGAN: "An attempt that failed is tried again, up to rebalance.max.retries in all.",
    Kind.DECIDED: "Each member deals by itself, from what it has just read.",
    Kind.ATTEMPT_FAILED: "A member whose claim meets another's takes its claims back and waits.",
    Kind.REBALANCE_ENDED: "A rebalance ends when an attempt succeeds, or when there are no more.",
    Kind.WARNED: "Kafka logs it and goes on.",
    Kind.REST_REACHED: "The group was quiet for its time, and no member had anything to do.",
    Kind.REST_MISSED: "The runner waits only so long.",
    Kind.PHASE: "The experiment goes on.",
    Kind.TRIAL_ENDED: "The recording ends.",
}


_FALLBACK_TOGETHER = "Each event is allowed alone; together they break the rule above."
_FALLBACK_ALONE = "Allowed by itself."


def together(check: str) -> str:
    """Why a violation of the check is wrong, in a sentence or two."""
    return TOGETHER.get(check.replace("-", "_"), _FALLBACK_TOGETHER)


def alone(event: Event) -> str:
    """Why the event is fine alone."""
    if event.kind is Kind.FAULT_BEGAN or (event.kind is Kind.FAULT_ENDED and event.of("fault") != "pause"):
        return fault_words(event).alone
    return ALONE.get(event.kind, _FALLBACK_ALONE)


#: Checks whose names are not simply their words.
TITLES = {
    "non_convergence": "Non-convergence",
    "startup_order": "Start-up order",
    "order_in_rebalance": "Order within a rebalance",
}


def title(check: str) -> str:
    """A check's name for people: `Belief overlap`."""
    if check in TITLES:
        return TITLES[check]
    words = check.replace("_", " ").replace("-", " ")
    return words[:1].upper() + words[1:]


def statement(check: str) -> str:
    """What a check of that name states; its name where nothing more is known."""
    return STATEMENTS.get(check, title(check))


def deed(event: Event, name: str) -> str:
    """What the event is, in a few words; `name` is the short name of the member it is about."""
    place = "" if event.topic is None else f"{event.topic}/{event.partition}"
    path = str(event.of("path") or "")
    if event.layer is Layer.FAULT:
        return fault_told(event)
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


def _wants(event: Event) -> str:
    """The partitions that a member has dealt itself."""
    wants = event.of("wants")
    places = [f"{each[0]}/{each[1]}" for each in wants] if isinstance(wants, list | tuple) else []
    return listed(places) if places else "nothing"


def _missed(event: Event) -> str:
    return "the runner gives up" if event.of("gave_up") is True else "the group does not come to rest"
