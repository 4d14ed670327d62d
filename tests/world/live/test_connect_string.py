"""Connect strings."""

from __future__ import annotations

import pytest

from rebalance_lab.world.live.connect_string import BadConnectString, Server, parse


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
    assert list(parse(connect)) == servers


@pytest.mark.parametrize(
    ("connect", "complaint"),
    [
        ("", "names no server"),
        (",", "names no server"),
        ("zk1:2181/kafka", r"has a chroot \(/kafka\)"),
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
    assert str(parse(text)[0]) == text
