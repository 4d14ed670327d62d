"""The terms that the pages use, explained for readers who never used Kafka or ZooKeeper."""

from __future__ import annotations

#: (term, explanation). Each explanation uses only terms that stand before it.
WORDS = (
    (
        "partition",
        "One part of a topic’s messages. `t1/0` is partition 0 of topic t1. Only one member of a group reads it.",
    ),
    ("group, member", "A group is a set of programs that share the partitions of topics. m1, m2 … are its members."),
    ("ZooKeeper", "A small store of named records, kept on one or more servers. Members find each other through it."),
    ("znode", "One record in ZooKeeper. It has a path, like a file."),
    (
        "session",
        "ZooKeeper’s contact with one member. It ends if ZooKeeper hears nothing from the member for the timeout.",
    ),
    ("ephemeral", "An ephemeral znode is deleted when the session that created it ends."),
    ("registration", "A member’s own znode, under `ids`. It shows the others that the member exists."),
    ("owner znode", "A znode that names the member that owns a partition. There is at most one for each partition."),
    (
        "watch, notification",
        "A member asks ZooKeeper for a message when something changes. It gets one, and must ask again.",
    ),
    ("rebalance", "A member gives up all it owns, reads which members there are, computes its share, and claims it."),
    ("to deal", "To compute which member gets which partition. Every member does this for itself, by the same rule."),
    ("attempt, retry", "One try of a rebalance. After a conflict a member waits (the back-off) and tries again."),
    ("at rest", "Nothing has happened for a while, and no member has anything left to do."),
    ("belief", "What a member thinks it owns."),
    ("registry", "The owners according to ZooKeeper."),
    ("effect", "The partitions that a member really works on."),
    ("zombie", "A member that others consider dead, and that goes on working."),
    (
        "fault, control",
        "A fault is a disturbance on purpose, such as a pause. The control is the same trial without it.",
    ),
    ("witness", "The fewest recorded events that prove an anomaly."),
    (
        "reproduced, refuted",
        "The trials confirm a claim, or contradict it. With too few trials the claim stays unknown.",
    ),
    (
        "as expected, surprise",
        "The outcome is, or is not, the one that was expected. That does not make a claim true.",
    ),
    ("either", "The scenario allows both outcomes of this check: it may be clean or violated."),
    (
        "simulated, real",
        "A simulated trial runs in virtual time, and its seed chooses every schedule; others run on a real ZooKeeper.",
    ),
    ("described, shipped", "Members that behave as the articles say, or as Kafka 0.8.2.2 does."),
)
