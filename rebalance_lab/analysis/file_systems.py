"""The file systems of Spark's that a URI names: HDFS, and whatever else Hadoop has a client for on Spark's class path.

Rows are read and written by Spark itself. This is for the few files beside them, which the driver handles through the
JVM: no library in Python knows all of Spark's file systems. So a store at a URI needs a session with a JVM, and Spark
Connect has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from rebalance_lab.analysis.uri import StoreUri


def exists(spark: SparkSession, uri: StoreUri) -> bool:
    """Whether there is a file or a folder. Raises OSError, as every function here."""
    with _told(uri):
        system, path = _at(spark, uri)
        return bool(system.exists(path))


def remove(spark: SparkSession, uri: StoreUri) -> None:
    """Remove a file or a folder with all that is in it, if it is there."""
    with _told(uri):
        system, path = _at(spark, uri)
        system.delete(path, True)


def write(spark: SparkSession, uri: StoreUri, content: bytes) -> None:
    """Write a small file."""
    with _told(uri):
        system, path = _at(spark, uri)
        stream = system.create(path, True)
        try:
            stream.write(content)
        finally:
            stream.close()


def claim(spark: SparkSession, uri: StoreUri) -> bool:
    """Make an empty file; False if there is one already. If several processes try, one succeeds, on file systems that
    make a file in one step (HDFS and local ones do)."""
    with _told(uri):
        system, path = _at(spark, uri)
        try:
            system.create(path, False).close()
        except Py4JJavaError:
            if system.exists(path):
                return False
            raise
        return True


def read(spark: SparkSession, uri: StoreUri) -> bytes:
    """The content of a small file."""
    with _told(uri):
        system, path = _at(spark, uri)
        stream = system.open(path)
        try:
            return bytes(_jvm(spark).org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()


def sizes(spark: SparkSession, uri: StoreUri, suffix: str) -> list[int]:
    """The bytes of each file with this end of its name in a folder and below it; none if there is no folder."""
    with _told(uri):
        system, path = _at(spark, uri)
        if not system.exists(path):
            return []
        found, files = [], system.listFiles(path, True)
        while files.hasNext():
            file = files.next()
            if file.getPath().getName().endswith(suffix):
                found.append(int(file.getLen()))
        return found


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _at(spark: SparkSession, uri: StoreUri) -> tuple[Any, Any]:
    path = _jvm(spark).org.apache.hadoop.fs.Path(str(uri))
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


@contextmanager
def _told(uri: StoreUri) -> Iterator[None]:
    """Errors of Java as an OSError that names the URI."""
    try:
        yield
    except Py4JJavaError as error:
        raise OSError(f"{uri} cannot be reached: {reason(error)}") from error
    except Py4JError as error:
        raise OSError(f"{uri} cannot be reached: {error}") from error


def reason(error: Py4JJavaError) -> str:
    """What Java said, in one line."""
    return str(error.java_exception.toString()).splitlines()[0]
