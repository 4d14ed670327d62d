"""A factory of recorded sessions, around the factory of any world."""

from __future__ import annotations

from rebalance_lab.kernel import Kernel
from rebalance_lab.world.ports import RecorderPort, ZooKeeper, ZooKeeperFactory
from rebalance_lab.world.zk.counted_session import CountedSession
from rebalance_lab.world.zk.recorded_session import MemberOf, RecordedSession

#: What is recorded of operations: each of them, or their numbers.
ALL = "all"
COUNTS = "counts"

__all__ = ["ALL", "COUNTS", "MemberOf", "RecordingFactory"]


def _nobody() -> None:
    return None


class RecordingFactory:
    """The port `ZooKeeperFactory` around another.

    `member_of`: called for the consumer id of each event. `operations`: `all` records each operation
    (`recorded_session`), `counts` only their numbers (`counted_session`). Raises ValueError for another word.
    """

    def __init__(
        self,
        inner: ZooKeeperFactory,
        recorder: RecorderPort,
        tasks: Kernel,
        member_of: MemberOf | None = None,
        *,
        operations: str = ALL,
    ) -> None:
        if operations not in (ALL, COUNTS):
            raise ValueError(f"operations={operations!r}: record {ALL} of them, or {COUNTS}")
        self._inner = inner
        self._recorder = recorder
        self._tasks = tasks
        self._member_of: MemberOf = member_of or _nobody
        self._around = CountedSession if operations == COUNTS else RecordedSession

    def open(self, connect: str, session_timeout_ms: int) -> ZooKeeper:
        session = self._inner.open(connect, session_timeout_ms)
        return self._around(session, self._recorder, self._tasks, self._member_of)
