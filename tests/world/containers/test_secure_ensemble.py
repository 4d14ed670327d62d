"""Digest authentication, ACLs and TLS, on an ensemble in containers."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import certificates
import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.subjects.zk_group.cluster import broker_znode
from rebalance_lab.wire.paths import broker_path, topic_path
from rebalance_lab.wire.payloads import topic_payload
from rebalance_lab.world import errors
from rebalance_lab.world.containers.engine import Engine
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.live.security import NO_SECURITY, Security, read_security
from rebalance_lab.world.live.session import LiveSession, LiveZooKeeperFactory
from rebalance_lab.world.ports import Create, SessionEventKind
from rebalance_lab.world.zk.server_list import ConnectWaits

pytestmark = [pytest.mark.docker, pytest.mark.timeout(240)]

QUICK = ConnectWaits(random_us=10_000, round_us=0)
LIMIT_US = 20_000_000

CONFIG = (
    "secureClientPort=2281",
    "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
    "ssl.keyStore.location=/tls/server.pem",
    "ssl.keyStore.type=PEM",
    "ssl.trustStore.location=/tls/ca.pem",
    "ssl.trustStore.type=PEM",
    "ssl.clientAuth=need",
    "ssl.hostnameVerification=false",
)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    certificates.make(folder)
    return folder


@pytest.fixture(scope="module")
def ensemble(docker_engine: Engine, tls: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEnsemble]:
    folder = tmp_path_factory.mktemp("ensemble")
    with ContainerEnsemble.start(docker_engine, folder, config=CONFIG, mounts={tls: "/tls"}) as found:
        yield found


def security_file(folder: Path, text: str) -> Path:
    file = folder / "security.toml"
    file.write_text(text)
    return file


def tls_text(tls: Path, **changes: str) -> str:
    settings = {
        "ca": str(tls / "ca.pem"),
        "certificate": str(tls / "client.pem"),
        "key": str(tls / "client.key"),
        "server_name": certificates.SERVER_NAME,
        **changes,
    }
    return "[tls]\n" + "".join(f'{name} = "{value}"\n' for name, value in settings.items() if value)


class Bench:
    """Sessions on a live kernel."""

    def __init__(self, live: LiveKernel) -> None:
        self.live = live
        self.kernel = live.kernel

    async def connected(self, connect: str, security: Security = NO_SECURITY) -> LiveSession:
        session = self.opened(connect, security)
        async with self.kernel.timeout(LIMIT_US, f"a session: {session.last_loss}"):
            event = await session.events.get()
        assert event.kind is SessionEventKind.CONNECTED
        return session

    def opened(self, connect: str, security: Security) -> LiveSession:
        random = RandomStream(1, "bench", "waits")
        factory = LiveZooKeeperFactory(self.kernel, self.live.loop, random, waits=QUICK, security=security)
        self.live.on_close(factory.close)
        return factory.open(connect, 10_000)

    async def caught_up(self, session: LiveSession, zxid: int) -> None:
        """Its server has applied all up to `zxid`."""
        async with self.kernel.timeout(LIMIT_US, f"zxid {zxid:#x} at the server of {session!r}"):
            while (await session.exists("/")).zxid < zxid:
                await self.kernel.sleep(10_000)

    async def refused(self, connect: str, security: Security, why: str) -> None:
        """Done when every server has refused it with these words (a regular expression), and none
        has given it a session. A reset may swallow a server's words: then the next time counts."""
        session = self.opened(connect, security)
        waiting = set(connect.split(","))
        async with self.kernel.timeout(LIMIT_US, f"each server's {why!r}"):
            while waiting:
                server, _, loss = session.last_loss.partition(": ")
                if re.search(why, loss):
                    waiting.discard(server)
                await self.kernel.sleep(5_000)
        assert session.session_id == 0


@pytest.fixture
def bench() -> Iterator[Bench]:
    with LiveKernel() as live:
        yield Bench(live)


# -- digest and ACLs ----------------------------------------------------------------------------


def test_what_its_creator_keeps_for_itself(bench: Bench, ensemble: ContainerEnsemble) -> None:
    async def story() -> None:
        alice = await bench.connected(ensemble.connect_string, Security(digest="alice:secret", acl="creator"))
        bob = await bench.connected(ensemble.connect_string, Security(digest="bob:other"))
        await alice.create("/alice", b"hers")
        created = await alice.multi([Create("/alice/child", b"")])
        assert (await alice.get("/alice")).value.data == b"hers"
        await bench.caught_up(bob, created.zxid)
        for path in ("/alice", "/alice/child"):
            with pytest.raises(errors.NoAuth, match=f"NoAuth: get {path} .*the ACL there does not let this session"):
                await bob.get(path)
        with pytest.raises(errors.NoAuth):
            await bob.create("/alice/his", b"")
        again = await bench.connected(ensemble.connect_string, Security(digest="alice:secret"))
        assert (await again.children("/alice")).value.names == ("child",)

    bench.live.run(story(), "story")


def test_what_others_may_read_but_not_change(bench: Bench, ensemble: ContainerEnsemble) -> None:
    async def story() -> None:
        where = ensemble.connect_to("z1")
        carol = await bench.connected(where, Security(digest="carol:secret", acl="creator-readable"))
        other = await bench.connected(where)
        await carol.create("/carol", b"read me")
        assert (await other.get("/carol")).value.data == b"read me"
        with pytest.raises(errors.NoAuth, match="NoAuth: set /carol"):
            await other.set("/carol", b"")

    bench.live.run(story(), "story")


