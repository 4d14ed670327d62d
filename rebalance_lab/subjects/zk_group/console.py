"""Real members, each a ConsoleConsumer of Kafka 0.8.2.2: their subscriptions, and their stand-ins in the
simulator."""

from __future__ import annotations

import msgspec

from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.trials.stage import TrialError


def whitelist_of(spec: MemberSpec) -> str:
    """The white list of a real member, which has one filter with one stream. A topic's name is such a filter, too.
    Raises TrialError for any other subscription (kafka.tools.ConsoleConsumer, 0.8.2.2)."""
    if spec.whitelist is not None and spec.filter_streams == 1:
        return spec.whitelist
    if spec.whitelist is None and spec.blacklist is None and list(spec.streams.values()) == [1]:
        return next(iter(spec.streams))
    raise TrialError(f"{spec.actor}: a real member (ConsoleConsumer) has one stream, of one topic or white list")


def stand_in(spec: MemberSpec) -> MemberSpec:
    """The member that the simulator starts for a spec: for a real member one of ours, as shipped, with the same white
    list; otherwise the member itself. Raises TrialError if no real member could subscribe like that."""
    if not spec.real:
        return spec
    return msgspec.structs.replace(spec, real=False, streams={}, whitelist=whitelist_of(spec))
