"""Trial outcomes: what every check says of every trial. The trial function is
`checks.judge`, the same that judges a single trial elsewhere."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructType

from rebalance_lab.analysis.tables.schemas import EVENT_ID, TRIALS, column

#: What one check says of a trial. `longest_us` in microseconds; it and `count` are 0 where the
#: check measures none.
FINDINGS = StructType(
    [
        column("check", StringType()),
        column("outcome", StringType()),
        column("why", StringType()),
        column("witness", ArrayType(EVENT_ID, False)),
        column("longest_us", LongType()),
        column("count", LongType()),
    ]
)

#: One row a trial and check that applies to it. `faults`: how many the trial had; `bitten`: it
#: had some, and each is shown to have bitten. `history_sha256` is of the events themselves, as
#: `history.files.digest` has it, whatever `trial.json` says. `unproved`: see
#: `trialwise.credentials`.
OUTCOMES = StructType(
    [
        *(field for field in TRIALS.fields if field.name != "document"),
        column("history_sha256", StringType()),
        column("faults", LongType()),
        column("bitten", BooleanType()),
        column("unproved", StringType(), null=True),
        *FINDINGS.fields,
    ]
)


def trial_outcomes(results: DataFrame) -> DataFrame:
    """RESULTS to OUTCOMES: a row for each trial and each check that applies to it."""
    rows = results.withColumn("all_bitten", (F.col("faults") > 0) & (F.col("bitten") == F.col("faults")))
    rows = rows.drop("bitten").withColumnRenamed("all_bitten", "bitten")
    own = [name for name in OUTCOMES.fieldNames() if name not in FINDINGS.fieldNames()]
    return rows.select(*own, F.inline("findings"))
