"""A network that docker refuses. Needs no docker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import docker.errors
import pytest

from rebalance_lab.world.containers.engine import ContainersError
from rebalance_lab.world.containers.networks import PrivateNetwork


class Networks:
    """Docker's networks: each free subnet is refused as soon as it is asked for."""

    def __init__(self, why: str) -> None:
        self.there = 0
        self.refusals = 0
        self._why = why

    def create(self, _name: str, *, labels: dict[str, str], ipam: object = None) -> SimpleNamespace:
        assert labels == {"mine": "yes"}
        if ipam is not None:
            self.refusals += 1
            raise docker.errors.APIError(self._why)
        self.there += 1
        return SimpleNamespace(
            reload=lambda: None, attrs={"IPAM": {"Config": [{"Subnet": "172.30.0.0/16"}]}}, remove=self._remove
        )

    def _remove(self) -> None:
        self.there -= 1


@pytest.mark.parametrize(
    ("why", "refusals"),
    [("Pool overlaps with other one on this address space", 10), ("all of them are in use", 1)],
    ids=["somebody else has it now", "another reason"],
)
def test_a_network_that_docker_refuses_says_why_and_leaves_none_behind(why: str, refusals: int) -> None:
    networks = Networks(why)
    engine: Any = SimpleNamespace(
        name=lambda purpose: f"net-{purpose}", labels={"mine": "yes"}, client=SimpleNamespace(networks=networks)
    )
    with pytest.raises(ContainersError, match=f"cannot make the network net-peers: .*{why}"):
        PrivateNetwork(engine, "peers")
    assert (networks.there, networks.refusals) == (0, refusals)
