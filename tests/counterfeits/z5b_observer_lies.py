"""Z5b: an outside observer that says what the rule says, and not what the registry holds."""

from __future__ import annotations

import msgspec
from counterfeit import Counterfeit, trial

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History


def _false(seed: int) -> History:
    history = trial("rule", seed, rules="shipped")
    members: list[str | None] = []
    by_rule: dict[str, str] = {}
    events = []
    for event in history.events:
        owners = event.of("owners")
        if event.kind is Kind.MEMBER_STARTED:
            members.append(event.member)
        elif event.kind is Kind.PHASE:
            published = event.of("published")
            rows = published if isinstance(published, list) else []
            by_rule = {str(number): str(row) for row, shares in enumerate(rows) for _, number in shares}
        elif event.kind is Kind.OBSERVED and isinstance(owners, dict):
            said = {each: f"{members[int(by_rule[each])]}-0" if each in by_rule else owners[each] for each in owners}
            event = msgspec.structs.replace(event, detail={**(event.detail or {}), "owners": said})  # noqa: PLW2901
        events.append(event)
    return History(history.trial, tuple(events))


COUNTERFEIT = Counterfeit(
    claim="Z5b",
    check="published_rows",
    world="Members deal by range, and so says the transaction log; the outside observer's events say what "
    "the rule says.",
    false=_false,
    honest=lambda seed: trial("rule", seed),
)
