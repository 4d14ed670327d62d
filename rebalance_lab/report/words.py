"""The words of the pages, each in one sentence, for a person who never used Kafka or ZooKeeper."""

from __future__ import annotations

#: (word, what it means), in an order in which each needs only those before it.
WORDS = (
    ("partition", "One part of a topic’s messages. `t1/0` is partition 0 of topic t1. One member of a group reads it."),
    ("group, member", "Programs that share the partitions of a topic among themselves. m1, m2 … are members."),
    ("ZooKeeper", "A small store of named records, kept on one or more servers, by which the members find each other."),
    ("znode", "One record in ZooKeeper. It has a path, as a file has."),
    ("session", "ZooKeeper’s contact with one member. It ends when the member is not heard for the time-out."),
    ("ephemeral", "A znode that vanishes with the session that made it."),
    ("registration", "A member’s own znode, under `ids`: it says “I am here”."),
    ("owner znode", "A znode that says which member has a partition. It can exist once only."),
    ("watch, notification", "A member asks to be told when something changes. It is told once, and must ask again."),
    ("rebalance", "A member gives up all it owns, reads who is there, works out its share, and claims that."),
    ("to deal", "To work out who gets which partition. Every member does so for itself, by the same rule."),
    ("attempt, retry", "One try of a rebalance. After a conflict a member waits (the back-off) and tries again."),
    ("at rest", "Nothing has happened for a while, and no member has anything left to do."),
    ("belief", "What a member thinks it owns."),
    ("registry", "What ZooKeeper says who owns."),
    ("effect", "What is really worked on."),
    ("zombie", "A member that was thought dead, and goes on."),
    ("fault, control", "A fault is done to the group on purpose. The control is the same trial without it."),
    ("witness", "The fewest recorded events that prove an anomaly."),
    ("reproduced, refuted", "The trials bear a claim out, or contradict it. Too few of them leave it unknown."),
    (
        "as expected, surprise",
        "What came out is, or is not, what was expected. It does not make a claim true.",
    ),
    ("either", "The scenario expects no outcome of this check: in such a trial it may be clean or violated."),
    ("simulated, real", "A trial in virtual time, every schedule chosen by its seed; or on a real ZooKeeper."),
    ("described, shipped", "Members that do as the articles say, or as Kafka 0.8.2.2 does."),
)
