"""The kinds of faults: what checks need to know of each, and its words in reports.

The module that carries out a fault declares its kind, and a history names the kind in the fault's events. A kind that
is not declared counts as a fault that lasts and does harm, and gets words made from its name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from rebalance_lab.history.events import Event

#: The package whose modules declare faults. It is imported by name, because faults import this module.
FAULT_PACKAGE = "rebalance_lab.faults"


#: In the words of a fault on a link, the other end.
OTHER_END = "another node"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """One kind of fault.

    What checks need to know:

    - `name`: as the events of the fault have it.
    - `momentary`: it happens at a moment, or does not harm a member. A group has to cope with what follows it. Any
      other fault disturbs the group until it ends.
    - `spares_connections`: it never costs a member its connection.
    - `in_controls`: a control may contain it.

    The words of reports:

    - `noun`: what it is called. `suffers`: what happens to its target, as a sentence's predicate; `many`: the same for
      several targets.
    - `band`: the same, short, to follow the target's name.
    - `begins`, `ends`: labels of its begin and end in a diagram, before the target's name. Without `ends` it is drawn
      as a moment.
    - `alone`: why it is normal by itself.
    - `change`: whether it is called a change: a member that joins or a topic that grows breaks nothing.
    - `of_event`: for words that depend on the fault's events, the kind with the words for one of them.
    """

    name: str
    noun: str
    suffers: str
    many: str
    band: str
    begins: str
    ends: str = ""
    alone: str
    momentary: bool = False
    spares_connections: bool = False
    in_controls: bool = False
    change: bool = False
    of_event: Callable[[FaultKind, Event], FaultKind] | None = None

    def suffers_from(self, peer: str | None) -> str:
        """What happens to its target, with the other end of the link that it is on; None: it is on none."""
        return self.suffers if peer is None else self.suffers.replace(OTHER_END, peer)


@cache
def fault_kinds() -> Mapping[str, FaultKind]:
    """All kinds by name. Raises ValueError if two have one name."""
    package = importlib.import_module(FAULT_PACKAGE)
    found: dict[str, FaultKind] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{FAULT_PACKAGE}.{info.name}")
        for kind in vars(module).values():
            if isinstance(kind, FaultKind) and found.setdefault(kind.name, kind) is not kind:
                raise ValueError(f"two faults are named {kind.name}; rename the one in {module.__name__}")
    return found


def kind_of(event: Event) -> FaultKind:
    """The kind of fault that a FAULT_BEGAN, FAULT_BIT or FAULT_ENDED names."""
    name = str(event.of("fault"))
    kind = fault_kinds().get(name) or _undeclared(name)
    return kind if kind.of_event is None else kind.of_event(kind, event)


def _undeclared(name: str) -> FaultKind:
    said = name.replace("_", " ").replace("-", " ")
    return FaultKind(
        name=name,
        noun=said,
        suffers=f"suffers {said}",
        many=f"suffer {said}",
        band=said,
        begins=f"{said}:",
        ends=f"{said} ends:",
        alone="It happens.",
    )
