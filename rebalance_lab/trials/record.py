"""The record that is kept of a trial beside its events: the same fields in every world."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.history.files import Trial
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import scenario
from rebalance_lab.trials.versions import versions
from rebalance_lab.world.kafka.jars import VERSIONS as KAFKA_VERSIONS


def trial_record(
    plan: Plan,
    trial_id: str,
    history_sha256: str,
    *,
    boot_ids: tuple[str, ...],
    world_versions: Mapping[str, str] | None = None,
    wall_offset_us: int,
    wall_drift_us: int = 0,
    started_wall_ms: int = 0,
) -> Trial:
    """The record of a trial of `plan`. `started_wall_ms` is 0 in virtual time. `world_versions`: the versions of what
    the world consists of beside the lab."""
    kafka = KAFKA_VERSIONS if plan.has_real_nodes and plan.world != "simulated" else {}
    return Trial(
        id=trial_id,
        scenario=plan.scenario,
        world=plan.world,
        generation=scenario(plan.scenario).subject.name,
        rules=plan.rules,
        implementation=plan.implementation,
        seed=plan.seed,
        control=plan.control,
        parameters=plan.parameters,
        plant=plan.plant,
        boot_ids=boot_ids,
        wall_offset_us=wall_offset_us,
        wall_drift_us=wall_drift_us,
        versions=versions() | kafka | dict(world_versions or {}),
        started_wall_ms=started_wall_ms,
        history_sha256=history_sha256,
    )
