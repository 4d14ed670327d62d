"""A ZooKeeper ensemble in containers: paused, killed, restarted and cut off by docker."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from rebalance_lab.world.containers.engine import ZOOKEEPER_IMAGE, ContainersError, Engine
from rebalance_lab.world.containers.networks import PrivateNetwork
from rebalance_lab.world.containers.server import (
    CLIENT_PORT,
    ELECTION_PORT,
    QUORUM_PORT,
    Networks,
    ServerContainer,
    ServerSettings,
)
from rebalance_lab.world.live.ensemble import DEFAULT_SYNC_LIMIT_TICKS
from rebalance_lab.world.live.ensemble_base import Ensemble
from rebalance_lab.world.live.server_process import DEFAULT_TICK_MS
from rebalance_lab.world.process.states import RunState

#: Containers take their time to start, on a machine that is busy.
START_TIMEOUT_S = 90.0


class ContainerEnsemble(Ensemble[ServerContainer]):
    """Nodes z1, z2, …. Make it with `start`. What it made is removed in any case when the engine's session ends.

    Methods block until docker has done it.
    """

    error = ContainersError

    def __init__(
        self, engine: Engine, nodes: dict[str, ServerContainer], networks: Networks, lag_nodes: tuple[str, ...]
    ) -> None:
        super().__init__(nodes, lag_nodes)
        self.networks = networks
        self._engine = engine

    @classmethod
    def start(
        cls,
        engine: Engine,
        data_dir: Path,
        nodes: int = 3,
        tick_ms: int = DEFAULT_TICK_MS,
        lag_nodes: tuple[str, ...] = (),
        *,
        sync_limit_ticks: int = DEFAULT_SYNC_LIMIT_TICKS,
        config: tuple[str, ...] = (),
        flags: tuple[str, ...] = (),
        mounts: Mapping[Path, str] | None = None,
    ) -> ContainerEnsemble:
        """Start the nodes and wait until all serve and one leads. Their transaction logs are
        under `data_dir`/z1/datalog and so on. `config`, `flags`, `mounts`: see ServerSettings."""
        if nodes < 1 or (lag_nodes and nodes == 1):
            raise ValueError(f"an ensemble of {nodes} nodes, of which {lag_nodes} may lag")
        image = engine.image(ZOOKEEPER_IMAGE)
        networks = Networks(PrivateNetwork(engine, "clients"), PrivateNetwork(engine, "peers"))
        made = {
            f"z{number}": ServerContainer(engine, f"z{number}", number, data_dir / f"z{number}", networks)
            for number in range(1, nodes + 1)
        }
        ensemble = cls(engine, made, networks, lag_nodes)
        settings = ServerSettings(tick_ms, sync_limit_ticks, config, flags, mounts or {})
        try:
            for node in made.values():
                node.create(image, settings, ensemble._servers_for(node) if nodes > 1 else "")
            ensemble.wait_until_ready(START_TIMEOUT_S)
        except BaseException:
            ensemble.stop()
            raise
        return ensemble

    def _servers_for(self, node: ServerContainer) -> str:
        """ZOO_SERVERS as this node is to see them: one that may lag sees the others through
        proxies on this machine, which its network's gateway is."""
        lines = []
        for other in self.servers.values():
            host, quorum, election = other.peer_address, QUORUM_PORT, ELECTION_PORT
            if self._lag is not None and node.name in self.lag_nodes and other is not node:
                host = self.networks.peers.gateway
                quorum = self._lag.add(node.name, QUORUM_PORT, host=other.peer_address, listen=host)
                election = self._lag.forward(node.name, ELECTION_PORT, host=other.peer_address, listen=host)
            lines.append(f"server.{other.number}={host}:{quorum}:{election};{CLIENT_PORT}")
        return " ".join(lines)

    # -- faults -----------------------------------------------------------------------------

    def restart(self, name: str) -> None:
        """Stop a node in order, and start it again; see `serving`."""
        self.servers[name].stop()
        self.servers[name].launch()

    def partition(self, name: str) -> None:
        """Cut a node off from its peers; its clients still reach it. It gives up serving when it has
        heard nothing for the sync limit."""
        self._refuse(name, refused=True)  # from its clients' network it could reach its proxies
        try:
            self.networks.peers.disconnect(self.servers[name].container)
        except ContainersError:
            self._refuse(name, refused=False)
            raise

    def rejoin(self, name: str) -> None:
        """Undo `partition`."""
        self.networks.peers.connect(self.servers[name].container, self.servers[name].peer_address)
        self._refuse(name, refused=False)

    def _refuse(self, name: str, *, refused: bool) -> None:
        if self._lag is not None and name in self.lag_nodes:
            self._lag.refuse(name, refused=refused)

    def cut_off(self, name: str) -> None:
        """Cut a node off from its clients; its peers still reach it."""
        self.networks.clients.disconnect(self.servers[name].container)

    def heal(self, name: str) -> None:
        """Undo `cut_off`."""
        self.networks.clients.connect(self.servers[name].container, self.servers[name].address)

    def make_whole(self) -> None:
        """Undo every fault, and wait until all serve."""
        for name, node in self.servers.items():
            if node.state is RunState.STOPPED:
                node.resume()
            elif node.state is RunState.GONE:
                node.launch()
            if not self.networks.peers.has(node.container):
                self.rejoin(name)
            if not self.networks.clients.has(node.container):
                self.heal(name)
            if name in self.lag_nodes:
                self._refuse(name, refused=False)  # also where somebody else has connected it again
                self.lag(name, 0)
        self.wait_until_ready(START_TIMEOUT_S)

    # -- end --------------------------------------------------------------------------------

    def stop(self) -> None:
        """End and remove the servers; their logs stay, and the networks until the engine's session
        ends. Harmless when ended."""
        self.stop_asking()
        with contextlib.ExitStack() as each:  # whichever cannot be removed, the others are
            if self._lag is not None:
                each.callback(self._lag.close)
            for node in self.servers.values():
                each.callback(node.remove)
