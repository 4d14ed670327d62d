"""The docker engine on this machine: whether it is there, which images are used, and that nothing
of ours stays behind.

Everything made here carries a label of its session. What is still there when the session is closed
goes with it; when its process dies before, also by kill -9, a child that outlives it sees to that
(`containers.reaper`).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import docker
import docker.errors
import requests

from rebalance_lab.world.live.java import EmbeddedServerError

LABEL = "rebalance-lab.session"

#: Of the lab's image: `trials.record.source_digest` of the lab in it.
SOURCE_LABEL = "rebalance-lab.source"

#: Variables that name other images than these.
IMAGE_VARIABLES = {
    "rebalance-lab/zookeeper": "REBALANCE_LAB_ZOOKEEPER_IMAGE",
    "rebalance-lab/lab": "REBALANCE_LAB_IMAGE",
}
ZOOKEEPER_IMAGE, LAB_IMAGE = IMAGE_VARIABLES
_OFFICIAL = "zookeeper:3.9"

_CALL_TIMEOUT_S = 60
_REMOVAL_LIMIT_S = 60
_CONFLICT = 409
_USUAL_HOST = "unix:///var/run/docker.sock"
_REAPER_TIMEOUT_S = 30
_LOOKS = 20
_EMPTY_LOOKS = 2
_LOOK_AGAIN_S = 2.0


class ContainersError(EmbeddedServerError):
    """Containers cannot be started or steered. The message says what to do."""


def engine_problem() -> str | None:
    """Why containers cannot be run here; None if they can."""
    try:
        _client().close()
    except ContainersError as error:
        return str(error)
    return None


def _client() -> docker.DockerClient:
    client = None
    try:
        _knock()
        client = docker.from_env(timeout=_CALL_TIMEOUT_S)
        client.ping()
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        if client is not None:
            client.close()
        remedy = "start one (Debian: apt-get install docker.io), or see DOCKER_HOST"
        if isinstance(error, PermissionError):
            remedy = "its socket is for the group docker: sudo usermod -aG docker $USER, and log in again"
        raise ContainersError(f"no docker engine answers ({error}): {remedy}") from error
    return client


def _knock() -> None:
    """Raises OSError if no engine listens on its socket. Docker's client would then leave a socket of its own open."""
    scheme, _, path = (os.environ.get("DOCKER_HOST") or _USUAL_HOST).partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)


@contextlib.contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """Turn what the engine says against `what` into a ContainersError."""
    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise ContainersError(f"{what}: {error}") from error


def image_in_words(ours: str) -> str:
    """The image that is used for ours, and the variable that names it."""
    variable = IMAGE_VARIABLES[ours]
    return f"the image {os.environ.get(variable) or ours} ({variable})"


class Engine:
    """A session with the engine. End it with `close`, or use it as a context."""

    def __init__(self) -> None:
        self.client = _client()
        self.session = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._reaper = subprocess.Popen(
            [sys.executable, "-m", "rebalance_lab.world.containers.reaper", self.session],
            stdin=subprocess.PIPE,
            start_new_session=True,  # what ends us must not end it
        )

    @property
    def labels(self) -> dict[str, str]:
        """For everything that is made in this session."""
        return {LABEL: self.session}

    def name(self, purpose: str) -> str:
        """A new unique name: two ensembles of a session both have a z1."""
        return f"rebalance-lab-{self.session[:12]}-{next(self._numbers)}-{purpose}"

    def image(self, ours: str) -> str:
        """The image to use: ours, or the one its variable names. Raises ContainersError: it is
        not here."""
        variable = IMAGE_VARIABLES[ours]
        named = os.environ.get(variable) or ours
        with engine_errors(f"cannot look at the image {named}"):
            try:
                self.client.images.get(named)
            except docker.errors.ImageNotFound as error:
                how = f"docker pull {named}, or name another with {variable}"
                if named == ours:
                    how = f"build it with scripts/images of the lab's source, or name another with {variable}"
                    if ours == ZOOKEEPER_IMAGE:
                        how += f"; the official one does: docker pull {_OFFICIAL}, {variable}={_OFFICIAL}"
                raise ContainersError(f"there is no image {named}: {how}") from error
        return named

    def image_facts(self, ours: str) -> tuple[str, str]:
        """The id of the image to use, and its label SOURCE_LABEL; empty if it has none. Raises ContainersError."""
        named = self.image(ours)
        with engine_errors(f"cannot look at the image {named}"):
            found = self.client.images.get(named)
        return str(found.id), str((found.labels or {}).get(SOURCE_LABEL, ""))

    def close(self) -> None:
        """Remove all that the session made. Harmless when closed."""
        if self._reaper.stdin is None or self._reaper.stdin.closed:
            return
        try:
            remove_all(self.client, self.session)
            self._reaper.stdin.write(b"removed")
        finally:
            self.client.close()
            self._reaper.stdin.close()
            self._reaper.wait(_REAPER_TIMEOUT_S)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def remove_all(client: docker.DockerClient, session: str) -> bool:
    """Remove every container of a session, with its volumes, and then its networks. Returns whether
    there was any. Raises ContainersError."""
    mine: dict[str, Any] = {"label": f"{LABEL}={session}"}
    with engine_errors(f"cannot remove the containers of session {session}"):
        containers = client.containers.list(all=True, filters=mine, ignore_removed=True)
        for container in containers:
            remove(container)
        networks = client.networks.list(filters=mine)
        for network in networks:
            with contextlib.suppress(docker.errors.NotFound):
                network.remove()
    return bool(containers or networks)


def remove(container: Any) -> None:
    """Remove a container and its volumes, whatever it does; done when it is gone. A removal that a
    Ctrl-C has cut short goes on in the engine, which refuses a second one: that is waited for."""
    with contextlib.suppress(docker.errors.NotFound):
        container.reload()
        if container.status == "paused":
            container.unpause()  # it could not be killed
        try:
            container.remove(force=True, v=True)
        except docker.errors.APIError as refusal:
            if refusal.status_code != _CONFLICT or "already in progress" not in str(refusal):
                raise
            container.wait(condition="removed", timeout=_REMOVAL_LIMIT_S)


def reap(session: str) -> None:
    """`remove_all` for a session whose process has died, until nothing is found twice: docker still
    makes what it was asked for last. Raises ContainersError: that has not come to an end."""
    client = _client()
    empty, trouble = 0, ""
    try:
        for _ in range(_LOOKS):
            try:
                empty = 0 if remove_all(client, session) else empty + 1
            except ContainersError as error:  # a container came to be on a network that was to go
                empty, trouble = 0, f": {error}"
            if empty == _EMPTY_LOOKS:
                return
            time.sleep(_LOOK_AGAIN_S)
    finally:
        client.close()
    raise ContainersError(f"something of session {session} is still there after {_LOOKS} looks{trouble}")
