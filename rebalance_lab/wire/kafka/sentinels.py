"""Numbers with a meaning of their own in Kafka's messages (3.9.1), where a real number is never negative."""

from __future__ import annotations

#: Replica ids in Fetch and ListOffsets of those that are not replicas: a reader of what is committed, and one that
#: looks at any replica, up to the log's end (`Request.DebuggingConsumerId`, 0.8 to 3.9).
CONSUMER, DEBUGGING_CONSUMER = -1, -2

#: In place of a time in ListOffsets.
LATEST, EARLIEST, LARGEST_TIMESTAMP = -1, -2, -3

#: A request that does not name the leader epoch that its sender knows.
NO_LEADER_EPOCH = -1

#: In StopReplica: the topic is being deleted, whatever leader epoch the broker knows.
EPOCH_DURING_DELETE = -2

#: A request that does not name the life of a broker (before 2.2).
NO_BROKER_EPOCH = -1
