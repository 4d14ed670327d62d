"""What ZooKeeper says of a group, read so that a fault on one server neither breaks nor dates it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, NodeExistsError, NoNodeError, OperationTimeoutError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import ForceRetryError, KazooRetry

from rebalance_lab.wire.paths import members_path, owner_path, owners_path

T = TypeVar("T")

#: How long an answer may take, with all retries: an election and a changed connection are seconds.
ANSWER_LIMIT_S = 30.0

_START_LIMIT_S = 20.0

#: A server that stands still is given up after two thirds of it. The session holds nothing.
_SESSION_S = 4.0

_RETRY_DELAYS: dict[str, Any] = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5}


@dataclass(frozen=True, slots=True)
class Registered:
    """The sorted ids of a group. `zxid`: of the last change of the list (pzxid). It identifies this list, and members
    record which list they used (DECIDED, `members_zxid`)."""

    ids: tuple[str, ...] = ()
    zxid: int | None = None


class Registry:
    """A session of the tests' own, on any server of `connect`; all paths are below `chroot`.

    A sync precedes every read, so the answer is what the leader had committed when it was asked, even from a server
    that lags. After a lost connection the other servers are tried. Methods raise TimeoutError if no server answers in
    time.
    """

    def __init__(self, connect: str, chroot: str) -> None:
        self._connect = connect
        self._chroot = chroot
        self._client = KazooClient(connect, timeout=_SESSION_S, connection_retry=dict(_RETRY_DELAYS))
        try:
            self._client.start(timeout=_START_LIMIT_S)
        except KazooTimeoutError as error:
            self._client.close()
            raise TimeoutError(f"no ZooKeeper of {connect} answers within {_START_LIMIT_S:g} s") from error

    def create(self, path: str, data: bytes) -> None:
        """With the znodes above it. Raises NodeExistsError: somebody else has made it."""
        lost = False

        def once(remaining_s: Callable[[], float]) -> None:
            nonlocal lost
            try:
                self._client.create_async(self._chroot + path, data, makepath=True).get(timeout=remaining_s())
            except (ConnectionLoss, OperationTimeoutError):
                lost = True
                raise
            except NodeExistsError:
                if not lost or self._fresh(path, remaining_s, self._client.get_async)[0] != data:
                    raise  # else it is ours, made by the attempt whose answer was lost

        self._asked(once, ANSWER_LIMIT_S)

    def registered(self, group: str, limit_s: float = ANSWER_LIMIT_S) -> Registered:
        """The ids of a group's members."""

        def children(path: str) -> Any:
            return self._client.get_children_async(path, include_data=True)

        found = self._read(members_path(group), children, limit_s)
        return Registered() if found is None else Registered(tuple(sorted(found[0])), found[1].pzxid)

    def owners(self, group: str, topic: str, limit_s: float = ANSWER_LIMIT_S) -> dict[int, str]:
        """Partition -> consumer thread id, of those that have an owner; read one after another."""
        give_up = time.monotonic() + limit_s
        owners = {}
        for partition in self._partitions(group, topic, limit_s):
            path = owner_path(group, topic, partition)
            found = self._read(path, self._client.get_async, give_up - time.monotonic())
            if found is not None:
                owners[partition] = found[0].decode()
        return owners

    def _partitions(self, group: str, topic: str, limit_s: float) -> list[int]:
        names = self._read(owners_path(group, topic), self._client.get_children_async, limit_s)
        return sorted(map(int, names or ()))

    def _read(self, path: str, reading: Callable[[str], Any], limit_s: float) -> Any:
        """What `reading` returns for the path; None if there is no znode."""
        try:
            return self._asked(lambda remaining_s: self._fresh(path, remaining_s, reading), limit_s)
        except NoNodeError:
            return None

    def _fresh(self, path: str, remaining_s: Callable[[], float], reading: Callable[[str], Any]) -> Any:
        """Sync, then read. Should the connection move in between, ZooKeeper lets the session in
        only where what it has seen is known; a new session has seen nothing, and begins again."""
        client, path = self._client, self._chroot + path
        client.sync_async(path).get(timeout=remaining_s())
        session = client.client_id
        found = reading(path).get(timeout=remaining_s())
        if session is None or client.client_id != session:
            raise ForceRetryError
        return found

    def _asked(self, once: Callable[[Callable[[], float]], T], limit_s: float) -> T:
        give_up = time.monotonic() + limit_s
        retry = KazooRetry(deadline=limit_s, **_RETRY_DELAYS)

        def remaining_s() -> float:
            return max(0.0, give_up - time.monotonic())

        try:
            answer: T = retry(once, remaining_s)
        except (NoNodeError, NodeExistsError):
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise TimeoutError(
                f"ZooKeeper ({self._connect}) gave no answer within {limit_s:.3g} s: do a majority of servers run?"
            ) from error
        return answer

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()
