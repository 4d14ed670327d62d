"""The text files of a broker's folder."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.checkpoints import (
    MalformedFile,
    MetaProperties,
    read_epochs,
    read_meta,
    read_offsets,
    write_clean_shutdown,
    write_epochs,
    write_meta,
    write_offsets,
)
from rebalance_lab.broker.log.epochs import EpochStart

OFFSETS = {TopicPartition("b", 1): 7, TopicPartition("a", 10): 2**40, TopicPartition("a", 2): 0}
META = MetaProperties(cluster_id="vPeOCWypqUOSepEvx0cbog", broker_id=1)


def test_offsets_are_written_as_kafka_writes_them():
    assert write_offsets(OFFSETS) == b"0\n3\na 2 0\na 10 1099511627776\nb 1 7\n"
    assert read_offsets(write_offsets(OFFSETS)) == OFFSETS


def test_epochs_are_written_as_kafka_writes_them():
    entries = [EpochStart(0, 0), EpochStart(3, 42)]
    assert write_epochs(entries) == b"0\n2\n0 0\n3 42\n"
    assert read_epochs(write_epochs(entries)) == entries


@pytest.mark.parametrize("data", [b"", b"0\n"])
def test_a_file_that_was_never_written_has_no_entries(data):
    assert read_offsets(data) == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"1\n0\n", "version '1'"),
        (b"0\nx\n", "'x' is not a number"),
        (b"0\n2\na 0 1\n", "announces 2 entries and has 1"),
        (b"0\n1\na 0 1\nb 0 1\n", "announces 1 entries and has 2"),
        (b"0\n1\na 1\n", "2 fields instead of 3"),
        (b"0\n1\na 0 -5\n", "'-5' is not a number"),
        (b"0\n1\na 0 \xff\n", "byte 8 is not UTF-8"),
        (b"0\n1\na 0 1", None),  # a last line without its end is whole
    ],
)
def test_a_malformed_checkpoint_says_why(data, why):
    if why is None:
        assert read_offsets(data)
        return
    with pytest.raises(MalformedFile, match=why):
        read_offsets(data)


def test_a_folder_names_its_owner():
    assert write_meta(META) == b"#\nbroker.id=1\ncluster.id=vPeOCWypqUOSepEvx0cbog\nversion=0\n"
    assert read_meta(write_meta(META)) == META


def test_kafkas_own_file_is_read():
    kafka = (
        b"#\n#Sun Nov 22 22:37:28 UTC 2026\ncluster.id=vPeOCWypqUOSepEvx0cbog\n"
        b"directory.id=gT5VPf3bRbSpwYWlhmWU5A\nversion=0\nbroker.id = 1\n"
    )
    assert read_meta(kafka) == META


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"version=1\nnode.id=1\ncluster.id=x\n", "version 1"),
        (b"broker.id=1\ncluster.id=x\n", "version None"),
        (b"version=0\n", "lacks broker.id and cluster.id"),
        (b"version=0\nbroker.id=one\ncluster.id=x\n", "'one' is not a number"),
        (b"version\n", "is not key=value"),
    ],
)
def test_a_malformed_owner_says_why(data, why):
    with pytest.raises(MalformedFile, match=why):
        read_meta(data)


def test_the_mark_of_a_clean_shutdown_is_kafkas():
    assert write_clean_shutdown(25) == b'{"version":0,"brokerEpoch":25}'
