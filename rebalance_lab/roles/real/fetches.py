"""The effect of a real member: what its fetchers ask the broker for."""

from __future__ import annotations

import re

from rebalance_lab.history.events import Kind
from rebalance_lab.roles.real.teller import Teller
from rebalance_lab.world.kafka.log_file import LogLine

_FETCH = re.compile(r"\[(\S+)\], Issuing to broker \d+ of fetch request .*?RequestInfo: (.*)$")
_STOPPING = re.compile(r"\[(\S+)\], Shutting down$")
_PART = re.compile(r"\[([^\[\],]+),(\d+)\] -> ")


class Fetches:
    """WORKED for each partition of each fetch request, at most two each `work_period_ms`; one with `last` when the
    fetcher is shut down, which interrupts its request. That one is no fetch: `history.intervals` lets it end a run."""

    def __init__(self, teller: Teller, work_period_ms: int) -> None:
        self._teller = teller
        self._period_ms = work_period_ms
        self._fetched: dict[str, list[tuple[str, int]]] = {}
        self._told_ms: dict[tuple[str, int], int] = {}

    def read(self, line: LogLine) -> None:
        """A line of a fetcher."""
        if (found := _FETCH.match(line.message)) is not None:
            places = [(topic, int(partition)) for topic, partition in _PART.findall(found[2])]
            self._fetched[found[1]] = places
            for place in places:
                if line.wall_ms - self._told_ms.get(place, -self._period_ms) >= self._period_ms // 2:
                    self._told_ms[place] = line.wall_ms
                    self._teller.tell(Kind.WORKED, place=place)
        elif (found := _STOPPING.match(line.message)) is not None:
            for place in self._fetched.pop(found[1], ()):
                self._told_ms.pop(place, None)
                self._teller.tell(Kind.WORKED, {"last": True}, place=place)
