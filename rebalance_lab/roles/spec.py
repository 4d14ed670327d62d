"""Start data of nodes, and commands to their processes. Both are JSON objects: one for each node in the start file, and
one per line on the process's standard input while it runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from rebalance_lab.kernel import Flag
from rebalance_lab.world.ports import Environment

S = TypeVar("S", bound="NodeSpec")

ROLE = "role"


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, tag_field=ROLE):
    """The start data of every node. A role adds its own settings in a subclass, whose tag is the role's module.

    `actor`: its name in the trial. `host`: the host name that it reports. `events`: path of the JSON-lines file that it
    appends its events to. `operations`: whether each ZooKeeper operation is recorded there, or only the number of each
    kind. `security`: path of a file with authentication, ACLs and TLS (`world.live.security`). `storage`: path of the
    folder for its files; None: next to its events.
    """

    actor: str
    host: str
    seed: int
    events: str
    operations: Literal["all", "counts"] = "all"
    security: str | None = None
    storage: str | None = None
    plant: str | None = None

    @property
    def files(self) -> Path:
        """The folder for the node's files."""
        return Path(self.storage if self.storage is not None else f"{self.events.removesuffix('.jsonl')}.files")


@dataclass(frozen=True, slots=True)
class Role:
    """What a node can be. `name`: one word for it. `run`: runs a node's whole life, in any world; it ends after
    `closing` is raised."""

    name: str
    spec: type[NodeSpec]
    run: Callable[[Environment, Any, Flag], Coroutine[Any, Any, None]]


def role_of(spec: NodeSpec) -> Role:
    """The role of a node: the `ROLE` of the module that its tag names."""
    return _role(str(type(spec).__struct_config__.tag))


def _role(module: str) -> Role:
    found = getattr(importlib.import_module(module), "ROLE", None)
    if not isinstance(found, Role):
        raise TypeError(f"module {module} has no ROLE: a node's role is the module that defines it")
    return found


def decode_spec(data: bytes | msgspec.Raw) -> NodeSpec:
    """The start data of one node. Raises msgspec.DecodeError, and ImportError or TypeError for an unknown role."""
    role = _role(str(msgspec.json.decode(data)[ROLE]))
    return msgspec.json.decode(data, type=role.spec)


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Start another node in this process. `node`: its start data."""

    node: msgspec.Raw


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """Let the node `actor` shut down cleanly."""

    actor: str


class Expire(msgspec.Struct, frozen=True, tag="expire"):
    """End the ZooKeeper session of `actor` without its knowledge: a second connection presents the session's id and
    password, and closes it."""

    actor: str


class SetLink(msgspec.Struct, frozen=True, kw_only=True, tag="set-link"):
    """From now the connections of `actor` to its peer lose what goes to it (`silent_to`) and what comes from it
    (`silent_from`), or take longer, until the next such command. `addresses`: where the peer listens. The process
    answers with a LINK_SET of this `number`."""

    actor: str
    peer: str
    silent_to: bool
    silent_from: bool
    slow_to_ms: int
    slow_from_ms: int
    number: int = 0
    addresses: tuple[str, ...] = ()

    def numbered(self, number: int, addresses: Iterable[str]) -> SetLink:
        """The same, to be sent."""
        return msgspec.structs.replace(self, number=number, addresses=tuple(addresses))


Command = Start | Leave | Expire | SetLink
