"""A herd of which the half that owns nothing sleeps through every change."""

from __future__ import annotations

from counterfeit import trial
from counterfeit_forging import without

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.views import CLOSING

#: Eight members on four partitions, dealt in the order of their names.
PLAN = {"members": "8", "partitions": "4", "fetcher_stop_ms": "0"}
SLEEPERS = ("m5", "m6", "m7", "m8")


def awake(seed: int) -> History:
    return trial("herd", seed, settings=PLAN)


def half_asleep(seed: int) -> History:
    """Its sleepers do nothing from the first change to the closing: they own nothing, so nobody misses them."""
    history = awake(seed)
    phases = {str(event.of("name")): event.at_us for event in history.events if event.kind == "phase"}
    begin_us, end_us = phases["one joins"], phases[CLOSING]

    def slept(event: Event) -> bool:
        return event.actor in SLEEPERS and begin_us <= event.at_us < end_us

    return without(history, slept)
