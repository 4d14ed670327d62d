"""The assignors, by name: `ASSIGNORS` and `by_name`."""

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
    partitions_of,
)
from rebalance_lab.assignors.registry import ASSIGNORS, BUILT_IN, by_name, register

__all__ = [
    "ASSIGNORS",
    "BUILT_IN",
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
    "partitions_of",
    "register",
]
