"""What a member's process is told at its start: one JSON object."""

from __future__ import annotations

import msgspec


class MemberSpec(msgspec.Struct, frozen=True):
    """`properties`: Kafka's own consumer settings, as text. `streams`: topic -> stream count.
    `assignor`: a rule that comes before the rule set's own.
    `events`: path of the JSON-lines file this process appends its events to."""

    actor: str
    host: str
    seed: int
    rules: str
    assignor: str | None
    properties: dict[str, str]
    streams: dict[str, int]
    plant: str | None
    events: str
    work_period_ms: int = 50
    fetcher_stop_ms: int = 0
