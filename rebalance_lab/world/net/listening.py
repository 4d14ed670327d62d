"""Where nodes listen, as histories have it."""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.world.network import Address
from rebalance_lab.world.ports import RecorderPort


def record_listening(recorder: RecorderPort, address: Address) -> None:
    """Record that the node takes connections at this address."""
    recorder.emit(Layer.OP, Kind.LISTENING, detail={"host": address.host, "port": address.port})


def address_of(event: Event) -> Address:
    """The address that a LISTENING names."""
    host, port = event.of("host"), event.of("port")
    assert isinstance(port, int), "recorded as a number"
    return Address(str(host), port)
