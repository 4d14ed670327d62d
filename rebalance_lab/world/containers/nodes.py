"""A container of the lab's image in which nodes of a trial run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rebalance_lab.world.containers.container import AnyContainer
from rebalance_lab.world.containers.engine import LAB_IMAGE, Engine, engine_errors, remove
from rebalance_lab.world.containers.networks import PrivateNetwork
from rebalance_lab.world.live.network import ADDRESS_VARIABLE
from rebalance_lab.world.process.managed import CommandedProcess

#: Where a process in a container sees the trial's folder.
TRIAL_DIR = Path("/trial")


class NodeContainer(AnyContainer, CommandedProcess):
    """One process, in a container. It reaches ZooKeeper on the network of ZooKeeper's clients, and other nodes on a
    network of theirs, where it listens at `address`: so it can be cut off from ZooKeeper alone. `folder` of this
    machine is its TRIAL_DIR, where it writes as the user who runs the lab; its output goes there at its end. Methods
    block until docker has done it, and raise ContainersError."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        folder: Path,
        command: Sequence[str],
        *,
        clients: PrivateNetwork,
        nodes: PrivateNetwork,
    ) -> None:
        self.name = name
        self._log_file = folder / f"{name}.stderr"
        self._removed = False
        self.address = nodes.new_address()
        self.client_address = clients.new_address()
        self._clients = clients
        with engine_errors(f"cannot start {name}"):
            self._container: Any = engine.client.containers.create(
                engine.image(LAB_IMAGE),
                list(command),
                name=engine.name(name),
                hostname=name,
                user=f"{os.getuid()}:{os.getgid()}",
                environment={ADDRESS_VARIABLE: self.address},
                volumes={str(folder.absolute()): {"bind": str(TRIAL_DIR), "mode": "rw"}},
                network=nodes.name,
                networking_config={nodes.name: engine.client.api.create_endpoint_config(ipv4_address=self.address)},
                init=True,  # the kernel keeps from a first process each signal that it has no handler for (yet)
                stdin_open=True,
                labels=engine.labels,
            )
        self._stdin: Any = None
        clients.connect(self._container, self.client_address)
        self.launch()

    # -- facts ------------------------------------------------------------------------------

    @property
    def container(self) -> Any:
        """Docker's handle of it."""
        return self._container

    @property
    def connected(self) -> bool:
        """Whether it is on the network of ZooKeeper's clients, as the engine says."""
        return self._clients.has(self.container)

    # -- its process ------------------------------------------------------------------------

    def launch(self) -> None:
        """Start it, also again after its end, with the same command and address."""
        self._close_stdin()
        with engine_errors(f"cannot start {self.name}"):
            self._stdin = self._container.attach_socket(params={"stdin": 1, "stream": 1})
            self._container.start()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            self._stdin._sock.close()
            self._stdin.close()
            self._stdin = None

    def write_line(self, line: bytes) -> None:
        if self._stdin is None:
            raise BrokenPipeError(f"{self.name} has no standard input: it was not started, or was removed")
        if self.exit_code is not None:  # docker's socket would take the line
            raise BrokenPipeError(f"{self.name} has ended")
        self._stdin._sock.sendall(line)

    # -- its network ------------------------------------------------------------------------

    def cut_off(self) -> None:
        """Remove its interface to ZooKeeper: nothing arrives either way, and no process gets an error. Docker lets
        nothing pass from the other network to that one."""
        self._clients.disconnect(self.container)

    def heal(self) -> None:
        """Undo `cut_off`, at the same address: what TCP still sends again arrives."""
        self._clients.connect(self.container, self.client_address)

    # -- end --------------------------------------------------------------------------------

    def end(self) -> None:
        if self._removed:
            return
        try:
            self._log_file.write_text(self.log("all"))
        finally:
            self.remove()

    def remove(self) -> None:
        """Remove it, whatever it does. Harmless when removed."""
        if self._removed:
            return
        self._close_stdin()
        with engine_errors(f"cannot remove {self.name}"):
            remove(self.container)
        self._removed = True
