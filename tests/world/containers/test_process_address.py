"""What a process in a container is told of its address. Needs no docker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rebalance_lab.world.containers.engine import Engine
from rebalance_lab.world.containers.nodes import NodeContainer
from rebalance_lab.world.live.network import ADDRESS_VARIABLE

ADDRESS, AMONG_CLIENTS = "10.77.0.5", "10.78.0.5"


class Containers:
    """Docker's handle of all containers: it notes what is asked for."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.steps: list[str] = []

    def create(self, _image: str, _command: list[str], **options: Any) -> SimpleNamespace:
        self.asked = options
        return SimpleNamespace(attach_socket=lambda **_options: None, start=lambda: self.steps.append("start"))


def test_a_process_listens_at_the_address_of_its_container(tmp_path: Path) -> None:
    containers = Containers()
    api = SimpleNamespace(create_endpoint_config=lambda ipv4_address: ipv4_address)
    engine = SimpleNamespace(
        client=SimpleNamespace(containers=containers, api=api), image=str, name=str, labels={"lab": "1"}
    )
    nodes: Any = SimpleNamespace(name="nodes", new_address=lambda: ADDRESS)
    clients: Any = SimpleNamespace(
        new_address=lambda: AMONG_CLIENTS, connect=lambda _container, address: containers.steps.append(address)
    )
    NodeContainer(cast("Engine", engine), "b1", tmp_path, ["python"], clients=clients, nodes=nodes)
    assert containers.asked["networking_config"] == {"nodes": ADDRESS}
    assert containers.asked["environment"] == {ADDRESS_VARIABLE: ADDRESS}
    assert containers.steps == [AMONG_CLIENTS, "start"], "it reaches ZooKeeper from its first step on"
