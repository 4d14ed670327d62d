"""Your own assignor in a group: rendezvous hashing beside Kafka's rules, in virtual time.

Four members join one after another, and three of them leave again. Kafka 0.8's rules assign all partitions again from a
sorted list at each change. With rendezvous hashing a partition moves only if its owner has left, or if the newcomer
wins it.
"""

import zlib

import rebalance_lab
from rebalance_lab.assignors import Assignment, AssignmentContext, TopicPartition, register


def rendezvous(context: AssignmentContext) -> Assignment:
    """The thread whose hash with the partition is highest takes it. A member takes what its threads win."""
    taken = []
    for topic, mine in context.my_threads.items():
        partitions, threads = context.topic(topic)
        for partition in partitions:
            winner = max(threads, key=lambda thread: zlib.crc32(f"{topic}/{partition} {thread}".encode()))
            if winner in mine:
                taken.append((TopicPartition(topic, partition), winner))
    return Assignment(tuple(taken))


register("rendezvous", rendezvous)

PARTITIONS = 60
print(f"{PARTITIONS} partitions; four members join, three leave: partitions that moved\n")
for assignor in ("range", "roundrobin", "rendezvous"):
    result = rebalance_lab.run("walkthrough", assignor=assignor, partitions=PARTITIONS)
    changes = result.to_pandas("episodes").query("part == 'change'")
    moved = " ".join(f"{each:3}" for each in changes["moved"])
    print(f"{assignor:>10}: {moved}  = {changes['moved'].sum():3}  ({result.status})")
print("\nThe price is uneven shares: hashing balances only on average.")
