"""A consumer that a program starts in its own process, on a real ZooKeeper: `zkconsumer.Consumer`.

It is here and not in `zkconsumer` because it knows a world: it opens sockets and runs in a thread.
"""

from __future__ import annotations

import logging
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Self, TypeVar

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel import Flag
from rebalance_lab.kernel.interruption import undisturbed
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.roles.connection import ConnectionReport, ConnectionStory, Standing
from rebalance_lab.roles.main import live_node
from rebalance_lab.roles.member import MemberSpec, build_member, subscription_of
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.zk.connect_string import BadConnectString
from rebalance_lab.zkclient import ZkTimeoutException
from zkconsumer.rules import rule_set

__all__ = ["BadConnectString", "ConnectionReport", "Consumer", "NotLeft", "Partitions", "ZkTimeoutException"]

T = TypeVar("T")

#: Topic -> numbers of partitions, both sorted.
Partitions = dict[str, tuple[int, ...]]

CONNECT, GROUP = "zookeeper.connect", "group.id"

#: A member records the work on each partition this often. No check reads it here.
_WORK_PERIOD_MS = 1000

#: A waiting thread looks for signals at least this often.
_SIGNALS_S = 0.5

#: The time that the thread may take to drop its session. It takes longer if a call-back does not return.
_DROP_S = 2.0

_log = logging.getLogger("zkconsumer")


class NotLeft(TimeoutError):
    """A consumer did not leave in time. Its connection was dropped, so its session will end by its timeout."""


