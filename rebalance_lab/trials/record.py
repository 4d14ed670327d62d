"""The record that is kept of a trial beside its events, and the versions in it: the same fields in every world."""

from __future__ import annotations

import functools
import hashlib
import platform
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rebalance_lab.history.files import Trial
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import scenario
from rebalance_lab.world.kafka.jars import VERSIONS as KAFKA_VERSIONS

#: The lab's own packages, which lie beside each other.
PACKAGES = ("controller", "newcoordinator", "rebalance_lab", "zkconsumer")


@functools.cache
def versions() -> dict[str, str]:
    """The versions of the lab, Python and the libraries that affect a history."""
    found = {"python": platform.python_version()}
    for package in ("rebalance-lab", "kazoo", "pyspark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def source_digest(wheel: Path | None = None) -> str:
    """SHA-256 over the names and texts of the lab's modules: of the running lab, or of a wheel. Two labs with the
    same digest behave the same. `scripts/images` labels the lab's image with it."""
    found = hashlib.sha256()
    for name, text in sorted(_modules() if wheel is None else _modules_of(wheel)):
        found.update(b"%s %d\n" % (name.encode(), len(text)) + text)
    return found.hexdigest()


def _modules() -> Iterator[tuple[str, bytes]]:
    beside = Path(__file__).parents[2]
    for package in PACKAGES:
        for file in (beside / package).rglob("*.py"):
            yield file.relative_to(beside).as_posix(), file.read_bytes()


def _modules_of(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and name.partition("/")[0] in PACKAGES:
                yield name, archive.read(name)


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
    subject = scenario(plan.scenario).subject
    real = subject.real if plan.has_real_nodes and plan.world != "simulated" else None
    kafka = {} if real is None else {f"kafka {role}": KAFKA_VERSIONS[role] for role in real.roles}
    return Trial(
        id=trial_id,
        scenario=plan.scenario,
        world=plan.world,
        subject=subject.name,
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
