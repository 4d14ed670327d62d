"""Who writes another ISR into a state znode: the controller, or the leader of the partition."""

from __future__ import annotations

from collections.abc import Mapping


def leaders_write_isrs(parameters: Mapping[str, object]) -> bool:
    """Whether leaders do, of the parameters of a trial: it says so itself (`isr_writer`), or its brokers ask in an
    inter-broker protocol without AlterPartition (`protocol`)."""
    return parameters.get("isr_writer") == "leader" or parameters.get("protocol") == "1.1"
