"""Z1: a server that takes a session's znodes away a moment before the session ends."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.simulated.authority import Authority
from rebalance_lab.world.simulated.settings import wall_ms

_end = Authority.end


def _one_by_one(server: Authority, session, cxid):  # type: ignore[no-untyped-def]
    """Log an ordinary deletion of each znode, then close the session, which has none left."""
    gone = sorted(server.tree.ephemerals.get(session.id, ()))
    for path in gone:
        server.tree.remove(path, server.zxid + 1)
        deleted = server._record(session.id, cxid, TransactionKind.DELETE, wall_ms(server._now_us()), path=path)
        server._log((deleted,))
    return gone + _end(server, session, cxid)


def _false(seed: int) -> History:
    with patch.object(Authority, "end", _one_by_one):
        return trial("crash", seed)


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The server deletes a dead session's znodes one by one, as if the dead member had asked for it, and only "
    "then closes the session: id and owners are gone while the session is open.",
    false=_false,
    honest=lambda seed: trial("crash", seed),
)
