"""What is said where there is no docker engine. Needs none."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import docker.errors
import pytest

from rebalance_lab.world.containers import engine
from rebalance_lab.world.containers.engine import (
    LAB_IMAGE,
    ZOOKEEPER_IMAGE,
    ContainersError,
    Engine,
    engine_problem,
    image_in_words,
)


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


@pytest.mark.usefixtures("no_engine")
def test_a_missing_engine_is_a_problem_with_a_remedy() -> None:
    problem = engine_problem()
    assert problem is not None
    assert problem.startswith("no docker engine answers")
    assert "DOCKER_HOST" in problem


@pytest.mark.usefixtures("no_engine")
def test_no_session_begins_without_an_engine() -> None:
    with pytest.raises(ContainersError, match="no docker engine answers"):
        Engine()


def test_a_socket_for_others_is_told_from_a_missing_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may open any, so the refusal is the operating system's in name only."""

    class Refused(socket.socket):
        def connect(self, address: object) -> None:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("DOCKER_HOST", "unix:///run/refused.sock")
    monkeypatch.setattr(socket, "socket", Refused)
    problem = engine_problem()
    assert problem is not None
    assert "Permission denied" in problem
    assert "group docker: sudo usermod -aG docker" in problem
    assert "start one" not in problem


@pytest.fixture
def no_images(monkeypatch: pytest.MonkeyPatch) -> Engine:
    def get(name: str) -> None:
        raise docker.errors.ImageNotFound(name)

    for variable in engine.IMAGE_VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    without = Engine.__new__(Engine)
    without.client = SimpleNamespace(images=SimpleNamespace(get=get))
    return without


def test_a_missing_image_of_ours_has_the_official_one_for_a_remedy(no_images: Engine) -> None:
    official = "docker pull zookeeper:3.9, REBALANCE_LAB_ZOOKEEPER_IMAGE=zookeeper:3.9"
    with pytest.raises(ContainersError, match=f"build it with scripts/images .*{official}$"):
        no_images.image(ZOOKEEPER_IMAGE)
    with pytest.raises(ContainersError, match=r"build it with scripts/images .*REBALANCE_LAB_IMAGE$"):
        no_images.image(LAB_IMAGE)


def test_a_missing_image_that_was_named_is_pulled(no_images: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_LAB_ZOOKEEPER_IMAGE", "zookeeper:3.8")
    with pytest.raises(ContainersError, match=r"no image zookeeper:3.8: docker pull zookeeper:3.8, or name another"):
        no_images.image(ZOOKEEPER_IMAGE)


def test_the_image_in_use_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REBALANCE_LAB_IMAGE", raising=False)
    assert image_in_words(LAB_IMAGE) == "the image rebalance-lab/lab (REBALANCE_LAB_IMAGE)"
    monkeypatch.setenv("REBALANCE_LAB_IMAGE", "debian:bookworm-slim")
    assert image_in_words(LAB_IMAGE) == "the image debian:bookworm-slim (REBALANCE_LAB_IMAGE)"


def test_what_else_docker_says_of_an_image_is_told(no_images: Engine) -> None:
    def get(name: str) -> None:
        raise docker.errors.APIError(f"{name}: invalid reference format")

    no_images.client.images.get = get
    with pytest.raises(
        ContainersError, match=r"cannot look at the image rebalance-lab/lab: .*invalid reference format"
    ):
        no_images.image(LAB_IMAGE)
