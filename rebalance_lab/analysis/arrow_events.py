"""Events as Arrow columns (schema EVENTS), and back without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


#: The columns that `events_of` needs, and those of texts that repeat: read as dictionaries they are one object each.
READ = tuple(name for name in EVENTS.fieldNames() if name != "trial")
REPEATED = ("actor", "layer", "kind", "member", "session", "group", "topic", "detail")


def events_of(table: pa.Table) -> Iterator[Event]:
    """The events of rows of EVENTS, in their order. It needs the columns READ; those of REPEATED may be dictionaries.
    Events with the same detail share it."""
    plain = {name: _values(table.column(name)) for name in _PLAIN if name not in ("kind", "layer")}
    kinds, layers = _values(table.column("kind"), Kind), _values(table.column("layer"), Layer)
    details = _values(table.column("detail"), _decode)
    columns: dict[str, Any] = {**plain, "kind": kinds, "layer": layers, "cause": _ids(table), "detail": details}
    return map(Event, *(columns[name] for name in Event.__struct_fields__))


def _values(column: pa.ChunkedArray, make: Callable[[Any], Any] | None = None) -> list[Any]:
    """The values of a column. `make`: makes them of what is stored, once of equal ones."""
    values: list[Any] = []
    for chunk in column.chunks:
        encoded = chunk if pa.types.is_dictionary(chunk.type) or make is None else chunk.dictionary_encode()
        if not pa.types.is_dictionary(encoded.type):
            values += encoded.to_pylist()
            continue
        known = [value if make is None else make(value) for value in encoded.dictionary.to_pylist()]
        none = len(known)
        known.append(None)
        values += [known[index] for index in encoded.indices.fill_null(none).to_numpy().tolist()]
    return values


def _ids(table: pa.Table) -> list[object]:
    causes = table.column("cause")
    ids = zip(*(pc.struct_field(causes, name).to_pylist() for name in ("actor", "n")), strict=True)
    return [each if known else None for each, known in zip(ids, causes.is_valid().to_pylist(), strict=True)]
