"""The end of an ensemble in containers. Needs no docker."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from rebalance_lab.world.containers.engine import ContainersError
from rebalance_lab.world.containers.ensemble import ContainerEnsemble


class Node:
    """One that can be removed, or not."""

    def __init__(self, name: str, trouble: str | None = None) -> None:
        self.name = name
        self.removed = False
        self._trouble = trouble

    def remove(self) -> None:
        if self._trouble is not None:
            raise ContainersError(self._trouble)
        self.removed = True


def test_whichever_node_cannot_be_removed_the_others_are() -> None:
    nodes = {"z1": Node("z1"), "z2": Node("z2", "cannot remove z2: it is busy"), "z3": Node("z3")}
    unused: Any = None
    ensemble = ContainerEnsemble(unused, nodes, unused, lag_nodes=("z1",))  # type: ignore[arg-type]
    port = ensemble._lag_of("z1").forward("z1", 1, host="127.0.0.1", listen="127.0.0.1")
    with pytest.raises(ContainersError, match="cannot remove z2: it is busy"):
        ensemble.stop()
    assert [node.removed for node in nodes.values()] == [True, False, True]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()
