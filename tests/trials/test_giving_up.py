"""A trial in which the runner waits for something in vain is sealed, and decides nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from rebalance_lab.checks import judge
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History, load, read_trial
from rebalance_lab.history.views import events_of, gave_up
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import GaveUp, TrialError
from rebalance_lab.trials.stages import live

#: Its fetchers take longer to stop than a clean leave may.
NEVER_LEAVES = make_plan("leave", settings={"fetcher_stop_ms": "9000000"})


@pytest.fixture
def given_up(tmp_path: Path) -> History:
    with pytest.raises(
        GaveUp, match=r"^the clean leave of m\d did not come: .*; the trial until then is in "
    ) as failed:
        api.run(NEVER_LEAVES, tmp_path)
    folder = tmp_path / NEVER_LEAVES.trial_id
    assert str(failed.value).endswith(str(folder))
    return load(folder)


def test_it_is_sealed_with_the_reason(given_up: History) -> None:
    why = gave_up(given_up)
    assert why is not None and why.startswith("the clean leave of m")
    last = [event for event in given_up.events if event.actor == "runner"][-1]
    assert (last.kind, last.of("gave_up"), last.of("at_rest")) == (Kind.REST_MISSED, True, False)
    assert last.of("phase") == events_of(given_up, Kind.PHASE)[-1].of("name")
    assert not events_of(given_up, Kind.TRIAL_ENDED)


def test_no_check_takes_it_for_clean(given_up: History) -> None:
    found = judge(given_up)
    assert [name for name, each in found.items() if each.outcome is Outcome.CLEAN] == []
    assert f"the runner gave up: {gave_up(given_up)}" in found["registration"].why
    assert api.TrialResult(Path(), given_up.trial, found).status != api.TrialStatus.AS_EXPECTED


def test_the_same_plan_gives_up_in_the_same_history(given_up: History, tmp_path: Path) -> None:
    ended = api.attempt(NEVER_LEAVES, tmp_path / "again")
    assert isinstance(ended, api.FailedTrial)
    assert ended.why.startswith("GaveUp: the clean leave of m")
    again = read_trial(tmp_path / "again" / NEVER_LEAVES.trial_id)
    assert again.history_sha256 == given_up.trial.history_sha256


def test_a_trial_that_ended_was_not_given_up(tmp_path: Path) -> None:
    assert gave_up(load(api.run(make_plan("leave"), tmp_path).folder)) is None


@contextmanager
def no_world(plan: Plan, folder: Path) -> Iterator[tuple[SimpleNamespace, SimpleNamespace]]:
    """A kernel that plays nothing, and a stage that notes what is asked of it in the file `asked`."""

    def note(name: str) -> None:
        with (folder / "asked").open("a") as file:
            file.write(f"{name} ")

    def run(coroutine: object, _name: str) -> None:
        coroutine.close()  # type: ignore[attr-defined]
        raise GaveUp("the start of m1 did not come") if plan.seed == 1 else TrialError("m1 ended with 1")

    stage = SimpleNamespace(plan=plan, boot_ids={"b"}, wall_offset_us=0, versions=dict, follow=lambda: None)
    for name in ("wait_for_processes", "end_processes", "poll", "close"):
        setattr(stage, name, lambda name=name: note(name))
    follower = SimpleNamespace(cancel=lambda _why: note("cancel"))
    yield SimpleNamespace(kernel=SimpleNamespace(start_root=lambda *_: follower), run=run), stage


@pytest.fixture
def _no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(_stage: object) -> None: ...

    monkeypatch.setattr(live, "_set_up", no_world)
    monkeypatch.setattr(live, "play", play)


@pytest.mark.usefixtures("_no_world")
def test_a_live_trial_is_read_to_its_end_and_sealed(tmp_path: Path) -> None:
    """Members are ended first: what they do after the registry was read would look like the registry's loss."""
    live.perform(make_plan("leave", world="processes", seed=1), tmp_path)
    assert (tmp_path / "asked").read_text() == "cancel end_processes poll close "
    assert read_trial(tmp_path).id == tmp_path.name


@pytest.mark.usefixtures("_no_world")
def test_another_failure_of_a_live_trial_is_not_sealed(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="m1 ended with 1"):
        live.perform(make_plan("leave", world="processes", seed=2), tmp_path)
    assert (tmp_path / "asked").read_text() == "end_processes close "
    assert not (tmp_path / "trial.json").exists()
