"""Tier `cluster`: a store in HDFS, on a standalone Spark whose workers share no folder with each other."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hdfs import HdfsUnavailable, hdfs, servers_jar
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from standalone import REQUIRED, cluster, lab, wait_until_none_in

from rebalance_lab.analysis import file_systems, session
from rebalance_lab.analysis.remote_store import JUDGED_FOLDER, STORED, storing
from rebalance_lab.analysis.session import java_problem
from rebalance_lab.analysis.uri import StoreUri
from rebalance_lab.history.files import load, trial_folders
from rebalance_lab.trials import api

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

#: On two cores Spark's 200 partitions of each shuffle take minutes, and so does compiling each query.
SMALL = (
    *("--conf", "spark.sql.shuffle.partitions=2"),
    *("--conf", "spark.sql.adaptive.enabled=false"),
    *("--conf", "spark.sql.codegen.wholeStage=false"),
    *("--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A Spark's master, and the URI of an HDFS."""
    folder = tmp_path_factory.mktemp("hdfs")
    try:
        if (problem := java_problem()) is not None:
            raise HdfsUnavailable(problem)
        jar = servers_jar(folder)
    except HdfsUnavailable as error:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"no HDFS: {error}")
    with hdfs(folder / "hdfs", jar) as uri, cluster(folder / "spark") as master:
        yield master, uri
    wait_until_none_in(folder)


def test_a_sweep_into_hdfs_gives_the_claims_and_tables_of_a_folder(place: tuple[str, str], tmp_path: Path) -> None:
    master, uri = place
    store = f"{uri}/trials"
    plans = [api.make_plan("zombie", seed=seed) for seed in range(1, 5)]
    here = {each.trial.id: each.trial.history_sha256 for each in api.sweep(plans, tmp_path / "trials")}

    swept = lab("sweep", "zombie", "--seeds", 4, "--master", master, "--store", store, "--json")
    assert swept.returncode == 0, swept.stderr
    lines = [json.loads(line) for line in swept.stdout.splitlines()]
    assert {line["trial"]: line["history_sha256"] for line in lines} == here
    assert not Path("hdfs:").exists()  # nothing took the URI for a path

    there = lab("claims", "--json", "--master", master, "--store", store, *SMALL)
    of_folder = lab("claims", "--json", "--store", tmp_path / "trials")
    assert there.returncode == of_folder.returncode, there.stderr
    assert _without_commands(there.stdout) == _without_commands(of_folder.stdout)
    assert json.loads(there.stdout)["Z10"]["readings"]["described"]["simulated"] == 4

    judged_by_other_code(store)
    again = lab("claims", "--json", "--master", master, "--store", store, *SMALL)
    assert (again.returncode, again.stdout) == (there.returncode, there.stdout), again.stderr
    kept = lab("claims", "--json", "--master", master, "--store", store, *SMALL)
    assert kept.stdout == there.stdout

    wrote = lab("tables", "--json", "--master", master, "--store", store, "--out", f"{uri}/tables", *SMALL)
    assert wrote.returncode == 0, wrote.stderr
    rows = {name: table["rows"] for name, table in json.loads(wrote.stdout)["tables"].items()}
    assert (rows["trials"], rows["measures"]) == (4, 4)
    assert rows["events"] == sum(len(load(folder).events) for folder in trial_folders(tmp_path / "trials"))


def judged_by_other_code(store: str) -> None:
    """Add the rows of a store again, as if older code had judged them, and had found nothing: this code has to."""
    uri = StoreUri(store)
    with session.start(cores=1) as local:
        older = local.session.read.schema(STORED).option("recursiveFileLookup", "true").parquet(f"{uri}/histories")
        nothing = F.col("judged").withField("findings", F.slice("judged.findings", 1, 0))
        changed = {"code": F.lit("older"), "written_us": F.col("written_us") + 1, "judged": nothing}
        storing(uri)(older.withColumns(changed).localCheckpoint())
        assert not file_systems.exists(local.session, uri / JUDGED_FOLDER)


def _without_commands(text: str) -> dict[str, object]:
    claims = json.loads(text)
    for claim in claims.values():
        for reading in claim["readings"].values():
            del reading["replay"]  # names a folder of this machine, or the plan
    return dict(claims)
