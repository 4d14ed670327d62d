"""Z1: an owner znode that names one member stands in the session of another, and outlives its member."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.world.simulated.authority import Authority

_create, _delete, _WRITES = Authority._create, Authority._delete, Authority._WRITES
_OWNER = "/owners/t1/0"


def _false(seed: int) -> History:
    registered: dict[int, None] = {}

    def create(server, session, cxid, asked):
        """Of the owner znode: in the session that registered last, and is not the claimant's."""
        if "/ids/" in asked.path:
            registered[session.id] = None
        others = [each for each in registered if each != session.id]
        if asked.path.endswith(_OWNER) and others:
            session = SimpleNamespace(id=others[-1])
        return _create(server, session, cxid, asked)

    def delete(server, session, cxid, asked):
        """Of the owner znode: in the session that it stands in."""
        if asked.path.endswith(_OWNER) and asked.path in server.tree.nodes:
            session = SimpleNamespace(id=server.tree.nodes[asked.path].owner)
        return _delete(server, session, cxid, asked)

    forged = {_create: create, _delete: delete}
    with patch.object(Authority, "_WRITES", {kind: forged.get(write, write) for kind, write in _WRITES.items()}):
        return trial("crash", seed)


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The owner znode of t1/0 is made, and deleted, through a neighbour's session, in the owner's name. The owner "
    "is killed: its id and its other znodes go with its session, and t1/0 stays as long as the neighbour lives.",
    false=_false,
    honest=lambda seed: trial("crash", seed),
)
