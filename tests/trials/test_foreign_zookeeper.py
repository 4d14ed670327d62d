"""Trials on a ZooKeeper that is not theirs alone."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest
from kazoo.client import KazooClient

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import load
from rebalance_lab.trials import api
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.live import foreign
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.foreign import CONNECT_VARIABLE, LOGS_VARIABLE, TRIALS, ChrootLog, ForeignZooKeeper
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, embedded_zookeeper: EmbeddedZooKeeper) -> EmbeddedZooKeeper:
    monkeypatch.setenv(CONNECT_VARIABLE, embedded_zookeeper.connect_string)
    monkeypatch.setenv(LOGS_VARIABLE, str(embedded_zookeeper.transaction_dir))
    return embedded_zookeeper


@pytest.fixture
def client(embedded_zookeeper: EmbeddedZooKeeper) -> KazooClient:
    found = KazooClient(embedded_zookeeper.connect_string)
    found.start(timeout=60)
    yield found
    found.stop()
    found.close()


def test_a_trial_is_alone_below_a_znode_that_goes_with_it(
    named: EmbeddedZooKeeper, client: KazooClient, tmp_path: Path
) -> None:
    client.create("/somebody-elses", b"")
    result = api.run(api.make_plan("leave", world="processes"), tmp_path)
    assert result.status == api.TrialStatus.AS_EXPECTED, result.findings
    paths = [str(event.of("path")) for event in load(result.folder).events if event.kind is Kind.CREATED]
    assert any(path.startswith("/consumers/g1/ids/g1_host-m1-") for path in paths), paths
    assert not [path for path in paths if path.startswith((TRIALS, "/somebody"))]
    assert client.get_children(TRIALS) == []
    client.delete("/somebody-elses")


def test_what_others_write_meanwhile_is_no_lost_record(
    named: EmbeddedZooKeeper, client: KazooClient, tmp_path: Path
) -> None:
    over = Event()

    def write() -> None:
        for number in range(10_000):
            client.create(f"/noise-{number}", b"")
            client.delete(f"/noise-{number}")
            if over.wait(0.05):
                return

    writer = Thread(target=write)
    writer.start()
    try:
        result = api.run(api.make_plan("leave", world="processes"), tmp_path)
    finally:
        over.set()
        writer.join()
    assert result.status == api.TrialStatus.AS_EXPECTED, result.findings
    assert any(event.of("passed") for event in load(result.folder).events), "others wrote between its transactions"


@pytest.mark.usefixtures("named")
def test_its_servers_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match=f"the servers are not the lab's \\({CONNECT_VARIABLE}\\)"):
        api.run(api.make_plan("servers", world="processes", settings={"members": "1", "servers": "1"}), tmp_path)
    assert len(list(tmp_path.glob("*/m1.jsonl"))) == 1, "it had begun, and its logs stay"


@pytest.mark.usefixtures("named")
def test_sessions_that_it_does_not_grant_are_another_experiment(tmp_path: Path) -> None:
    settings = {"session_timeout_ms": "20000", "tick_ms": "2000"}  # of ticks of 500 ms it grants 20 at most
    with pytest.raises(EmbeddedServerError, match="grants sessions of 10000 ms where 20000 were asked for"):
        api.run(api.make_plan("leave", world="processes", settings=settings), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("connect", "logs", "complaint"),
    [
        ("a:1,b:2", "/log", "names 1 folders for 2 servers"),
        ("a:1", "", "names 0 folders for 1 servers"),
        ("a:1/chroot", "/log", "leave the chroot out"),
        ("a:port", "/log", CONNECT_VARIABLE),
    ],
)
def test_variables_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, connect: str, logs: str, complaint: str
) -> None:
    monkeypatch.setenv(CONNECT_VARIABLE, connect)
    monkeypatch.setenv(LOGS_VARIABLE, logs)
    with pytest.raises(EmbeddedServerError, match=complaint):
        ForeignZooKeeper.named("trial")


def test_without_the_variable_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CONNECT_VARIABLE, raising=False)
    assert ForeignZooKeeper.named("trial") is None


def test_logs_that_cannot_be_read_are_refused_before_any_server_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "log.1").touch()
    monkeypatch.setenv(CONNECT_VARIABLE, "127.0.0.1:1")
    for nowhere in (tmp_path / "nowhere", tmp_path / "log.1"):
        monkeypatch.setenv(LOGS_VARIABLE, str(nowhere))
        store = tmp_path / "store"
        with pytest.raises(EmbeddedServerError, match=f"{LOGS_VARIABLE}: {nowhere} is no folder that can be read here"):
            api.run(api.make_plan("leave", world="processes"), store)
        assert list(store.iterdir()) == []


def test_servers_that_never_serve_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(CONNECT_VARIABLE, "127.0.0.1:1")
    monkeypatch.setenv(LOGS_VARIABLE, str(tmp_path))
    monkeypatch.setattr(foreign, "READY_LIMIT_S", 0.5)
    monkeypatch.setattr(foreign, "TOLD_AFTER_S", 0)
    found = ForeignZooKeeper.named("trial")
    assert found is not None
    with pytest.raises(EmbeddedServerError, match=r"127.0.0.1:1 .* serves nobody after 0.5 s: .*refused"):
        found.prepare(2000)
    (waiting,) = caplog.records  # once, however often it looks
    assert waiting.levelname == "WARNING"
    assert "for ZooKeeper at 127.0.0.1:1 (" in waiting.getMessage()
    assert "refused" in waiting.getMessage()


def test_a_log_of_one_subtree(embedded_zookeeper: EmbeddedZooKeeper, client: KazooClient) -> None:
    client.create("/part", b"")
    log = ChrootLog(EnsembleLog([embedded_zookeeper.transaction_dir]), "/part")
    client.create("/part/a", b"mine")
    client.create("/parting", b"not mine")
    client.delete("/parting")
    client.delete("/part/a")
    seen = [(each.kind.name, each.path, each.data) for each in log.poll()]
    assert seen == [("CREATE", "/a", b"mine"), ("OTHER", "", b""), ("OTHER", "", b""), ("DELETE", "/a", b"")]
    assert log.poll() == []


def test_a_log_of_one_subtree_lists_what_went_below_it(embedded_zookeeper: EmbeddedZooKeeper) -> None:
    """A session's end is in the log whole: of what it took with it the rest is nobody's here."""
    log = ChrootLog(EnsembleLog([embedded_zookeeper.transaction_dir]), "/own")
    session = KazooClient(embedded_zookeeper.connect_string)
    session.start(timeout=60)
    for path in ("/own/ids/m1", "/owner", "/else/m2"):
        session.create(path, b"", ephemeral=True, makepath=True)
    session.stop()
    session.close()
    (closed,) = [each for each in log.poll() if each.kind.name == "SESSION_CLOSED"]
    assert closed.removed == ("/ids/m1",)
