"""An owner znode that names no member and stands in another session than its owner's."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
from counterfeit import Counterfeit, trial
from counterfeit_servers import crash

from rebalance_lab.history.files import History
from rebalance_lab.world.simulated.authority import Authority

_OWNER = "/owners/t1/0"


def false(seed: int) -> History:
    """The first session to write is the runner's, which prepares the cluster; it holds the znode of t1/0."""
    create, delete = Authority._create, Authority._delete
    holder: list[Any] = []

    def created(server: Authority, session: Any, cxid: int, asked: Any) -> Any:
        holder[:] = holder or [session]
        if asked.path.endswith(_OWNER):
            return create(server, holder[0], cxid, msgspec.structs.replace(asked, data=b"pool"))
        return create(server, session, cxid, asked)

    def deleted(server: Authority, session: Any, cxid: int, asked: Any) -> Any:
        return delete(server, holder[0] if asked.path.endswith(_OWNER) else session, cxid, asked)

    forged = {create: created, delete: deleted}
    with patch.object(Authority, "_WRITES", {kind: forged.get(it, it) for kind, it in Authority._WRITES.items()}):
        return trial("crash", seed)


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The owner znode of t1/0 holds a word that is not a thread id, and stands in a helper's session. Its owner, "
    "which believes in t1/0 and works on it, is killed: its id and its other znodes go, and t1/0 stays for ever.",
    false=false,
    honest=crash,
)
