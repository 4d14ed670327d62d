"""One Spark for all tests of the analysis: it takes longer to start than they take to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rebalance_lab.analysis import session
from rebalance_lab.analysis.session import LocalSpark


@pytest.fixture(scope="session")
def local_spark() -> Iterator[LocalSpark]:
    with session.start() as local:
        yield local


@pytest.fixture
def spark(local_spark: LocalSpark) -> object:
    return local_spark.session
