"""Listeners: what ZkClient calls on its event task, one after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from rebalance_lab.history.events import EventId


class ZkTimeoutException(Exception):
    """No session within the connection timeout. The text is ZkClient's."""


class ChildListener(Protocol):
    async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
        """`children`: what a read after the change found; None when the znode is gone."""
        ...


class DataListener(Protocol):
    async def handle_data_change(self, path: str, data: bytes) -> None: ...
    async def handle_data_deleted(self, path: str) -> None: ...


class StateListener(Protocol):
    async def handle_new_session(self) -> None:
        """The session expired and a new one is being opened: ephemeral znodes are gone."""
        ...


@dataclass(frozen=True, slots=True)
class Notification:
    """A call that waits on the event queue. `queued`: the event that says so."""

    what: str
    path: str
    queued: EventId
    call: Callable[[], Awaitable[None]]
