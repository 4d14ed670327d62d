"""What happened in a trial: events, and what is read from them.

Importing it adds the kinds of events of all its modules, because a command that shows a trial imports no subject.
"""

from rebalance_lab.history import duties, reads, replicas, writes

__all__ = ["duties", "reads", "replicas", "writes"]
