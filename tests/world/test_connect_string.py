"""Connect strings."""

from __future__ import annotations

import pytest

from rebalance_lab.world.zk.connect_string import NO_CHROOT, BadConnectString, Chroot, Server, parse


@pytest.mark.parametrize(
    ("connect", "servers"),
    [
        ("localhost:2181", [Server("localhost", 2181)]),
        ("zk1", [Server("zk1", 2181)]),
        ("zk1:2182,zk2:2183", [Server("zk1", 2182), Server("zk2", 2183)]),
        (" zk1:1 , zk2 ", [Server("zk1", 1), Server("zk2", 2181)]),
        ("zk1:1/", [Server("zk1", 1)]),  # Java takes a lone slash for no chroot
        ("[::1]:2182,[fe80::2]", [Server("::1", 2182), Server("fe80::2", 2181)]),
    ],
)
def test_servers(connect: str, servers: list[Server]) -> None:
    parsed = parse(connect)
    assert list(parsed.servers) == servers
    assert parsed.chroot == NO_CHROOT


@pytest.mark.parametrize(
    ("connect", "prefix"),
    [
        ("zk1:2181/kafka", "/kafka"),
        ("zk1,zk2:2182/kafka/eu ", "/kafka/eu"),
        ("[::1]:1/a,b", "/a,b"),
        ("zk1/...", "/..."),
    ],
)
def test_chroots(connect: str, prefix: str) -> None:
    assert parse(connect).chroot == Chroot(prefix)


@pytest.mark.parametrize(
    ("connect", "complaint"),
    [
        ("", "names no server"),
        (",", "names no server"),
        ("/kafka", "names no server"),
        ("zk1:2181/kafka/", "the chroot '/kafka/' .* ends with a slash"),
        ("zk1:2181//", "has an empty name between slashes"),
        ("zk1:2181/a//b", "has an empty name between slashes"),
        ("zk1:2181/a/../b", "has a name of dots"),
        ("zk1:2181/./b", "has a name of dots"),
        ("zk1:2181/a\0b", "holds a character"),
        ("zk1:2181/kafka,zk2:2181/kafka", "stands behind the last server, once"),
        ("zk1:port", "no port from 1 to 65535"),
        ("zk1:0", "no port from 1 to 65535"),
        ("zk1:65536", "no port from 1 to 65535"),
        ("zk1:", "no port from 1 to 65535"),
        ("zk1:²", "no port from 1 to 65535"),
        (":2181", "is not host:port"),
        ("::1:2181", "is not host:port"),
        ("[::1", r"is not \[address\]:port"),
        ("[::1]2181", r"is not \[address\]:port"),
        ("[]:2181", "is not host:port"),
    ],
)
def test_refusals_name_the_fault(connect: str, complaint: str) -> None:
    with pytest.raises(BadConnectString, match=complaint) as caught:
        parse(connect)
    assert repr(connect) in str(caught.value)


@pytest.mark.parametrize("text", ["zk1:2181", "[::1]:2181"])
def test_a_server_is_written_as_it_was_read(text: str) -> None:
    assert str(parse(text).servers[0]) == text


@pytest.mark.parametrize(
    ("prefix", "client", "server"),
    [("", "/", "/"), ("", "/a/b", "/a/b"), ("/k", "/", "/k"), ("/k", "/a", "/k/a"), ("/k/l", "/k/l", "/k/l/k/l")],
)
def test_paths_behind_a_chroot(prefix: str, client: str, server: str) -> None:
    chroot = Chroot(prefix)
    assert chroot.to_server(client) == server
    assert chroot.to_client(server) == client


def test_paths_that_a_chroot_does_not_take_or_hold() -> None:
    assert Chroot("/k").to_client("/kk/a") == "/kk/a"
    assert [Chroot("/k").takes(path) for path in ("/", "/a", "a", "")] == [True, True, False, False]
    assert [NO_CHROOT.takes(path) for path in ("/", "a", "")] == [True, True, False]
