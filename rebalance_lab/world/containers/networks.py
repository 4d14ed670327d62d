"""A network of containers with addresses that stay theirs, also over a restart or a time off it."""

from __future__ import annotations

import ipaddress
from typing import Any

import docker.errors
import requests
from docker.types import IPAMConfig, IPAMPool

from rebalance_lab.world.containers.engine import ContainersError, Engine, engine_errors

#: Two processes may be given the same free subnet at one moment.
_ATTEMPTS = 10

#: Addresses below are the network's, its gateway's, and free.
_FIRST_ADDRESS = 10


class PrivateNetwork:
    """A bridge of this machine. Docker accepts a chosen address only in a chosen subnet, so docker is asked for any
    free subnet first, and then for that one by name."""

    def __init__(self, engine: Engine, purpose: str) -> None:
        self.name = engine.name(purpose)
        self._given = _FIRST_ADDRESS
        refused: Exception | None = None
        for _ in range(_ATTEMPTS):
            with engine_errors(f"cannot make the network {self.name}"):
                free = engine.client.networks.create(self.name, labels=engine.labels)
                free.reload()
                subnet: str = free.attrs["IPAM"]["Config"][0]["Subnet"]
                free.remove()
            self.subnet = ipaddress.ip_network(subnet)
            self.gateway = str(self.subnet[1])
            pool = IPAMPool(subnet=subnet, gateway=self.gateway)
            try:
                self._network = engine.client.networks.create(
                    self.name, ipam=IPAMConfig(pool_configs=[pool]), labels=engine.labels
                )
            except (docker.errors.DockerException, requests.RequestException) as error:
                if "overlap" not in str(error):
                    raise ContainersError(f"cannot make the network {self.name}: {error}") from error
                refused = error  # another network got it meanwhile
                continue
            return
        raise ContainersError(
            f"cannot make the network {self.name}: docker refused {_ATTEMPTS} subnets it had called free: {refused}"
        ) from refused

    def new_address(self) -> str:
        """The next free one."""
        self._given += 1
        return str(self.subnet[self._given])

    def connect(self, container: Any, address: str) -> None:
        """Raises ContainersError."""
        with engine_errors(f"cannot connect {container.name} to {self.name} as {address}"):
            self._network.connect(container, ipv4_address=address)

    def disconnect(self, container: Any) -> None:
        """Its interface goes at once, and what is sent to it goes nowhere. Raises ContainersError."""
        with engine_errors(f"cannot disconnect {container.name} from {self.name}"):
            self._network.disconnect(container)

    def has(self, container: Any) -> bool:
        """Whether it is connected, as the engine says."""
        with engine_errors(f"cannot look at {container.name}"):
            container.reload()
        return self.name in container.attrs["NetworkSettings"]["Networks"]
