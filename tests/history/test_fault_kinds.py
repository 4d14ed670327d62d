"""What is known of a fault by the name in its events."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest
from history_story import Story

from rebalance_lab import faults
from rebalance_lab.history import fault_kinds
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.fault_kinds import FaultKind, kind_of


def began(name: str) -> Event:
    story = Story()
    story.fault(1, name, "m1")
    return next(event for event in story.history().events if event.kind is Kind.FAULT_BEGAN)


def test_every_module_of_faults_that_injects_one_declares_it() -> None:
    modules = [import_module(f"{faults.__name__}.{info.name}") for info in pkgutil.iter_modules(faults.__path__)]
    injecting = [module for module in modules if hasattr(module, "Injection")]
    assert len(injecting) > 10
    assert [module for module in injecting if not _kinds(module)] == []


def test_a_kind_that_is_not_declared_lasts_does_harm_and_is_named_plainly() -> None:
    kind = kind_of(began("time-travel"))
    assert not (kind.momentary or kind.spares_connections or kind.change or kind.in_controls)
    assert (kind.suffers, kind.ends) == ("suffers time travel", "time travel ends:")


def test_two_faults_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("rebalance_lab.faults.kill")
    twin = FaultKind(name="join", noun="n", suffers="s", many="m", band="b", begins="b", alone="A.")
    monkeypatch.setattr(module, "TWIN", twin, raising=False)
    with pytest.raises(ValueError, match="two faults are named join"):
        fault_kinds.fault_kinds.__wrapped__()


def _kinds(module: ModuleType) -> list[FaultKind]:
    return [each for each in vars(module).values() if isinstance(each, FaultKind)]
