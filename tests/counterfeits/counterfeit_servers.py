"""Simulated servers that do not do at a session's end what ZooKeeper does, and recorders that do not
see it. Each function returns what makes a history of a trial from a seed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

from counterfeit import trial

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.transactions import RegistryTracker, Transaction
from rebalance_lab.world.simulated.tree import Tree

Make = Callable[[int], History]

#: Of a session's ephemeral znodes, by path, those that stay when it ends.
Kept = Callable[[Sequence[str]], Collection[str]]


def owners(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if "/owners/" in path]


def ids(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if "/ids/" in path]


def keeps(
    kept: Kept, *, claims: bool = False, scenario: str = "crash", settings: Mapping[str, str] | None = None
) -> Make:
    """A server at which some znodes outlive their session, as if they were persistent. `claims`: its
    log lists them nevertheless. `settings`: of the trials."""
    honest = Tree.close

    def close(tree: Tree, session_id: int, zxid: int) -> list[str]:
        held = sorted(tree.ephemerals.get(session_id, ()))
        for path in kept(held):
            node = tree.nodes[path]
            node.owner = 0
            node.changed()
            del tree.ephemerals[session_id][path]
        removed = honest(tree, session_id, zxid)
        return held if claims else removed

    def make(seed: int) -> History:
        with patch.object(Tree, "close", close):
            return trial(scenario, seed, settings=dict(settings or {}))

    return make


def unlisted(make: Make) -> Make:
    """The same trials with the log of a server before ZooKeeper 3.6: it does not list what goes with
    a session."""
    feed = RegistryTracker.feed

    def blind(tracker: RegistryTracker, transaction: Transaction) -> list[Event]:
        return feed(tracker, replace(transaction, removed=None))

    def made(seed: int) -> History:
        with patch.object(RegistryTracker, "feed", blind):
            return make(seed)

    return made


def recorded(make: Make, keep: Callable[[Event], bool]) -> Make:
    """The same trials by a recorder that loses events."""

    def made(seed: int) -> History:
        history = make(seed)
        return History(history.trial, tuple(event for event in history.events if keep(event)))

    return made


def crash(seed: int) -> History:
    """A member is killed at a server that does what ZooKeeper does."""
    return trial("crash", seed)
