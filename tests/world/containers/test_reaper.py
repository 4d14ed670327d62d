"""What a session's process leaves behind when it dies, and who removes it. Needs no docker."""

from __future__ import annotations

import io
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from docker.errors import APIError

from rebalance_lab.world.containers import engine, reaper
from rebalance_lab.world.containers.engine import ContainersError, reap, remove_all


class Docker:
    """A client whose containers come to be between its looks, one list for each."""

    def __init__(self, *looks: list[str]) -> None:
        self.looks = list(looks)
        self.removed: list[str] = []
        self.closed = False
        self.containers = SimpleNamespace(list=self._list)
        self.networks = SimpleNamespace(list=lambda **_: [])

    def _list(self, **asked: Any) -> list[SimpleNamespace]:
        assert asked["filters"] == {"label": "rebalance-lab.session=s"}
        found = self.looks.pop(0)
        return [
            SimpleNamespace(
                status="created", reload=lambda: None, remove=lambda name=name, **_: self.removed.append(name)
            )
            for name in found
        ]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Docker:
    client = Docker(*request.param)
    monkeypatch.setattr(engine, "_client", lambda: client)
    monkeypatch.setattr(engine, "_LOOK_AGAIN_S", 0)
    return client


@pytest.mark.parametrize("docker", [[["z1"], [], ["late"], [], []]], indirect=True)
def test_what_docker_was_still_making_is_removed(docker: Docker) -> None:
    reap("s")
    assert docker.removed == ["z1", "late"]
    assert docker.looks == []
    assert docker.closed


@pytest.mark.parametrize("docker", [[["again"]] * 100], indirect=True)
def test_it_does_not_look_for_ever(docker: Docker) -> None:
    with pytest.raises(ContainersError, match="something of session s is still there after 20 looks"):
        reap("s")
    assert docker.closed


@pytest.mark.parametrize(("last_words", "reaped"), [(b"", ["s"]), (b"removed", [])])
def test_it_removes_what_nobody_else_has(monkeypatch: pytest.MonkeyPatch, last_words: bytes, reaped: list[str]) -> None:
    found: list[str] = []
    monkeypatch.setattr(engine, "reap", found.append)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(last_words)))
    reaper.main("s")
    assert found == reaped


@pytest.mark.parametrize("docker", [[["z1"]]], indirect=True)
def test_a_session_that_is_closed_says_so(monkeypatch: pytest.MonkeyPatch, docker: Docker) -> None:
    """`cat` stands for the reaper: it tells what it was told."""
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **options: popen(["cat"], stdout=subprocess.PIPE, **options))
    session = engine.Engine()
    session.session = "s"
    session.close()
    assert docker.removed == ["z1"]
    assert session._reaper.stdout is not None
    with session._reaper.stdout as said:
        assert said.read() == b"removed"


class Going:
    """A container whose removal was asked for before. `says`: what docker then says."""

    status = "running"

    def __init__(self, says: str) -> None:
        self._says = says
        self.waited_for: list[str] = []

    def reload(self) -> None:
        """Docker says nothing new."""

    def remove(self, **_: Any) -> None:
        answer = requests.Response()
        answer.status_code = 409
        raise APIError("409 Client Error", answer, self._says)

    def wait(self, *, condition: str, timeout: int) -> None:
        assert timeout > 0
        self.waited_for.append(condition)


def client_of(container: Going) -> Any:
    return SimpleNamespace(
        containers=SimpleNamespace(list=lambda **_: [container]), networks=SimpleNamespace(list=lambda **_: [])
    )


def test_a_removal_that_was_cut_short_is_waited_for() -> None:
    container = Going("removal of container 8f3 is already in progress")
    assert remove_all(client_of(container), "s")
    assert container.waited_for == ["removed"]


def test_any_other_conflict_is_told() -> None:
    container = Going("container 8f3 is in use")
    with pytest.raises(ContainersError, match=r"cannot remove the containers of session s: .*8f3 is in use"):
        remove_all(client_of(container), "s")
    assert container.waited_for == []
