"""The outside observer of Z1: does it see the ids that the registry holds?"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.znodes import Kill, Violation, Znode
from rebalance_lab.history.events import Event, Kind


def disagreements(events: Sequence[Event], ids: Sequence[Znode]) -> list[Violation]:
    """Observations that lack an id which was surely there, or show one which surely was not.

    Only members of the trial count: those that registered or started in it. Others may have
    been there before its first transaction.
    """
    lives: dict[tuple[str, str], list[Znode]] = {}
    for event in events:
        if event.kind is Kind.MEMBER_STARTED and event.member is not None:
            lives[_ids_path(event.group or ""), event.member] = []
    for znode in ids:
        lives.setdefault((_ids_path(znode.group), znode.member), []).append(znode)
    return [
        violation
        for event in events
        if event.kind is Kind.OBSERVED
        for (path, member), znodes in lives.items()
        if path == event.of("path") and (violation := _disagreement(event, member, znodes)) is not None
    ]


def unseen_crashes(events: Sequence[Event], crashes: Sequence[Kill]) -> list[str]:
    """Kills of which the outside did not see both sides: doubts, not violations."""
    observed = [event for event in events if event.kind is Kind.OBSERVED]
    doubts: list[str] = []
    for crash in crashes:
        own = crash.registered
        if own is None:
            doubts.append(f"{crash.member} was not registered when it was killed")
            continue
        views = [event for event in observed if event.of("path") == _ids_path(own.group)]
        if not any(own.surely_there_at(view) and view.at_us <= crash.began.at_us for view in views):
            doubts.append(f"nobody observed {crash.member} before its kill")
        if not any(own.surely_gone_by(view) for view in views):
            doubts.append(f"nobody observed the ids after {crash.member} was gone")
    return doubts


def _disagreement(observed: Event, member: str, znodes: list[Znode]) -> Violation | None:
    children = observed.of("children")
    by_time = observed.zxid is None
    seen = isinstance(children, list | tuple) and member in children
    there = next((znode for znode in znodes if znode.surely_there_at(observed)), None)
    if there is not None and not seen:
        why = f"the outside observer did not see {there.path}, which was there"
        return Violation(why, (there.created.id, observed.id), there.rank, by_time)
    if seen and not any(znode.maybe_there_at(observed) for znode in znodes):
        gone = [znode for znode in znodes if znode.surely_gone_by(observed)]
        if not gone or gone[-1].deleted is None:
            why = f"the outside observer saw {member}, which the registry never held by then"
            return Violation(why, (observed.id,), observed.zxid or 0, by_time and bool(znodes))
        last = gone[-1]
        why = f"the outside observer saw {last.path}, which was gone"
        return Violation(why, (last.created.id, gone[-1].deleted.id, observed.id), last.rank, by_time)
    return None


def _ids_path(group: str) -> str:
    return f"/consumers/{group}/ids"
