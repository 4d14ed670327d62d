"""Ports that stay ours."""

from __future__ import annotations

import socket

import pytest

from rebalance_lab.world.live.reserved_port import HOST, ReservedPort


def test_a_reserved_port_is_free_for_its_server_again_and_again() -> None:
    port = ReservedPort()
    for _ in range(2):
        with socket.create_server((HOST, port.number)) as server:
            server.settimeout(10)
            with socket.create_connection((HOST, port.number), timeout=10):
                server.accept()[0].close()
    port.close()


def test_nobody_else_is_given_it() -> None:
    """400 of some 28,000 are reserved; 600 sockets that ask for any port meet none of them
    (by chance that would happen once in 5,000 runs)."""
    reserved = [ReservedPort() for _ in range(400)]
    numbers = {port.number for port in reserved}
    assert len(numbers) == 400
    others: list[socket.socket] = []
    with socket.create_server((HOST, 0), backlog=400) as server:
        for _ in range(300):
            others.append(socket.create_connection(server.getsockname(), timeout=10))
            others.append(socket.create_server((HOST, 0)))
    given = {each.getsockname()[1] for each in others}
    for connection in others:
        connection.close()
    for port in reserved:
        port.close()
    assert not given & numbers


def test_without_the_option_it_is_taken() -> None:
    port = ReservedPort()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind((HOST, port.number))
    port.close()
