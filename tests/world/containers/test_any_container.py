"""What is asked of docker, and what is said when it refuses. Needs no docker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import docker.errors
import pytest
import requests

from rebalance_lab.world.containers.container import KILL_TIMEOUT_S, PAUSE_ATTEMPTS, AnyContainer
from rebalance_lab.world.containers.engine import ContainersError
from rebalance_lab.world.process.states import RunState


class Handle:
    """Docker's handle of a container, as far as it is asked."""

    def __init__(self, status: str, refuses: Exception | None = None) -> None:
        self.status = status
        self.asked: list[tuple[str, object]] = []
        self._refuses = refuses

    def _done(self, what: str, detail: object = None) -> None:
        self.asked.append((what, detail))
        if self._refuses is not None:
            raise self._refuses

    def reload(self) -> None:
        self._done("reload")

    def kill(self) -> None:
        self._done("kill")

    def wait(self, timeout: float) -> None:
        self._done("wait", timeout)

    def pause(self) -> None:
        self._done("pause")

    def unpause(self) -> None:
        self._done("unpause")

    def logs(self, tail: int) -> bytes:
        self._done("logs", tail)
        return b"last words"


class Late(Handle):
    """The kernel can freeze it at the third attempt."""

    def pause(self) -> None:
        super().pause()
        if len(self.asked) < 3:
            raise docker.errors.APIError("OCI runtime pause failed: unable to freeze: unknown")


class One(AnyContainer):
    def __init__(self, handle: Handle) -> None:
        self.name = "z1"
        self._handle = handle

    @property
    def container(self) -> Any:
        return self._handle


@pytest.mark.parametrize(
    ("status", "state"),
    [("running", RunState.ALIVE), ("paused", RunState.STOPPED), ("exited", RunState.GONE), ("dead", RunState.GONE)],
)
def test_its_state_is_the_engine_s_word_of_now(status: str, state: RunState) -> None:
    handle = Handle(status)
    assert One(handle).state is state
    assert handle.asked == [("reload", None)]


def test_a_kill_waits_for_the_end_and_not_for_ever() -> None:
    handle = Handle("running")
    One(handle).kill()
    assert handle.asked == [("kill", None), ("wait", KILL_TIMEOUT_S)]


@pytest.mark.parametrize("refusal", [docker.errors.APIError("no such container"), requests.ReadTimeout("60 s")])
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda one: one.state, "cannot look at z1: "),
        (lambda one: one.kill(), "cannot kill z1: "),
        (lambda one: one.pause(), "cannot pause z1: "),
        (lambda one: one.resume(), "cannot resume z1: "),
        (lambda one: one.log(), "cannot read the log of z1: "),
    ],
)
def test_a_refusal_names_the_container_and_keeps_the_reason(
    refusal: Exception, ask: Callable[[AnyContainer], object], said: str
) -> None:
    with pytest.raises(ContainersError, match=f"{said}{refusal}"):
        ask(One(Handle("running", refusal)))


def test_a_pause_that_the_kernel_cannot_make_yet_is_tried_again() -> None:
    handle = Handle("running", docker.errors.APIError("OCI runtime pause failed: unable to freeze: unknown"))
    with pytest.raises(ContainersError, match=r"cannot pause z1: .*unable to freeze"):
        One(handle).pause()
    assert handle.asked == [("pause", None)] * PAUSE_ATTEMPTS


def test_a_pause_that_docker_refuses_for_another_reason_is_not() -> None:
    handle = Handle("running", docker.errors.APIError("container is not running"))
    with pytest.raises(ContainersError, match="is not running"):
        One(handle).pause()
    assert handle.asked == [("pause", None)]


def test_a_pause_that_is_made_in_the_end() -> None:
    handle = Late("running")
    One(handle).pause()
    assert handle.asked == [("pause", None)] * 3
