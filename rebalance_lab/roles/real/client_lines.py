"""The history of one ZooKeeper client: turns what ZooKeeper's own Java client logs into events.

The client logs only replies, so an INVOKED is recorded with its reply. Requests that were lost with a connection are
not recorded.
"""

from __future__ import annotations

from rebalance_lab.history.events import Kind
from rebalance_lab.roles.real.event_writer import EventWriter
from rebalance_lab.roles.real.packets import MULTI, Packet, fired, opened, packet

#: What both Kafka's client and I0Itec's ZkClient say of the connection, and the kind of the event.
SESSION_KINDS = {"SyncConnected": Kind.CONNECTED, "Disconnected": Kind.DISCONNECTED, "Expired": Kind.EXPIRED}


def read_client_line(writer: EventWriter, message: str) -> Packet | None:
    """Record a watch that fired, or a request with its reply, and note the session. Returns the packet, if the line
    reports one; of a multi the log does not show what it did, so that is left to the caller."""
    if (watch := fired(message)) is not None:
        writer.emit(Kind.WATCH_FIRED, {"path": watch.path, "event": watch.event})
    elif (found := packet(message)) is not None:
        if found.operation != MULTI:
            _exchanged(writer, found)
        return found
    elif (session := opened(message)) is not None:
        writer.session = session
    return None


def _exchanged(writer: EventWriter, asked: Packet) -> None:
    detail: dict[str, object] = {"op": asked.operation, "path": asked.path}
    invoked = writer.emit(Kind.INVOKED, {**detail, **({"watch": True} if asked.watch else {})})
    detail["of"] = invoked[1]
    if asked.error is None:
        writer.emit(Kind.OK, detail, cause=invoked, zxid=asked.zxid)
    else:
        detail["error"] = asked.error
        writer.emit(Kind.FAILED_OP, detail, cause=invoked, zxid=asked.zxid)
