"""Names of topics, folders and files."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.names import (
    InvalidTopic,
    check_topic,
    deleted_folder,
    folder_of,
    is_deleted_folder,
    partition_of,
    segment_file,
    segment_file_parts,
)

UNIQUE = "0123456789abcdef" * 2


@pytest.mark.parametrize("topic", ["a", "a.b_c-d", "__consumer_offsets", "x" * 249, "..."])
def test_a_topic_may_be_named(topic):
    check_topic(topic)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "ä", "a\n", "../a", "x" * 250])
def test_a_topic_may_not_be_named(topic):
    with pytest.raises(InvalidTopic, match="topic"):
        check_topic(topic)


@pytest.mark.parametrize(
    "partition", [TopicPartition("a", 0), TopicPartition("a-1", 10), TopicPartition("-", 2), TopicPartition("a-", 1)]
)
def test_a_folder_names_its_partition(partition):
    assert partition_of(folder_of(partition)) == partition


@pytest.mark.parametrize("folder", ["lost+found", "a", "a-", "-0", "a-b", "a-01", "a-4294967296", "..-0"])
def test_other_folders_name_none(folder):
    assert partition_of(folder) is None


def test_a_deleted_folder_is_no_partitions():
    folder = deleted_folder(TopicPartition("a-b", 3), UNIQUE)
    assert folder == f"a-b-3.{UNIQUE}-delete"
    assert is_deleted_folder(folder)
    assert partition_of(folder) is None


def test_a_long_topic_is_cut_in_the_name_of_its_deleted_folder():
    folder = deleted_folder(TopicPartition("x" * 249, 12), UNIQUE)
    assert len(folder) == 255
    assert is_deleted_folder(folder)


def test_a_segments_file_has_its_offset_in_twenty_digits():
    assert segment_file(42, ".log") == "00000000000000000042.log"
    assert segment_file_parts("00000000000000000042.timeindex") == (42, ".timeindex")


@pytest.mark.parametrize("name", ["42.log", "00000000000000000042.log.deleted", "leader-epoch-checkpoint"])
def test_other_files_are_of_no_segment(name):
    assert segment_file_parts(name) is None