def test_who_it_is_goes_along_to_another_server(bench: Bench, ensemble: ContainerEnsemble) -> None:
    """A session that moves says again who it is."""

    async def story() -> None:
        dave = await bench.connected(ensemble.connect_string, Security(digest="dave:secret", acl="creator"))
        await dave.create("/dave", b"his")
        credentials = dave.credentials
        assert credentials is not None
        (at,) = [name for name, node in ensemble.servers.items() if node.address == credentials.host]
        ensemble.kill(at)
        async with bench.kernel.timeout(LIMIT_US, "the move"):
            while (await dave.events.get()).kind is not SessionEventKind.CONNECTED:
                pass
        assert (await dave.get("/dave")).value.data == b"his"

    bench.live.run(story(), "story")
    ensemble.make_whole()


# -- TLS ----------------------------------------------------------------------------------------


def secure(ensemble: ContainerEnsemble) -> str:
    return ",".join(node.secure_connect_string for node in ensemble.servers.values())


def test_a_session_with_tls(bench: Bench, ensemble: ContainerEnsemble, tls: Path, tmp_path: Path) -> None:
    async def story() -> None:
        text = 'acl = "creator"\n' + tls_text(tls)  # the certificate says who it is
        session = await bench.connected(secure(ensemble), read_security(security_file(tmp_path, text)))
        created = await session.create("/tls", b"private")
        plain = await bench.connected(ensemble.connect_string)
        await bench.caught_up(plain, created.zxid)
        with pytest.raises(errors.NoAuth):
            await plain.get("/tls")
        assert (await session.get("/tls")).value.data == b"private"

    bench.live.run(story(), "story")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ca": "other-ca.pem"}, "certificate verify failed"),
        ({"server_name": "another.test"}, "Hostname mismatch"),
        ({"certificate": "", "key": ""}, "alert certificate required"),
    ],
    ids=["another authority", "another name", "no certificate of ours"],
)
def test_a_session_that_cannot_be_trusted_never_comes_to_be(
    bench: Bench,
    ensemble: ContainerEnsemble,
    tls: Path,
    tmp_path: Path,
    changes: dict[str, str],
    why: str,
) -> None:
    paths = {name: str(tls / value) if value.endswith(".pem") else value for name, value in changes.items()}

    async def story() -> None:
        doubtful = read_security(security_file(tmp_path, tls_text(tls, **paths)))
        await bench.refused(secure(ensemble), doubtful, why)
        trusted = read_security(security_file(tmp_path, tls_text(tls)))
        for node in ensemble.servers.values():  # it was not that they serve nobody
            await bench.connected(node.secure_connect_string, trusted)

    bench.live.run(story(), "story")


def test_without_tls_the_secure_port_says_nothing(bench: Bench, ensemble: ContainerEnsemble) -> None:
    async def story() -> None:
        await bench.refused(secure(ensemble), NO_SECURITY, "closed the connection before it answered")

    bench.live.run(story(), "story")


# -- members ------------------------------------------------------------------------------------


@pytest.fixture
def cluster(ensemble: ContainerEnsemble) -> Iterator[KazooClient]:
    """A topic that all may read; consumers' znodes belong to the group's operator."""
    client = KazooClient(ensemble.connect_string, auth_data=[("digest", "operator:secret")])
    client.start(timeout=60)
    client.create(broker_path(0), broker_znode(0), makepath=True)
    client.create(topic_path("t"), topic_payload({0: [0], 1: [0]}), makepath=True)
    client.create("/consumers", b"", acl=[make_digest_acl("operator", "secret", all=True)])
    yield client
    for path in ("/brokers", "/consumers"):
        client.delete(path, recursive=True)
    client.stop()
    client.close()


def join(connect: str, security: Path | None) -> subprocess.Popen[str]:
    options = ["--security", str(security)] if security is not None else []
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "rebalance_lab", "join", "--zookeeper", connect),
            *("--group", "g", "--topic", "t", "--rules", "shipped", *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_member_with_the_right_owns_and_keeps_its_znodes(
    ensemble: ContainerEnsemble, cluster: KazooClient, tls: Path, tmp_path: Path
) -> None:
    text = 'digest = "operator:secret"\nacl = "creator"\n' + tls_text(tls)
    member = join(secure(ensemble), security_file(tmp_path, text))
    try:
        assert member.stdout is not None
        line = member.stdout.readline()
        assert '"owned":[["t",0],["t",1]]' in line.replace(" ", ""), line or member.stderr
        for path in ("/consumers/g/ids", "/consumers/g/owners/t/0"):
            acls, _ = cluster.get_acls(path)
            assert {each.id.scheme for each in acls} == {"digest", "x509"}, "who made it, by both of its names"
    finally:
        member.terminate()
        member.communicate(timeout=20)
    assert member.returncode == 0
    assert cluster.get_children("/consumers/g/ids") == []


@pytest.mark.parametrize("who", ["nobody", "somebody else"])
def test_a_member_without_the_right_says_so_and_owns_nothing(
    ensemble: ContainerEnsemble, cluster: KazooClient, tmp_path: Path, who: str
) -> None:
    security = None if who == "nobody" else security_file(tmp_path, 'digest = "somebody:else"\n')
    member = join(ensemble.connect_string, security)
    said, errors_said = member.communicate(timeout=60)
    assert member.returncode == 2
    assert said == ""
    assert "NoAuth: create /consumers/g" in errors_said
    assert "the ACL there does not let this session do it" in errors_said
    assert "Traceback" not in errors_said
    assert cluster.get_children("/consumers") == []
