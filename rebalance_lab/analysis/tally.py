"""How many trials Spark's workers have judged so far: a file to which each appends a byte for a trial.

Spark's own counters come when a task ends, and a task judges many trials. On a cluster whose workers do not see the
driver's temporary folder nothing is counted.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

#: The setting of a session that names the file.
_TALLY = "rebalance-lab.tally"


def count_in(spark: SparkSession, file: Path) -> None:
    """Have the trials that a session judges counted in this file. Its folder must exist, on this machine."""
    file.touch()
    spark.conf.set(_TALLY, str(file))


def tally_of(spark: SparkSession) -> str | None:
    """The file in which this session's trials are counted; None if they are not."""
    file: str | None = spark.conf.get(_TALLY, None)
    return file


def count_one(file: str | None) -> None:
    """Count a trial, in a worker. A file that is not there is not made. An error costs the line of progress only, so
    it is ignored."""
    with suppress(OSError):
        if file is not None and Path(file).exists():
            with Path(file).open("ab", buffering=0) as tally:
                tally.write(b".")


def counted(file: Path) -> int:
    """How many trials were counted; 0 if the file has gone."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
