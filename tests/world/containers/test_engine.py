"""What is said where there is no docker engine. Needs none."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.world.containers.engine import ContainersError, Engine, engine_problem


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


@pytest.mark.usefixtures("no_engine")
def test_a_missing_engine_is_a_problem_with_a_remedy() -> None:
    problem = engine_problem()
    assert problem is not None
    assert problem.startswith("no docker engine answers")
    assert "DOCKER_HOST" in problem


@pytest.mark.usefixtures("no_engine")
def test_no_session_begins_without_an_engine() -> None:
    with pytest.raises(ContainersError, match="no docker engine answers"):
        Engine()
