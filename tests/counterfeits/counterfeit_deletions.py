"""A server that deletes a session's znodes one by one, as if its client had asked, for counterfeits of Z1."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

from counterfeit import trial

from rebalance_lab.history.files import History
from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.simulated.authority import Authority


def one_by_one(seed: int, which: Callable[[str], bool]) -> History:
    """A crash. At the end of each session the server logs an ordinary deletion of each of its znodes whose path is
    `which`, then closes the session with those that are left."""
    end = Authority.end

    def ends(server: Authority, session, cxid):
        gone = [path for path in sorted(server.tree.ephemerals.get(session.id, ())) if which(path)]
        for path in gone:
            server.tree.remove(path, server.zxid + 1)
            deleted = server._record(session.id, cxid, TransactionKind.DELETE, path=path)
            server._log((deleted,))
        return gone + end(server, session, cxid)

    with patch.object(Authority, "end", ends):
        return trial("crash", seed)
