"""The three events of a fault: it began, it took effect (with the proof), it ended."""

from __future__ import annotations

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.trials.lab import AnyLab, AnyNode, NodeHandle


class FaultBug(PlantedBug):
    """The planted bugs of a fault: a subclass, in the file of the fault."""


class Injection:
    """One fault under way. `target`: an actor (m1, z1, or the group's name for a storm).

    Creating it records FAULT_BEGAN. Detail: fault, target, session of the victim, planned_ms, must_outlast_session,
    and what the fault adds.
    """

    def __init__(
        self,
        lab: AnyLab,
        fault: FaultKind,
        target: str | AnyNode,
        *,
        planned_ms: int = 0,
        must_outlast_session: bool = False,
        **detail: object,
    ) -> None:
        self._recorder = lab.recorder
        victim = target.state if isinstance(target, NodeHandle) and target.started else None
        actor = target.actor if isinstance(target, NodeHandle) else target
        self._fault: dict[str, object] = {"fault": fault.name, "target": actor}
        self.session = victim.session if victim is not None else None
        _, self._began = self._recorder.emit(
            Layer.FAULT,
            Kind.FAULT_BEGAN,
            member=victim.member if victim is not None else None,
            detail={
                **self._fault,
                "session": self.session,
                "planned_ms": planned_ms,
                "must_outlast_session": must_outlast_session,
                **detail,
            },
        )

    def bit(self, proof: str, **more: object) -> None:
        """The fault has taken effect, as `proof` shows. `more`: further details of the event."""
        detail = {**self._fault, "of": self._began, "proof": proof, **more}
        self._recorder.emit(Layer.FAULT, Kind.FAULT_BIT, detail=detail)

    def ended(self) -> None:
        """The fault is over: healed, or done."""
        self._recorder.emit(Layer.FAULT, Kind.FAULT_ENDED, detail={**self._fault, "of": self._began})
