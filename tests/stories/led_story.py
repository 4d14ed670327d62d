"""A partition of two replicas and its leader, for checks of elections: brokers 1, 2 and 3; 3 is the controller, and 1
leads."""

from __future__ import annotations

from typing import Any

from broker_story import Brokers

#: When a leader is dead according to ZooKeeper, if nothing else is said.
DIED = 2000


class LedPartition(Brokers):
    """The partition is t-0. `options`: those of a Story."""

    def __init__(self, *, has_state: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.registrations = {number: self.registered(number, number) for number in (1, 2, 3)}
        self.controllers = [self.elected(10, 3, 1)]
        self.assignment = self.assigned(20, 1, 2)
        self.stood = self.state(30, 1, 0, 1, 2) if has_state else self.assignment

    def died(self, ms: float = DIED, number: int = 1) -> None:
        self.killed(ms - 500, f"b{number}")
        self.unregistered(ms, number)
