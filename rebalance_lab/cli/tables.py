"""`tables`: everything that a store shows, as Parquet for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rebalance_lab.analysis.uri import Place, StoreUri
from rebalance_lab.cli.claims import Judging, Watched, name_left_out
from rebalance_lab.cli.exit_codes import AS_EXPECTED, UNKNOWN
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    AnyStoreOption,
    ConfOption,
    CoresOption,
    EventLogOption,
    JsonOption,
    MasterOption,
    RejudgeOption,
    UiOption,
    place_named,
    settings_of_spark,
)
from rebalance_lab.cli.terminal import answer, print_json, progress, say, table, whole
from rebalance_lab.history.files import trial_folders

#: Of histories, some 250,000 events: from here on tables are written sooner by a Spark that compiles its queries.
MANY_BYTES = 50_000_000

OutOption = Annotated[
    Any,  # a Place: typer knows no unions
    typer.Option(
        "--out",
        help="The folder to write, or a URI that Spark knows. It must not exist.",
        metavar="DIR|URI",
        show_default=False,
        parser=place_named,
    ),
]


def tables(
    *,
    out: OutOption,
    store: AnyStoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    cores: CoresOption = None,
    master: MasterOption = None,
    rejudge: RejudgeOption = False,
    event_log: EventLogOption = None,
    ui: UiOption = False,
    conf: ConfOption = None,
) -> None:
    """Write all that a store shows as Parquet, for PySpark, DuckDB and pandas."""
    judging = Judging(cores, master, rejudge, event_log, ui, settings_of_spark(conf))
    trials = _trials_of(store)
    from rebalance_lab.analysis.ledger import read_ledger  # noqa: PLC0415  # Spark takes long to import
    from rebalance_lab.analysis.published import MANIFEST, must_be_free, publish  # noqa: PLC0415
    from rebalance_lab.analysis.store import read_store  # noqa: PLC0415

    must_be_free(out)
    watched = Watched(judging, trials, store)
    with progress().status(watched):
        source = store if isinstance(store, StoreUri) else read_store(store)
        many_rows = not isinstance(source, StoreUri) and source.bytes > MANY_BYTES
        with watched.start(many_rows=many_rows) as spark:
            published = publish(spark.session, source, read_ledger(), out, rejudge=rejudge)
    name_left_out(published.left_out, published.cut_off)
    if as_json:
        print_json(published)
    else:
        rows = [
            (name, f"{each.rows:,}", f"{each.files:,}", _size(each.bytes)) for name, each in published.tables.items()
        ]
        answer().print(
            table(f"Tables in {out}", ("table", "rows", "files", "size"), rows, numbers=("rows", "files", "size"))
        )
        say(f"What was written is also in {MANIFEST}. To read a table:")
        if isinstance(out, Path):
            whole(f"  duckdb.sql(\"SELECT * FROM '{out}/episodes/**/*.parquet'\")")
            whole(f'  pandas.read_parquet("{out}/episodes")')
        whole(f'  spark.read.parquet("{out}/episodes")')
    raise typer.Exit(AS_EXPECTED if published.whole else UNKNOWN)


def _trials_of(store: Place) -> int | None:
    """How many trials a store has; None if only Spark can tell. Raises Failure for a folder without any."""
    if isinstance(store, StoreUri):
        return None
    if not store.is_dir() or not (trials := len(trial_folders(store))):
        raise Failure(f"{store} holds no trial; run some: rebalance-lab run zombie --store {store}")
    return trials


def _size(size: int) -> str:
    """In a unit that leaves at most four digits."""
    for unit in ("B", "KB", "MB"):
        if size < 10_000:
            return f"{size:,} {unit}"
        size //= 1000
    return f"{size:,} GB"
