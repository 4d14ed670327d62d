"""`zkconsumer.Consumer`: a consumer in a thread of a plain program, on a real ZooKeeper."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import rebalance_lab
import zkconsumer
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.roles import consumer as consumer_module
from rebalance_lab.testing.ensemble import ZooKeeperFaults, running
from rebalance_lab.wire.errors import InvalidFilter
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.zkclient import ZkTimeoutException
from zkconsumer.errors import IllegalArgumentException, InvalidConfigException

FAST: dict[str, str | int] = {
    "zookeeper.session.timeout.ms": 2000,
    "zookeeper.connection.timeout.ms": 10_000,
    "rebalance.backoff.ms": 100,
    "rebalance.max.retries": 40,
}

NOBODY = "127.0.0.1:1"


class Told:
    """What call-backs were told, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, zkconsumer.Partitions]] = []
        self.threads: set[str] = set()

    def owned(self, partitions: zkconsumer.Partitions) -> None:
        self._call("owned", partitions)

    def lost(self, partitions: zkconsumer.Partitions) -> None:
        self._call("lost", partitions)

    def _call(self, what: str, partitions: zkconsumer.Partitions) -> None:
        self.calls.append((what, partitions))
        self.threads.add(threading.current_thread().name)


def consumer(server: EmbeddedZooKeeper, name: str, told: Told | None = None, **options: Any) -> zkconsumer.Consumer:
    rebalance_lab.create_topic(server.connect_string, f"{name}-a", 3)
    rebalance_lab.create_topic(server.connect_string, f"{name}-b", 1)
    calls = {} if told is None else {"on_owned": told.owned, "on_lost": told.lost}
    topics = {"topics": [f"{name}-a", f"{name}-b"]} if "whitelist" not in options else {}
    return zkconsumer.Consumer(server.connect_string, f"group-{name}", config=FAST, **{**topics, **calls, **options})


