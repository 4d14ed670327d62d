"""Bands are painted, and a znode that a client deletes is not said to have gone with its session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rebalance_lab.report
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.report.glossary import words_of

TEMPLATES = Path(rebalance_lab.report.__file__).parent / "templates"
BANDS = Path(rebalance_lab.report.__file__).parent / "bands.py"


def test_every_kind_of_band_that_has_a_length_has_a_colour() -> None:
    """A rectangle without a rule is black, and hides what is under it."""
    kinds = set(re.findall(r'kind="(\w+)"', BANDS.read_text("utf-8"))) | {"unproven", "change", "fault"}
    rules = set(re.findall(r"^\.band-(\w+) ", (TEMPLATES / "pictures.css").read_text("utf-8"), re.MULTILINE))
    assert kinds - rules == {"session"}  # a moment, which has a line


def deleted(**detail: object) -> Event:
    return Event("zookeeper", 0, 0, Layer.REGISTRY, Kind.DELETED, detail={"path": "/a", **detail})


@pytest.mark.parametrize("subject", ["zk", "broker"])
def test_a_deletion_is_explained_by_the_session_only_if_that_ended(subject: str) -> None:
    words = words_of(subject)
    assert "session" in words.alone(deleted(with_session=True))
    assert words.alone(deleted()) == (
        "ZooKeeper deletes a znode for any client that asks; it does not know what the client may do."
    )
