"""Tier `compat`: librdkafka's test programs, or the reason why they are not there."""

from __future__ import annotations

import os
from pathlib import Path

import librdkafka_build
import pytest

#: Set in CI: there nothing is skipped in silence.
REQUIRED = "REBALANCE_LAB_REQUIRE_COMPAT"


@pytest.fixture(scope="session")
def runner() -> Path:
    """Fetched and built once."""
    try:
        return librdkafka_build.runner()
    except librdkafka_build.Unavailable as unavailable:
        reason = f"no tests of librdkafka: {unavailable}"
    return (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(reason)