def test_the_package_knows_no_world_before_it_is_asked() -> None:
    program = (
        "import sys, zkconsumer.member; sys.exit('kazoo' in sys.modules or 'rebalance_lab.world.live' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
    assert all(hasattr(zkconsumer, name) for name in zkconsumer.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(zkconsumer, "nothing")  # noqa: B009


class TestAlone:
    def test_it_owns_all_is_told_by_topic_and_leaves(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        told, everything = Told(), {"alone-a": (0, 1, 2), "alone-b": (0,)}
        with consumer(embedded_zookeeper, "alone", told) as one:
            assert one.wait_for(bool) == one.owned == everything
            assert one.consumer_id is not None
            assert re.fullmatch(rf"group-alone_{re.escape(socket.gethostname())}-\d+-[0-9a-f]+", one.consumer_id)
            assert one.wait(0.01) is False
        assert told.calls == [("owned", everything), ("lost", everything)]
        assert told.threads == {"zkconsumer"}
        assert one.owned == {}
        assert one.wait() is True
        one.close()  # again: nothing happens

    def test_a_filter_hears_of_a_new_topic(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        with consumer(embedded_zookeeper, "filter", whitelist="filter-[a-c]", streams=2) as one:
            one.wait_for(bool)
            rebalance_lab.create_topic(embedded_zookeeper.connect_string, "filter-c", 2)
            owned = one.wait_for(lambda owned: "filter-c" in owned)
        assert owned == {"filter-a": (0, 1, 2), "filter-b": (0,), "filter-c": (0, 1)}

    def test_it_sees_its_own_history(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        kinds: list[Kind] = []
        with consumer(embedded_zookeeper, "history", on_event=lambda event: kinds.append(event.kind)) as one:
            one.wait_for(bool)
        steps = [
            kind for kind in kinds if kind in (Kind.MEMBER_STARTED, Kind.CONNECTED, Kind.OWNED, Kind.MEMBER_CLOSED)
        ]
        assert steps == [Kind.MEMBER_STARTED, Kind.CONNECTED, *[Kind.OWNED] * 4, Kind.MEMBER_CLOSED]


class TestTwo:
    def test_they_share_and_each_change_gives_up_all_first(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        told = Told()
        with consumer(embedded_zookeeper, "two", told) as one:
            alone = one.wait_for(bool)
            with consumer(embedded_zookeeper, "two") as other:
                theirs = other.wait_for(bool)
                mine = one.wait_for(lambda owned: owned and owned != alone)
            assert one.wait_for(lambda owned: owned == alone) == alone
        assert sorted(theirs.get("two-a", ()) + mine.get("two-a", ())) == [0, 1, 2]
        calls = [(what, partitions) for what, partitions in told.calls if what == "lost"]
        assert [what for what, _ in told.calls] == ["owned", "lost"] * len(calls)
        assert all(told.calls[2 * number][1] == lost for number, (_, lost) in enumerate(calls))


class TestSessionEnd:
    def test_it_is_told_and_begins_anew(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        told = Told()
        with running("embedded", tmp_path, 1, 500) as ensemble:
            rebalance_lab.create_topic(ensemble.connect_string, "t", 1)
            one = zkconsumer.Consumer(
                ensemble.connect_string, "g", "t", config=FAST, on_owned=told.owned, on_lost=told.lost
            )
            assert one.client_id is None
            with one, caplog.at_level(logging.WARNING, "zkconsumer"):
                one.wait_for(bool)
                assert one.client_id is not None
                ZooKeeperFaults(ensemble).expire(*one.client_id)
                one.wait_for(lambda _: len(told.calls) >= 3)
            assert told.calls == [("owned", {"t": (0,)}), ("lost", {"t": (0,)})] * 2
            assert "its ZooKeeper session has ended" in caplog.text

    def test_a_rebalance_that_waits_for_a_lost_zookeeper_keeps_it_from_leaving(self, tmp_path: Path) -> None:
        with running("embedded", tmp_path, 1, 500) as ensemble:
            killed = threading.Event()

            def kill(event: Event) -> None:
                if event.kind is Kind.REBALANCE_BEGAN:
                    ZooKeeperFaults(ensemble).kill("z1")
                    killed.set()

            rebalance_lab.create_topic(ensemble.connect_string, "t", 1)
            one = zkconsumer.Consumer(ensemble.connect_string, "g", "t", config=FAST, on_event=kill).start()
            assert killed.wait(30)
            with pytest.raises(zkconsumer.NotLeft, match=r"did not leave within 0\.2 s; its session ends by"):
                one.close(timeout_s=0.2)


class TestSignals:
    def test_a_signal_before_its_thread_has_a_kernel_is_not_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The thread has begun, and does nothing yet that could be told to end."""
        asked = threading.Event()

        class Interrupted(Exception):
            pass

        class Late(LiveKernel):
            def __init__(self) -> None:
                asked.wait()
                super().__init__()

        class Closing(zkconsumer.Consumer):
            def _until(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
                asked.set()  # to end, if `close` waits
                return super()._until(condition, timeout_s)

        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            one = Closing(address, "g", "t", config={"zookeeper.connection.timeout.ms": 600_000})
            thread, start = one._thread, one._thread.start

            def interrupted() -> None:
                start()
                raise Interrupted

            monkeypatch.setattr(consumer_module, "LiveKernel", Late)
            monkeypatch.setattr(thread, "start", interrupted)
            with pytest.raises(Interrupted):
                one.start()
            thread.join(30)
            assert not thread.is_alive()

    def test_a_signal_while_its_thread_begins_ends_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`Thread.start` waits then, and `is_alive` is still False."""
        asked = threading.Event()

        class Begins(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                signal.raise_signal(signal.SIGINT)
                asked.set()
                return super().wait(timeout)

            def set(self) -> None:
                asked.wait()
                super().set()

        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            one = zkconsumer.Consumer(address, "g", "t", config={"zookeeper.connection.timeout.ms": 600_000})
            thread = one._thread
            monkeypatch.setattr(thread, "_started", Begins())
            with pytest.raises(KeyboardInterrupt):
                one.start()
            asked.set()  # it begins now, if it has not yet
            thread.join(30)
            assert not thread.is_alive()

    def test_a_signal_that_wakes_nobody_is_handled_soon(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        """As one that arrives between the last look at signals and the wait for a lock. Here another thread takes it:
        the main thread does not notice it either, and handles it when it wakes."""

        class Asked(Exception):
            pass

        def ask(_number: int, _frame: FrameType | None) -> None:
            raise Asked

        main, ready = threading.get_ident(), threading.Event()

        def send() -> None:
            ready.wait()
            while sys._current_frames()[main].f_code is not threading.Condition.wait.__code__:
                os.sched_yield()
            os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, ask)
        try:
            with consumer(embedded_zookeeper, "signal") as one:
                one.wait_for(bool)
                threading.Thread(target=send, daemon=True).start()
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
                ready.set()
                with pytest.raises(Asked):
                    one.wait()
                assert one.owned
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
            signal.signal(signal.SIGUSR1, before)


class TestErrors:
    def test_it_starts_once_and_a_second_start_does_not_end_it(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        with consumer(embedded_zookeeper, "twice") as one:
            owned = one.wait_for(bool)
            with pytest.raises(RuntimeError, match="a consumer starts once"):
                one.start()
            assert one.wait(0.01) is False
            assert one.owned == owned

    def test_no_server(self) -> None:
        nobody = zkconsumer.Consumer(NOBODY, "g", "t", config={"zookeeper.connection.timeout.ms": 100})
        why = f"no ZooKeeper answers at {NOBODY}: Unable to connect to zookeeper server within timeout: 100 ms"
        with pytest.raises(ZkTimeoutException, match=why), nobody:
            pass

    @pytest.mark.parametrize(
        ("arguments", "options", "error", "why"),
        [
            (("host:port", "g", "t"), {}, zkconsumer.BadConnectString, "has no port from 1 to 65535"),
            ((NOBODY, "g", "t"), {"config": {"rebalance.max.retries": "x"}}, IllegalArgumentException, 'string: "x"'),
            ((NOBODY, "g", "t"), {"config": {"auto.commit.enable": True}}, ZkTimeoutException, "no ZooKeeper"),
            ((NOBODY, None, "t"), {}, IllegalArgumentException, "Missing required property 'group.id'"),
            ((NOBODY, "a group", "t"), {}, InvalidConfigException, "a group is illegal"),
            ((NOBODY, "g"), {"whitelist": "*"}, InvalidFilter, "invalid regex"),
            ((NOBODY, "g", "t"), {"assignor": "fair"}, ValueError, "no assignor is named 'fair'"),
        ],
    )
    def test_what_cannot_be(
        self, arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], why: str
    ) -> None:
        options["config"] = {"zookeeper.connection.timeout.ms": 100, **options.get("config", {})}
        with pytest.raises(error, match=re.escape(why)):
            zkconsumer.Consumer(*arguments, **options).start()

    @pytest.mark.parametrize("options", [{}, {"topics": ["t"], "whitelist": "t"}, {"whitelist": "t", "blacklist": "u"}])
    def test_what_to_consume_is_said_once(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="say what to consume: topics, or whitelist, or blacklist"):
            zkconsumer.Consumer(NOBODY, "g", **options)

    def test_a_call_back_that_raises_ends_the_consumer(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        def broken(_: object) -> None:
            raise LookupError("not mine")

        with (
            pytest.raises(LookupError, match="not mine"),
            consumer(embedded_zookeeper, "broken", on_owned=broken) as one,
        ):
            one.wait()
        assert one.owned == {}

    def test_a_condition_that_never_holds(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        with (
            consumer(embedded_zookeeper, "never") as one,
            pytest.raises(TimeoutError, match=r"within 0\.1 s; it owns "),
        ):
            one.wait_for(lambda _: False, 0.1)
        with pytest.raises(TimeoutError, match="has ended; it owns nothing"):
            one.wait_for(bool)


class TestCreateTopic:
    def test_once(self, embedded_zookeeper: EmbeddedZooKeeper) -> None:
        where = embedded_zookeeper.connect_string
        assert "/brokers/topics/created" in rebalance_lab.create_topic(where, "created", 2)
        assert rebalance_lab.create_topic(where, "created", 2) == []

    @pytest.mark.parametrize("name", ["", "a/b"])
    def test_a_name_that_no_topic_can_have(self, name: str) -> None:
        with pytest.raises(ValueError, match="a topic's name has no slash, and is not empty"):
            rebalance_lab.create_topic(NOBODY, name, 1)
