"""A server that deletes an owner znode of a survivor, in trials whose operations are only counted."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from counterfeit_counted import counted

from rebalance_lab.history.files import History
from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.simulated.authority import Authority


def takes(seed: int) -> History:
    """A crash. As the first session that owns something ends, the server logs a deletion of an owner znode of another
    session, as if its client had asked."""
    end = Authority.end
    taken: list[str] = []

    def ends(server: Authority, session, cxid):
        owners = {
            path: holder for holder, paths in server.tree.ephemerals.items() for path in paths if "/owners/" in path
        }
        others = sorted(path for path, holder in owners.items() if holder != session.id)
        if session.id in owners.values() and others and not taken:
            path = others[-1]
            taken.append(path)
            server.tree.remove(path, server.zxid + 1)
            server._log((server._record(owners[path], cxid, TransactionKind.DELETE, path=path),))
            return [path, *end(server, session, cxid)]
        return end(server, session, cxid)

    with patch.object(Authority, "end", ends):
        return trial("crash", seed)


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="Members record how many operations they sent, not each of them. As a session ends, an owner znode of a "
    "survivor goes too, in an ordinary transaction of the survivor's session; the survivor had released some before.",
    false=counted(takes),
    honest=counted(lambda seed: trial("crash", seed)),
)
