"""One node of an ensemble in a container of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rebalance_lab.world.containers.container import AnyContainer
from rebalance_lab.world.containers.engine import ZOOKEEPER_IMAGE, Engine, engine_errors, image_in_words, remove
from rebalance_lab.world.containers.networks import PrivateNetwork
from rebalance_lab.world.live.zookeeper_node import ZooKeeperNode

CLIENT_PORT = 2181
SECURE_PORT = 2281
QUORUM_PORT = 2888
ELECTION_PORT = 3888

#: As embedded nodes have it: small, quick to start, and looking for a leader often. And one that starts
#: without its peers' network does not give up: it binds its address there when it has it again.
_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
    "-Dzookeeper.electionPortBindRetry=0",
)
_HEAP_MB = 256
_INIT_LIMIT_TICKS = 20


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of all nodes of an ensemble. `config`: more lines of zoo.cfg, without blanks;
    `flags`: more of the JVM's; `mounts`: folders of this machine -> where nodes see them, read-only."""

    tick_ms: int
    sync_limit_ticks: int
    config: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    mounts: Mapping[Path, str] = field(default_factory=dict)

    def environment(self, number: int, servers: str) -> dict[str, str]:
        """Variables of the official image. `servers`: its ZOO_SERVERS; empty: a server alone."""
        lines = ("clientPortListenBacklog=1024", *self.config)
        quorum = {"ZOO_SERVERS": servers} if servers else {}
        return {
            **quorum,
            "ZOO_MY_ID": str(number),
            "ZOO_TICK_TIME": str(self.tick_ms),
            "ZOO_INIT_LIMIT": str(_INIT_LIMIT_TICKS),
            "ZOO_SYNC_LIMIT": str(self.sync_limit_ticks),
            "ZOO_MAX_CLIENT_CNXNS": "0",
            "ZOO_ADMINSERVER_ENABLED": "false",
            "ZOO_4LW_COMMANDS_WHITELIST": "*",
            "ZOO_CFG_EXTRA": " ".join(lines),
            "ZK_SERVER_HEAP": str(_HEAP_MB),
            "JVMFLAGS": " ".join((*_FLAGS, *self.flags)),
        }


@dataclass(frozen=True, slots=True)
class Networks:
    """`clients`: between clients and servers; `peers`: between servers."""

    clients: PrivateNetwork
    peers: PrivateNetwork


class ServerContainer(AnyContainer, ZooKeeperNode):
    """A server in a container, which stays the same when it is killed and started again.

    It has two addresses: clients find it at `address`, and the other servers at `peer_address` on a network of their
    own, so that it can be cut off from one of them alone.
    """

    def __init__(self, engine: Engine, name: str, number: int, folder: Path, networks: Networks) -> None:
        self.name = name
        self.number = number
        self.networks = networks
        self.address = networks.clients.new_address()
        self.peer_address = networks.peers.new_address()
        self._engine = engine
        self._datalog = folder / "datalog"
        self._container: Any = None

    def create(self, image: str, settings: ServerSettings, servers: str) -> None:
        """Make and start the container; do not wait for the server. Raises ContainersError."""
        self._datalog.mkdir(parents=True, exist_ok=True)
        peers, client = self.networks.peers.name, self._engine.client
        mounts = [(self._datalog, "/datalog", "rw"), *((folder, at, "ro") for folder, at in settings.mounts.items())]
        with engine_errors(f"cannot start {self.name} from {image_in_words(ZOOKEEPER_IMAGE)}"):
            self._container = client.containers.create(
                image,
                name=self._engine.name(self.name),
                hostname=self.name,
                environment=settings.environment(self.number, servers),
                volumes={str(folder.absolute()): {"bind": at, "mode": mode} for folder, at, mode in mounts},
                network=peers,
                networking_config={peers: client.api.create_endpoint_config(ipv4_address=self.peer_address)},
                labels=self._engine.labels,
            )
            self._container.start()
        self.networks.clients.connect(self.container, self.address)

    # -- facts ------------------------------------------------------------------------------

    @property
    def container(self) -> Any:
        """Docker's handle of it."""
        assert self._container is not None, f"{self.name} was not created"
        return self._container

    @property
    def client_address(self) -> tuple[str, int]:
        return self.address, CLIENT_PORT

    @property
    def secure_connect_string(self) -> str:
        """Of the secure port, if the settings open one."""
        return f"{self.address}:{SECURE_PORT}"

    @property
    def transaction_dir(self) -> Path:
        """Its transaction log, which lies on this machine."""
        return self._datalog

    # -- end --------------------------------------------------------------------------------

    def remove(self) -> None:
        """Remove the container and its volumes; its transaction log stays. Harmless when removed."""
        if self._container is None:
            return
        container, self._container = self._container, None
        with engine_errors(f"cannot remove {self.name}"):
            image = container.image
            remove(container)
            if os.getuid() != 0:
                self._give_back(image)

    def _give_back(self, image: Any) -> None:
        """Make its log the caller's: the server wrote it as a user of the image's own."""
        self._engine.client.containers.run(
            image,
            ["-R", f"{os.getuid()}:{os.getgid()}", "/datalog"],
            entrypoint="chown",
            user="root",
            volumes={str(self._datalog.absolute()): {"bind": "/datalog", "mode": "rw"}},
            labels=self._engine.labels,
            remove=True,
        )