class Consumer:
    """A consumer of Kafka 0.8, like `ZookeeperConsumerConnector` of 0.8.2.2. It reads no messages, because it has no
    brokers: it registers, takes part in every rebalance, and reports which partitions it owns.

        with Consumer("127.0.0.1:2181", "group", ["topic"], on_owned=print, on_lost=print) as consumer:
            consumer.wait()  # Ctrl-C leaves

    - `zookeeper`: a connect string, `host:port,host:port/chroot`. `group`: the consumer group.
    - `topics`: names, or name -> number of streams. Instead, `whitelist` or `blacklist` may be given: a Java regex,
      with `streams` streams for all topics that match.
    - `rules`: `shipped` (Kafka 0.8.2.2) or `described` (the articles). `assignor`: a name of
      `rebalance_lab.assignors.ASSIGNORS`; by default the settings decide.
    - `config`: settings of Kafka's consumer under their own names; numbers and booleans may be Python's.
    - `security`: a file with authentication, ACLs and TLS (docs/containers.md).
    - `on_owned`, `on_lost`: called with topic -> partitions. In each rebalance a consumer of 0.8 gives up all that it
      owns and then takes its new share. It gives partitions up only after `on_lost` has returned. After the end of a
      session `on_lost` comes late: others may already own the partitions.
    - `on_connection`: called with a `ConnectionReport` when the connection to ZooKeeper is lost, refused or back.
      Without it the report is a warning of the logger `zkconsumer`.
    - `on_event`: called with each event of its history, before these two.

    Call-backs run in the consumer's thread. While one runs, the consumer does nothing else and its session sends no
    pings, so a call-back must be quick. If a call-back raises an error, the consumer ends, and `wait` and `close` raise
    this error.
    """

    def __init__(
        self,
        zookeeper: str,
        group: str | None = None,
        topics: Iterable[str] | Mapping[str, int] = (),
        *,
        whitelist: str | None = None,
        blacklist: str | None = None,
        streams: int = 1,
        rules: str = "shipped",
        assignor: str | None = None,
        config: Mapping[str, str | int] | None = None,
        security: Path | str | None = None,
        on_owned: Callable[[Partitions], object] | None = None,
        on_lost: Callable[[Partitions], object] | None = None,
        on_connection: Callable[[ConnectionReport], object] | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        names = [topics] if isinstance(topics, str) else topics
        named = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, streams)
        if [bool(named), whitelist is not None, blacklist is not None].count(True) != 1:
            raise ValueError("say what to consume: topics, or whitelist, or blacklist")
        self._properties = {name: _text(value) for name, value in (config or {}).items()} | {CONNECT: zookeeper}
        if group is not None:
            self._properties[GROUP] = group
        self._rules = rules
        self._spec = partial(
            MemberSpec,
            actor="consumer",
            host=socket.gethostname(),
            seed=random.randrange(2**63),
            rules=rules,
            assignor=assignor,
            streams=named,
            whitelist=whitelist,
            blacklist=blacklist,
            filter_streams=streams,
            work_period_ms=_WORK_PERIOD_MS,
            plant=None,
            events="",
            security=None if security is None else str(security),
        )
        self._on_owned = on_owned
        self._on_lost = on_lost
        self._on_connection = on_connection
        self._on_event = on_event
        self._connection = ConnectionStory()
        self._changed = threading.Condition()
        self._ended = False
        self._error: BaseException | None = None
        self._live: LiveKernel | None = None
        self._owed: list[Callable[[], object]] = []  # what the thread is to call once it has a kernel
        self._closing: Flag | None = None
        self._factory: LiveZooKeeperFactory | None = None
        self._thread = threading.Thread(target=self._run, name="zkconsumer", daemon=True)
        self._connected = False
        self._consumer_id: str | None = None
        self._owned: dict[TopicPartition, None] = {}
        self._taken: dict[TopicPartition, None] = {}

    # -- life -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Join the group. On return the session is open and the first rebalance is about to begin. Call this once.

        Raises ZkTimeoutException if no server answers within zookeeper.connection.timeout.ms, BadConnectString, and for
        invalid settings the errors of `zkconsumer.config`, `rebalance_lab.assignors` and the filters.
        """
        if self._thread.ident is not None:
            raise RuntimeError("a consumer starts once; make another one")
        try:
            with undisturbed():  # until the thread has begun, `close` does not know that there is one
                self._thread.start()
            self._until(lambda: self._connected or self._ended, None)
            self._raise()
        except BaseException:  # Ctrl-C, too
            with suppress(Exception):  # the first error counts
                self.close(timeout_s=0)
            raise
        return self

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Leave the group. On return the consumer is no longer registered and owns nothing. As in 0.8.2 it first waits
        for the end of a rebalance that is running. `timeout_s=None` waits without limit.

        Raises NotLeft if that takes longer than `timeout_s`, for example because ZooKeeper is gone. Raises the error of
        a consumer that has failed.
        """
        if not self._thread.is_alive():
            self._raise()
            return
        self._soon(lambda: self._closing.raise_() if self._closing is not None else None)
        if not self._until(lambda: self._ended, timeout_s):
            late = NotLeft(f"{self._consumer_id} did not leave within {timeout_s:g} s; its session ends by its timeout")
            self._soon(lambda: self._live.kernel.failed("close", late) if self._live is not None else None)
            self._thread.join(_DROP_S)
            raise late
        self._thread.join()
        self._raise()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the consumer has ended, because another thread called `close` or because it failed; then its error
        is raised. Returns whether it has ended, which is False only after a timeout."""
        ended = self._until(lambda: self._ended, timeout_s)
        self._raise()
        return ended

    def wait_for(self, condition: Callable[[Partitions], object], timeout_s: float = 30.0) -> Partitions:
        """Wait until what the consumer owns meets a condition: `consumer.wait_for(bool)` waits until it owns something.
        Returns what it owns. Raises TimeoutError, and the error of a consumer that has failed."""
        seen: Partitions = {}

        def decided() -> bool:
            nonlocal seen
            seen = self.owned  # it may change before the caller looks at it
            return self._ended or bool(condition(seen))

        self._until(decided, timeout_s)
        self._raise()
        if not condition(seen):
            how = "has ended" if self._ended else f"did not come to what was waited for within {timeout_s:g} s"
            raise TimeoutError(f"{self._consumer_id} {how}; it owns {seen or 'nothing'}")
        return seen

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- facts ------------------------------------------------------------------------------

    @property
    def consumer_id(self) -> str | None:
        """`<group>_<host>-<epoch ms>-<8 hex>`; None before it has started."""
        return self._consumer_id

    @property
    def owned(self) -> Partitions:
        """The partitions that the consumer believes it owns."""
        return _by_topic(self._owned)

    @property
    def client_id(self) -> tuple[int, bytes] | None:
        """Its session's id and password, like `KazooClient.client_id`; None while it is not connected. With them
        another client can end the session."""
        sessions = () if self._factory is None else self._factory.sessions
        known = [session.credentials for session in sessions if session.credentials is not None]
        return (known[-1].session_id, known[-1].password) if known else None

    # -- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with LiveKernel() as live:
                self._closing = live.kernel.flag("asked to leave")
                self._is_made(live)
                spec = self._spec(config=rule_set(self._rules).config(self._properties))
                self._factory, environment = live_node(live, spec, self)
                self._factory.on_loss = self._lost_connection
                member = build_member(environment, spec)
                live.run(member.run(subscription_of(spec), self._closing), "consumer")
        except ZkTimeoutException as error:
            where = self._properties[CONNECT]
            self._error = ZkTimeoutException(f"no ZooKeeper answers at {where}: {error} ms")
        except BaseException as error:
            self._error = self._error or error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _is_made(self, live: LiveKernel) -> None:
        with self._changed:
            self._live = live
            while self._owed:
                live.loop.call_soon(self._owed.pop(0))

    def _soon(self, call: Callable[[], object]) -> None:
        """Call something in the consumer's thread. Does nothing if that has ended."""
        with self._changed:
            if self._live is None:
                self._owed.append(call)
                return
        with suppress(RuntimeError):  # the loop is closed
            self._live.loop.call_soon_threadsafe(call)

    def _until(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait for a condition, and wake now and then. A signal that arrives just before a thread begins to wait for
        a lock does not wake it, and Python runs signal handlers only in the main thread, once that is awake."""
        deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not condition():
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    return False
                self._changed.wait(min(left_s, _SIGNALS_S))
        return True

    def _raise(self) -> None:
        if self._ended and self._error is not None:
            raise self._error

    # -- what it records (`history.recorder.Sink`) ------------------------------------------

    def write(self, event: Event) -> None:
        """Process an event of the consumer's history: run the call-backs and wake the waiting threads."""
        self._call(self._on_event, event)
        match event.kind:
            case Kind.MEMBER_STARTED:
                self._consumer_id = event.member
            case Kind.CONNECTED:
                self._report(self._connection.connected(event.session))
                self._notify(connected=True)
            case Kind.WARNED | Kind.EXPIRED if self._on_event is None:
                _log.warning("%s: %s", self._consumer_id, event.of("message") or "its ZooKeeper session has ended")
            case Kind.OWNED:
                self._took(_partition_of(event))
            case Kind.DISOWNED:
                self._gave_up()

    def _lost_connection(self, why: str) -> None:
        was_connected = self._connection.standing is Standing.CONNECTED
        self._report(self._connection.lost(why))
        if was_connected and self._live is not None and self._factory is not None:
            timeout_ms = max(each.negotiated_timeout_ms for each in self._factory.sessions)
            kernel, number = self._live.kernel, self._connection.number
            kernel.call_at(kernel.now_us() + timeout_ms * 1000, partial(self._overdue, timeout_ms, number))

    def _overdue(self, timeout_ms: int, number: int) -> None:
        if number == self._connection.number:
            self._report(self._connection.overdue(timeout_ms))

    def _report(self, report: ConnectionReport | None) -> None:
        if report is None:
            return
        if self._on_connection is None:
            _log.warning("%s: %s", self._consumer_id, report.text)
        self._call(self._on_connection, report)

    def _took(self, partition: TopicPartition) -> None:
        """A rebalance records all partitions that it takes at one instant. They are reported together, right after
        it."""
        if not self._taken and self._live is not None:
            self._live.loop.call_soon(self._report_taken)
        self._taken[partition] = None

    def _report_taken(self) -> None:
        taken, self._taken = self._taken, {}
        if taken:
            self._owned = {**self._owned, **taken}
            self._notify()
            self._call(self._on_owned, _by_topic(taken))

    def _gave_up(self) -> None:
        """Called for the first partition that a member gives up. It always gives up all of them, at one instant."""
        self._report_taken()
        lost, self._owned = self._owned, {}
        if lost:
            self._notify()
            self._call(self._on_lost, _by_topic(lost))

    def _call(self, call_back: Callable[[T], object] | None, told: T) -> None:
        """Run a call-back. Its error must not look like an error of the recorder."""
        try:
            if call_back is not None:
                call_back(told)
        except Exception as error:
            self._error = self._error or error
            if self._closing is not None:
                self._closing.raise_()

    def _notify(self, *, connected: bool = False) -> None:
        with self._changed:
            self._connected = self._connected or connected
            self._changed.notify_all()


def _partition_of(event: Event) -> TopicPartition:
    assert event.topic is not None and event.partition is not None, "every event of a belief names a partition"
    return TopicPartition(event.topic, event.partition)


def _text(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by_topic(partitions: Iterable[TopicPartition]) -> Partitions:
    grouped = groupby(sorted(partitions), key=lambda each: each.topic)
    return {topic: tuple(each.partition for each in those) for topic, those in grouped}
