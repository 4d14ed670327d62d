"""What docker says after a fault is compared with what was wanted. Needs no docker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rebalance_lab.kernel import Future, Kernel
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.containers.nodes import ContainerNode
from rebalance_lab.trials.stages.containers.servers import ContainerServers
from rebalance_lab.world.containers.container import AnyContainer
from rebalance_lab.world.power_loss import PowerLoss


class Looks:
    """Stands for the thread: docker is asked in it, or not at all."""

    def __init__(self) -> None:
        self.inside = False

    def __call__(self, work: Callable[[], Any], label: str) -> Future[Any]:
        future: Future[Any] = Future(label)
        self.inside = True
        try:
            future.set(work())
        except TrialError as error:
            future.fail(error)
        finally:
            self.inside = False
        return future


class Container:
    """Docker's handle: it does what it was told, or something else."""

    name = "lab-x"

    def __init__(self, looks: Looks, **after: tuple[str, int]) -> None:
        self.status = "running"
        self.code = 0
        self._looks = looks
        self._after = {
            "kill": ("exited", 137),
            "pause": ("paused", 0),
            "unpause": ("running", 0),
            "start": ("running", 0),
            **after,
        }

    @property
    def attrs(self) -> dict[str, Any]:
        return {"State": {"ExitCode": self.code}}

    def reload(self) -> None:
        assert self._looks.inside, "docker was asked on the runner's loop"

    def _become(self, what: str) -> None:
        assert self._looks.inside, "docker was told on the runner's loop"
        self.status, self.code = self._after[what]

    def kill(self) -> None:
        self._become("kill")

    def wait(self, timeout: float) -> None:
        assert timeout > 0

    def pause(self) -> None:
        self._become("pause")

    def unpause(self) -> None:
        self._become("unpause")

    def start(self) -> None:
        self._become("start")


class Network:
    def __init__(self, name: str, looks: Looks) -> None:
        self.name = name
        self.there = True
        self._looks = looks

    def has(self, _container: object) -> bool:
        assert self._looks.inside, "docker was asked on the runner's loop"
        return self.there


class One(AnyContainer):
    """A member's container, or a server's."""

    def __init__(self, looks: Looks, **after: tuple[str, int]) -> None:
        self.name = "z1"
        self.client_address = "192.0.2.1"
        self.networks = SimpleNamespace(clients=Network("clients", looks), peers=Network("peers", looks))
        self._handle = Container(looks, **after)

    @property
    def container(self) -> Any:
        return self._handle

    @property
    def connected(self) -> bool:
        return bool(self.networks.clients.has(self._handle))

    def cut_off(self) -> None:
        self.networks.clients.there = False

    def heal(self) -> None:
        self.networks.clients.there = True

    def start(self) -> None:
        self._handle.start()


def member(**after: tuple[str, int]) -> ContainerNode:
    looks = Looks()
    runs_in: Any = SimpleNamespace(nodes=["m1"], may_end=False, process=One(looks, **after))
    return ContainerNode("m1", runs_in, cast("Kernel", None), lambda: PowerLoss({}), looks)


def servers(*, partitions: bool = True, **after: tuple[str, int]) -> ContainerServers:
    looks = Looks()
    node = One(looks, **after)

    def kill(_name: str) -> None:
        node.kill()

    def pause(_name: str) -> None:
        node.pause()

    def partition(_name: str) -> None:
        node.networks.peers.there = not partitions

    ensemble: Any = SimpleNamespace(servers={"z1": node}, kill=kill, pause=pause, partition=partition)
    return ContainerServers(ensemble, looks)


def ran(story: Coroutine[Any, Any, Any]) -> Any:
    with LiveKernel() as live:
        return live.run(story, "story")


def test_a_member_s_faults_are_proved_by_what_docker_says() -> None:
    one = member()
    assert ran(one.pause()) == "docker: lab-x is paused"
    assert ran(one.resume()) == "docker: lab-x is running"
    assert ran(one.cut(to_server=True, to_client=True)) == "docker: lab-x was disconnected from ZooKeeper's network"
    assert ran(one.heal()) == "it was not on ZooKeeper's network until now, and is back at 192.0.2.1"
    assert ran(one.heal()) is None, "it was connected: that proves nothing"
    assert ran(one.kill()) == "docker: lab-x ended with 137"


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_member_that_ended_otherwise_was_not_killed(code: int) -> None:
    with pytest.raises(TrialError, match=rf"z1 \(container lab-x\) ended with {code}, not by a kill \(137\)"):
        ran(member(kill=("exited", code)).kill())


def test_a_member_that_still_runs_is_not_paused() -> None:
    with pytest.raises(TrialError, match="m1 is not paused: docker: lab-x is running"):
        ran(member(pause=("running", 0)).pause())


def test_a_member_that_somebody_woke_was_not_paused() -> None:
    with pytest.raises(TrialError, match="m1 did not stay paused"):
        ran(member().resume())


def test_a_server_s_faults_are_proved_by_what_docker_says() -> None:
    assert ran(servers().kill("z1")) == "server z1: docker: lab-x ended with 137, on clients, peers"
    assert ran(servers().pause("z1")) == "server z1: docker: lab-x is paused, on clients, peers"
    assert ran(servers().partition("z1")) == "server z1: docker: lab-x is running, on clients"


@pytest.mark.parametrize(
    ("fault", "found", "said"),
    [
        ("kill", servers(kill=("running", 0)), "kill did not take effect: docker: lab-x is running"),
        ("kill", servers(kill=("exited", 1)), "kill did not take effect: docker: lab-x ended with 1,"),
        ("pause", servers(pause=("running", 0)), "pause did not take effect: docker: lab-x is running"),
        ("pause", servers(pause=("exited", 0)), "pause did not take effect: docker: lab-x ended with 0"),
        ("partition", servers(partitions=False), "its peers' network was not changed: .* on clients, peers"),
    ],
)
def test_a_server_s_fault_that_did_not_take_effect_proves_nothing(
    fault: str, found: ContainerServers, said: str
) -> None:
    with pytest.raises(TrialError, match=f"server z1: {said}"):
        ran(getattr(found, fault)("z1"))
