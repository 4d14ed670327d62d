"""Every rule of dealing out partitions, by name: `ASSIGNORS` and `by_name`."""

from rebalance_lab.assignors.model import (
    Assignment,
    AssignmentContext,
    AssignmentError,
    Assignor,
    NoTopics,
    RequirementFailed,
    TopicPartition,
    UnknownAssignor,
    java_order,
)
from rebalance_lab.assignors.registry import ASSIGNORS, by_name

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "AssignmentContext",
    "AssignmentError",
    "Assignor",
    "NoTopics",
    "RequirementFailed",
    "TopicPartition",
    "UnknownAssignor",
    "by_name",
    "java_order",
]
