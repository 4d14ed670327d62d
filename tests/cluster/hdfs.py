"""An HDFS on the loopback interface: a name node and a data node, from Spark's Hadoop client and one jar of Maven's."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from standalone import LOOPBACK, QUICK, running, wait_for

_FETCH_S, _FORMAT_S = 600, 120

_READY = re.compile(r"NameNode RPC up at: \S*:(\d+)\.")
_REGISTERED = re.compile(r"Successfully registered with NN|successfully registered with NN")

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"

#: Hadoop says on its log what a port of its choice is.
_LOG = """\
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


def _spark_jars() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "jars"


class HdfsUnavailable(Exception):
    """HDFS cannot be started here. The message says what is missing."""


def servers_jar(folder: Path) -> Path:
    """The jar with Hadoop's servers, of the version of Spark's client. Maven keeps it in its own cache. Raises
    HdfsUnavailable."""
    if shutil.which("mvn") is None:
        raise HdfsUnavailable("no mvn in the PATH, which fetches HDFS's jar (Debian: apt-get install maven)")
    client = next(_spark_jars().glob("hadoop-client-api-*.jar"))
    version = client.stem.removeprefix("hadoop-client-api-")
    artifact = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_FETCH_S, check=False)
    found = list(folder.glob("hadoop-client-minicluster-*.jar"))
    if done.returncode or not found:
        raise HdfsUnavailable(f"Maven could not fetch {artifact}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found[0]


@contextmanager
def hdfs(folder: Path, jar: Path) -> Iterator[str]:
    """Start HDFS from `servers_jar`; yields its URI, `hdfs://127.0.0.1:PORT`. Both processes end with it, by their
    ids."""
    folder.mkdir()
    for server in ("hdfs", "datanode"):  # their web pages, which they must have
        (folder / "web" / "webapps" / server).mkdir(parents=True)
    (folder / "web" / "log4j2.properties").write_text(_LOG)
    classes = f"{folder / 'web'}:{jar}:{_spark_jars()}/*"
    java = ["java", "-Xmx256m", *QUICK.split(), "-cp", classes]
    name = _settings(
        {
            "fs.defaultFS": f"hdfs://{LOOPBACK}:0",
            "dfs.namenode.http-address": f"{LOOPBACK}:0",
            "dfs.namenode.name.dir": str(folder / "names"),
            "dfs.replication": "1",
        }
    )
    subprocess.run(
        [*java, _NAME_NODE, *name, "-format", "-nonInteractive"], check=True, capture_output=True, timeout=120
    )
    with running(folder / "namenode", [*java, _NAME_NODE, *name]) as (process, log):
        port = wait_for(_READY, log, process)[1]
        data = _settings(
            {
                "fs.defaultFS": f"hdfs://{LOOPBACK}:{port}",
                "dfs.datanode.data.dir": str(folder / "blocks"),
                "dfs.datanode.hostname": LOOPBACK,
                **{f"dfs.datanode.{each}": f"{LOOPBACK}:0" for each in ("address", "http.address", "ipc.address")},
            }
        )
        with running(folder / "datanode", [*java, _DATA_NODE, *data]) as (datanode, said):
            wait_for(_REGISTERED, said, datanode)
            yield f"hdfs://{LOOPBACK}:{port}"


def _settings(settings: dict[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("-D", f"{name}={value}")]
