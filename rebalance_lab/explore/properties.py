"""What must hold in every state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from rebalance_lab.explore.control import Control
from rebalance_lab.explore.replica import Replica


class Property(StrEnum):
    """- COMMITTED: every record that consumers could ever read is in the log of every replica of the true ISR, which
      the state znode holds, at its offset. So the next clean leader has it.
    - AGREEMENT: no two replicas have different records below the high watermarks of both.
    - STRONG_ISR: what consumers can read at a broker that believes that it leads is in the log of every replica of the
      true ISR.
    - WEAK_ISR: it is in the log of every replica of the ISR that this broker assumes.
    """

    COMMITTED = "committed"
    AGREEMENT = "agreement"
    STRONG_ISR = "strong-isr"
    WEAK_ISR = "weak-isr"


def committed(replicas: Sequence[Replica], control: Control) -> bool:
    exposed = control.committed
    return all(replicas[each].log[: len(exposed)] == exposed for each in control.isr) and all(
        each.exposed == exposed[: len(each.exposed)] for each in replicas
    )


def agreement(replicas: Sequence[Replica], control: Control) -> bool:
    return all(
        one.log[:end] == other.log[:end]
        for number, one in enumerate(replicas)
        for other in replicas[:number]
        for end in [min(one.high_watermark, other.high_watermark)]
    )


def strong_isr(replicas: Sequence[Replica], control: Control) -> bool:
    return all(_has(replicas, control.isr, each.exposed) for each in replicas)


def weak_isr(replicas: Sequence[Replica], control: Control) -> bool:
    return all(_has(replicas, each.led.isr, each.exposed) for each in replicas if each.led is not None)


def _has(replicas: Sequence[Replica], isr: Iterable[int], records: tuple[int, ...]) -> bool:
    return all(replicas[each].log[: len(records)] == records for each in isr)


CHECKS: dict[Property, Callable[[Sequence[Replica], Control], bool]] = {
    Property.COMMITTED: committed,
    Property.AGREEMENT: agreement,
    Property.STRONG_ISR: strong_isr,
    Property.WEAK_ISR: weak_isr,
}
