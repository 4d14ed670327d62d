"""The compose file, with a short trial in the demo's place: the same ensemble, lab, Spark and report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import load
from rebalance_lab.world.containers.engine import Engine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(580)]

FILE = Path(__file__).parents[2] / "compose" / "compose.yaml"
REQUIRED = "REBALANCE_LAB_REQUIRE_DOCKER"
SEEDS = 10

#: Shorter than the tests': what hangs is then taken down by the fixture.
LIMIT_S = 450


def command() -> list[str]:
    """docker-compose as Debian 12 has it, or docker's newer plugin."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    if subprocess.run(["docker", "compose", "version"], check=False, capture_output=True).returncode == 0:
        return ["docker", "compose"]
    missing = "neither docker-compose nor docker's compose plugin (Debian: apt-get install docker-compose)"
    return (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(missing)


class Compose:
    """The file as one project of its own."""

    def __init__(self, store: Path) -> None:
        self.project = f"rebalance-lab-test-{uuid.uuid4().hex[:8]}"
        self.store = store
        self._command = [*command(), "-p", self.project, "-f", str(FILE)]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "STORE": str(self.store),
            "LAB_USER": f"{os.getuid()}:{os.getgid()}",
            "DEMO": "run zombie --world processes",
            "SWEEP_SEEDS": str(SEEDS),
        }
        return subprocess.run(
            [*self._command, *arguments],
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    found = Compose(tmp_path_factory.mktemp("trials"))
    yield found
    ended = found.run("down", "-v")
    assert ended.returncode == 0, ended.stdout


@pytest.fixture(scope="module")
def ran(docker_engine: Engine, compose: Compose) -> subprocess.CompletedProcess[str]:
    assert docker_engine.session
    return compose.run("up", "--no-build", "--abort-on-container-exit", "--exit-code-from", "lab")


def test_it_ends_as_the_lab_does(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0, ran.stdout[-20_000:]


def test_the_trial_ran_on_the_ensemble_beside_it(ran: subprocess.CompletedProcess[str], compose: Compose) -> None:
    (folder,) = compose.store.glob("zombie-processes-*")
    assert not (folder / "zookeeper").exists(), "it needed no server of its own"
    registry = [event for event in load(folder).events if event.kind is Kind.CREATED]
    assert any(str(event.of("path")).startswith("/consumers/g1/owners/t1/") for event in registry), ran.stdout[-5000:]


def test_spark_s_workers_wrote_their_trials_here(ran: subprocess.CompletedProcess[str], compose: Compose) -> None:
    sealed = sorted(compose.store.glob("zombie-simulated-*/trial.json"))
    assert len(sealed) == SEEDS, ran.stdout[-5000:]
    assert {json.loads(file.read_text())["scenario"] for file in sealed} == {"zombie"}
    assert ran.stdout.count("Successfully registered with master") == 2


def test_the_report_is_on_this_machine_and_ours(ran: subprocess.CompletedProcess[str], compose: Compose) -> None:
    report = compose.store / "report.html"
    assert report.read_text().startswith("<!"), ran.stdout[-5000:]
    assert report.stat().st_uid == os.getuid()
