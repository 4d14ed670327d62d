"""What a member's process is told: JSON objects, one in its start file for each member, and more
on its standard input while it runs."""

from __future__ import annotations

from typing import Literal

import msgspec


class MemberSpec(msgspec.Struct, frozen=True):
    """`properties`: consumer settings under their own names, as text. `streams`: topic -> stream
    count; or `whitelist` or `blacklist`: a filter, with `filter_streams` streams.
    `assignor`: a rule that comes before the rule set's own.
    `events`: path of the JSON-lines file this member appends its events to; `operations`:
    whether each ZooKeeper operation is recorded there, or only how many there were.
    `security`: path of a file with authentication, ACLs and TLS (`world.live.security`)."""

    actor: str
    host: str
    seed: int
    rules: str
    assignor: str | None
    properties: dict[str, str]
    streams: dict[str, int]
    plant: str | None
    events: str
    whitelist: str | None = None
    blacklist: str | None = None
    filter_streams: int = 1
    work_period_ms: int = 50
    fetcher_stop_ms: int = 0
    operations: Literal["all", "counts"] = "all"
    security: str | None = None


class Start(msgspec.Struct, frozen=True, tag="start"):
    """A further member joins in this process."""

    member: MemberSpec


class Leave(msgspec.Struct, frozen=True, tag="leave"):
    """The member `actor` shuts down cleanly."""

    actor: str


class Expire(msgspec.Struct, frozen=True, tag="expire"):
    """The ZooKeeper session of `actor` is closed behind its back: a second connection shows the
    session's id and password, and closes it."""

    actor: str


Command = Start | Leave | Expire
