"""Events as Arrow columns (schema EVENTS), and back without loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.tables.schemas import EVENTS
from rebalance_lab.history.events import Event, Kind, Layer

#: Rows of one batch, and of one row group in Parquet. This bounds the memory that a conversion takes.
BATCH_ROWS = 100_000

#: Fields of an event that are columns without conversion.
_PLAIN = tuple(name for name in Event.__struct_fields__ if name not in ("cause", "detail"))

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


def event_batches(trial: str, events: Sequence[Event]) -> Iterator[pa.RecordBatch]:
    """A trial's events, in their order, in batches of at most BATCH_ROWS; no batch for no events."""
    for start in range(0, len(events), BATCH_ROWS):
        yield _batch(trial, events[start : start + BATCH_ROWS])


def _batch(trial: str, events: Sequence[Event]) -> pa.RecordBatch:
    columns = {name: list(map(attrgetter(name), events)) for name in _PLAIN}
    columns["trial"] = [trial] * len(events)
    columns["detail"] = [None if event.detail is None else _encode(event.detail).decode() for event in events]
    schema = arrow_schema(EVENTS)
    arrays = [
        _causes(events, field.type) if field.name == "cause" else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _causes(events: Sequence[Event], kind: pa.StructType) -> pa.StructArray:
    """Built from two arrays, because a dict for each event would take as long as all other columns."""
    ids = [event.cause or ("", -1) for event in events]
    return pa.StructArray.from_arrays(
        [pa.array([actor for actor, _ in ids], pa.string()), pa.array([n for _, n in ids], pa.int64())],
        fields=list(kind.fields),
        mask=pa.array([event.cause is None for event in events]),
    )


def events_of(table: pa.Table) -> Iterator[Event]:
    """The events of rows of EVENTS, in their order."""
    plain = {name: table.column(name).to_pylist() for name in _PLAIN}
    kinds = _members(Kind, plain.pop("kind"))
    layers = _members(Layer, plain.pop("layer"))
    details = [None if text is None else _decode(text) for text in table.column("detail").to_pylist()]
    columns: dict[str, Any] = {**plain, "kind": kinds, "layer": layers, "cause": _ids(table), "detail": details}
    return map(Event, *(columns[name] for name in Event.__struct_fields__))


def _members(of: type[Kind] | type[Layer], values: list[str]) -> list[Kind | Layer]:
    members = {value: of(value) for value in set(values)}
    return [members[value] for value in values]


def _ids(table: pa.Table) -> list[object]:
    causes = table.column("cause")
    ids = zip(*(pc.struct_field(causes, name).to_pylist() for name in ("actor", "n")), strict=True)
    return [each if known else None for each, known in zip(ids, causes.is_valid().to_pylist(), strict=True)]
