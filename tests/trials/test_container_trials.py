"""Trials in containers: docker pauses, kills and cuts off members and servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

import pytest
from decided import decided

from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import History, load
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan, PlanError
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.containers.engine import (
    IMAGE_VARIABLES,
    LAB_IMAGE,
    LABEL,
    ZOOKEEPER_IMAGE,
    ContainersError,
    Engine,
)
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.process.clocks import clock_of, identity

TIER = [pytest.mark.docker, pytest.mark.timeout(580)]


def contained(name: str, **plan: object) -> Plan:
    return api.make_plan(name, world="containers", **plan)  # type: ignore[arg-type]


#: The end of an archive, and nothing before it.
EMPTY_TAR = bytes(10240)

#: Sessions that a machine which stands still for a moment does not end.
PATIENT = {"session_timeout_ms": "6000"}

WALKTHROUGH, HERD = contained("walkthrough", settings=PATIENT), contained("herd", settings=PATIENT)

PLANS = [
    WALKTHROUGH,
    contained("zombie"),
    contained("zombie", control=True),
    HERD,
    contained("split-brain", settings=PATIENT),
    contained("minority"),
    contained("minority", control=True),
    contained("cut"),  # the session expires because its member does not reach ZooKeeper
    contained("zombie", plant="pause-that-does-not-bite"),
]


@pytest.fixture(scope="module")
def results(docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, api.TrialResult]:
    assert docker_engine.session  # there is one, or all of this is skipped
    return decided(PLANS, tmp_path_factory.mktemp("store"), 2)


def told(result: api.TrialResult) -> str:
    """A result as people need it when it is not the expected one."""
    findings = (f"{name}: {finding.outcome}: {finding.why}" for name, finding in result.findings.items())
    return "\n".join([str(result.folder), *findings])


def proofs(history: History) -> list[str]:
    return [str(event.of("proof")) for event in history.events if event.kind is Kind.FAULT_BIT]


def containers_on(engine: Engine, folder: Path) -> dict[str, str]:
    """The containers that see something of `folder`, and the session of each."""
    found = engine.client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)
    sources = {(each.name, each.labels[LABEL]): [mount["Source"] for mount in each.attrs["Mounts"]] for each in found}
    return {name: session for (name, session), mounts in sources.items() if any(str(folder) in each for each in mounts)}


def stands(engine: Engine, session: str, purpose: str) -> bool:
    """Whether a container of a session is there, and docker has not begun to remove it."""
    filters = {"label": f"{LABEL}={session}"}
    found = engine.client.api.containers(all=True, filters=filters)
    return any(each["Names"][0].endswith(f"-{purpose}") and each["State"] == "running" for each in found)


@pytest.mark.parametrize("plan", PLANS[:-1], ids=lambda plan: plan.trial_id)
class TestScenario:
    pytestmark = TIER

    def test_it_comes_out_as_expected(self, results: Mapping[str, api.TrialResult], plan: Plan) -> None:
        result = results[plan.trial_id]
        assert result.status == api.TrialStatus.AS_EXPECTED, told(result)

    def test_all_processes_have_one_clock(self, results: Mapping[str, api.TrialResult], plan: Plan) -> None:
        history = load(results[plan.trial_id].folder)
        hosts = [event.detail or {} for event in history.events if event.kind is Kind.PROCESS_STARTED]
        assert len(hosts) >= plan.number("members")
        assert {clock_of(each) for each in hosts} == {clock_of(identity())} == set(history.trial.boot_ids)

    def test_all_layers_are_recorded(self, results: Mapping[str, api.TrialResult], plan: Plan) -> None:
        history = load(results[plan.trial_id].folder)
        assert {event.layer for event in history.events} >= set(Layer) - {Layer.FAULT}


class TestBroker:
    pytestmark = TIER

    def test_its_client_reaches_it_from_another_container(self, docker_engine: Engine, tmp_path: Path) -> None:
        assert docker_engine.session
        result = api.run(contained("broker-crash", settings={"messages": "100"}), tmp_path)
        assert result.status == api.TrialStatus.AS_EXPECTED, told(result)
        history = load(result.folder)
        (address,) = {str(event.of("host")) for event in history.events if event.kind is Kind.LISTENING}
        assert not ip_address(address).is_loopback
        assert [proof.endswith("-b1 ended with 137") for proof in proofs(history) if "ended" in proof] == [True, True]


class TestVersions:
    """Of what members and servers ran."""

    pytestmark = TIER

    def test_the_images_and_the_server_are_named(
        self, results: Mapping[str, api.TrialResult], docker_engine: Engine
    ) -> None:
        versions = load(results[PLANS[1].trial_id].folder).trial.versions
        assert versions["zookeeper"].split(".")[0] == "3"
        for image in IMAGE_VARIABLES:
            assert versions[f"image {image}"] == docker_engine.client.images.get(docker_engine.image(image)).id


class TestProofs:
    """What docker says is the proof of each fault."""

    pytestmark = TIER

    def test_a_paused_member(self, results: Mapping[str, api.TrialResult]) -> None:
        (proof,) = proofs(load(results[PLANS[1].trial_id].folder))
        assert proof.endswith("-m1 is paused")

    def test_a_killed_member(self, results: Mapping[str, api.TrialResult]) -> None:
        found = proofs(load(results[HERD.trial_id].folder))
        assert any(each.endswith("-m10 ended with 137") for each in found)

    def test_a_member_without_network(self, results: Mapping[str, api.TrialResult]) -> None:
        (proof,) = proofs(load(results[contained("cut").trial_id].folder))
        assert "-m1 was disconnected from ZooKeeper's network; it was not on ZooKeeper's network until now" in proof

    def test_a_server_without_its_peers(self, results: Mapping[str, api.TrialResult]) -> None:
        (proof,) = proofs(load(results[contained("minority").trial_id].folder))
        assert "-z1 is running, on rebalance-lab-" in proof
        assert "-clients; z1 does not serve" in proof

    def test_a_pause_that_was_none_proves_nothing(self, results: Mapping[str, api.TrialResult]) -> None:
        findings = results[PLANS[-1].trial_id].findings
        assert findings["belief_overlap"].outcome is Outcome.UNKNOWN

    def test_nothing_stays_behind(self, results: Mapping[str, api.TrialResult], docker_engine: Engine) -> None:
        assert len(results) == len(PLANS)
        store = results[HERD.trial_id].folder.parent
        assert containers_on(docker_engine, store) == {}


class TestInterrupted:
    """A trial that is ended in its middle."""

    pytestmark = TIER

    @pytest.mark.parametrize("impatient", [False, True])
    def test_ctrl_c_leaves_no_container_no_network_and_no_folder(
        self, docker_engine: Engine, tmp_path: Path, impatient: bool
    ) -> None:
        """Also if it is pressed again while docker is at the first one."""
        store = tmp_path / "store"
        command = ["run", "zombie", "--world", "containers", "--store", str(store)]
        lab = subprocess.Popen(
            [sys.executable, "-m", "rebalance_lab", *command],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            give_up = time.monotonic() + 120
            while not list(store.glob("*/m1.jsonl")):
                assert lab.poll() is None, "it ended before any member started"
                assert time.monotonic() < give_up, "no member ever started"
                time.sleep(0.05)
            (session,) = set(containers_on(docker_engine, store).values())
            networks = docker_engine.client.networks
            assert len(networks.list(filters={"label": f"{LABEL}={session}"})) == 3
            os.killpg(lab.pid, signal.SIGINT)  # as a terminal does: the whole foreground group
            if impatient:
                while stands(docker_engine, session, "z1"):  # it is removed last
                    assert lab.poll() is None, "it ended, and z1 stands"
                os.killpg(lab.pid, signal.SIGINT)
            _, errors = lab.communicate(timeout=120)
        finally:
            lab.kill()
            lab.wait()
        assert lab.returncode == 130, errors
        assert "interrupted" in errors
        assert containers_on(docker_engine, store) == {}
        assert networks.list(filters={"label": f"{LABEL}={session}"}) == []
        assert list(store.iterdir()) == []


class TestWhatCannotBe:
    """Refused before anything starts, or with what to do instead."""

    @pytest.mark.parametrize("world", ["simulated", "processes"])
    def test_only_docker_cuts_servers_off_from_each_other(self, world: str) -> None:
        with pytest.raises(PlanError, match=f"minority cannot be played in world {world}; it needs containers"):
            api.make_plan("minority", world=world)

    def test_without_docker_s_library(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """It is an extra: who does not have it is told which."""
        ours = ("rebalance_lab.world.containers", "rebalance_lab.trials.stages.contain")
        for name in [each for each in sys.modules if each.startswith(ours)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "docker", None)
        with pytest.raises(TrialError, match=r"needs docker: pip install 'rebalance-lab\[containers\]'"):
            api.run(contained("leave"), tmp_path)

    def test_docker_loses_no_single_reply(self) -> None:
        with pytest.raises(PlanError, match="lost-reply cannot be played in world containers; it needs simulated or"):
            contained("lost-reply")

    @pytest.mark.docker
    def test_an_image_of_something_else_is_named(
        self, docker_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """And what has told nothing of itself leaves no folder."""
        name, variable = "rebalance-lab/nothing-to-run", IMAGE_VARIABLES[ZOOKEEPER_IMAGE]
        docker_engine.client.api.import_image_from_data(EMPTY_TAR, name)
        monkeypatch.setenv(variable, name)
        try:
            with pytest.raises(ContainersError, match=f"cannot start z1 from the image {name} \\({variable}\\): "):
                api.run(contained("leave"), tmp_path)
        finally:
            docker_engine.client.images.remove(name)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.docker
    def test_a_missing_image_of_members_is_missed_before_any_server(
        self, docker_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        assert docker_engine.session
        monkeypatch.setenv(IMAGE_VARIABLES[LAB_IMAGE], "rebalance-lab/no-such-image")
        monkeypatch.setattr(ContainerEnsemble, "start", None)
        with pytest.raises(ContainersError, match="there is no image rebalance-lab/no-such-image: docker pull"):
            api.run(contained("leave"), tmp_path)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.docker
    def test_docker_cuts_no_single_way(self, docker_engine: Engine, tmp_path: Path) -> None:
        with pytest.raises(TrialError, match="use --world processes"):
            api.run(contained("cut", settings={"way": "to_server"}), tmp_path)
        assert containers_on(docker_engine, tmp_path) == {}, "its members are gone"
