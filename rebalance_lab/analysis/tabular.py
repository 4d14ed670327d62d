"""Tables of rows, as Arrow, pandas or Spark has them. Light: each library is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class MissingLibrary(ImportError):
    """A table was asked for in the form of a library that is not installed. The message names the library."""


class UnknownTable(LookupError):
    """There is no table of this name; the message lists those there are."""


class Tabular:
    """Something that has tables. `tables`: their names."""

    __slots__ = ()

    @property
    def tables(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _arrow(self, name: str) -> pa.Table:
        """The table `name`, which is one of `tables`."""
        raise NotImplementedError

    def to_arrow(self, table: str) -> pa.Table:
        """A table as a `pyarrow.Table`. Raises UnknownTable, MissingLibrary."""
        if table not in self.tables:
            raise UnknownTable(f"there is no table {table}; there are: {', '.join(self.tables)}")
        with needed_for(f"the table {table}"):
            return self._arrow(table)

    def to_pandas(self, table: str) -> pd.DataFrame:
        """A table as a `pandas.DataFrame`. Raises UnknownTable, MissingLibrary."""
        with needed_for("a table in pandas"):
            import pandas as _  # noqa: F401, PLC0415
        return self.to_arrow(table).to_pandas()

    def to_spark(self, table: str, spark: SparkSession) -> DataFrame:
        """A table as a Spark DataFrame of the session `spark`. Raises UnknownTable, MissingLibrary."""
        return spark.createDataFrame(self.to_arrow(table))


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Turn the error for a library that is not installed into one line that names it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("rebalance_lab"):
            raise
        library = missing.name.partition(".")[0]
        raise MissingLibrary(
            f"{what} needs {library}, which is not installed here; install the lab with all it depends on, "
            f"or: pip install {library}"
        ) from missing
