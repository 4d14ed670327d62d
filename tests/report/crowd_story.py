"""A large group by hand: everybody owns one partition; one overlap and one gap, known to the millisecond."""

from __future__ import annotations

from typing import Any

from zombie_story import GROUP, Script, member_id, session_of, trial_of

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, merge

#: m2 believes it owns m1's partition, too, and partition 7 has no owner, in these seconds.
OVERLAP = (4.0, 5.0)
GAP = (3.0, 4.5)
END_S = 8.0


def crowd_events(members: int) -> tuple[Event, ...]:
    script = Script("t1")
    script.emit(0, "runner", Kind.TRIAL_BEGAN)
    names = [f"m{number + 1}" for number in range(members)]
    for place, name in enumerate(names):
        at_s = 0.1 + 0.0001 * place
        script.emit(at_s, name, Kind.MEMBER_STARTED, member=member_id(name))
        script.registry(at_s, Kind.SESSION_OPENED, session=session_of(name), timeout_ms=2000)
        script.emit(at_s, name, Kind.CONNECTED, session=session_of(name))
        path = f"/consumers/{GROUP}/ids/{member_id(name)}"
        fields: dict[str, Any] = {
            "session": session_of(name),
            "member": member_id(name),
            "path": path,
            "ephemeral": True,
        }
        script.registry(at_s + 0.02, Kind.CREATED, **fields)
        script.emit(at_s + 0.05, name, Kind.REBALANCE_BEGAN, member=member_id(name))
        script.own(0.5, name, [place])
        script.emit(0.52, name, Kind.REBALANCE_ENDED, member=member_id(name), outcome="ok")
    script.emit(2.0, "runner", Kind.REST_REACHED, phase="joined")
    script.disown(GAP[0], "m8", [7])
    script.own(GAP[1], "m9", [7])
    where = {"member": member_id("m2"), "topic": "t1", "partition": 0}
    script.emit(OVERLAP[0], "m2", Kind.OWNED, **where)
    script.emit(OVERLAP[1], "m2", Kind.DISOWNED, **where)
    script.emit(7.0, "runner", Kind.REST_REACHED, phase="after")
    script.emit(END_S - 0.5, "runner", Kind.PHASE, name="closing")
    script.emit(END_S, "runner", Kind.TRIAL_ENDED)
    return merge(script.events)


def crowd(members: int) -> History:
    trial = trial_of(f"crowd-{members}", "t1", 6, control=True)
    return History(trial, crowd_events(members))


__all__ = ["END_S", "GAP", "GROUP", "OVERLAP", "crowd"]
