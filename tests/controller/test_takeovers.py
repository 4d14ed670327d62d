"""What a new controller does about `/feature`, and controllers about reports of failed log folders, by their form."""

from __future__ import annotations

import pytest
from controller_stage import Candidate, Stage

from controller.features import set_up_features
from controller.forms import ControllerForm
from controller.stimuli import LeadershipAnswered
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.versions import ProtocolVersion, Release
from rebalance_lab.wire.cluster import log_dir_event_payload
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.paths import FEATURE, LOG_DIR_EVENTS

ENABLED, DISABLED = b'{"features":{},"version":1,"status":1}', b'{"features":{},"version":1,"status":0}'
LEVELS = b'{"features":{"f":{"max_version_level":3,"min_version_level":3}},"version":1,"status":1}'


@pytest.mark.parametrize("form", ControllerForm)
def test_features_are_of_2_7_and_later(form: ControllerForm) -> None:
    async def story(stage: Stage) -> None:
        stage.candidate(1, form)
        await stage.settle()
        if form is ControllerForm.V2_1:
            assert await stage.data(FEATURE) == ENABLED
        else:
            assert not await stage.there(FEATURE)

    Stage().play(story)


@pytest.mark.parametrize(
    ("found", "enabled", "left"),
    [
        (None, True, ENABLED),
        (None, False, DISABLED),
        (DISABLED, True, ENABLED),
        (ENABLED, False, DISABLED),
        (LEVELS, True, LEVELS),
        (LEVELS, False, DISABLED),
        (LEVELS.replace(b'"status":1', b'"status":0'), True, ENABLED),
        (b'{"features":{"f":{"max_version_level":3}},"version":2,"status":1}', True, LEVELS),
    ],
)
def test_features_that_are_finalized_stay_if_they_are_enabled(found: bytes | None, enabled: bool, left: bytes) -> None:
    async def story(stage: Stage) -> None:
        if found is not None:
            await stage.create(FEATURE, found)
        await set_up_features(stage.other, enabled=enabled)
        assert await stage.data(FEATURE) == left
        written = (await stage.other.ask(lambda session: session.exists(FEATURE))).value
        assert written is not None
        assert written.version == int(found not in (None, left))

    Stage().play(story)


def test_features_that_cannot_be_read_let_nobody_be_the_controller() -> None:
    async def story(stage: Stage) -> None:
        await stage.create(FEATURE, b"{}")
        first = stage.candidate(1)
        await stage.tasks.sleep(3_000_000)
        assert "/feature holds" in str(first.said("resigned"))
        assert len(first.epochs) > 1
        assert await stage.data(FEATURE) == b"{}"

    Stage().play(story)


def test_features_are_enabled_by_the_protocol_and_unknown_to_1_1() -> None:
    old = BrokerConfig(broker_id=1, inter_broker_protocol_version=ProtocolVersion.V1_1)
    assert BrokerConfig(broker_id=1).controller.features_enabled is True
    assert old.controller.features_enabled is False
    release = BrokerConfig(broker_id=1, inter_broker_protocol_version=ProtocolVersion.V1_1, lab_release=Release.V1_1)
    assert release.controller.features_enabled is None


async def reports(stage: Stage) -> tuple[str, ...]:
    return (await stage.other.ask(lambda session: session.children(LOG_DIR_EVENTS))).value.names


async def report(stage: Stage, data: bytes) -> None:
    path = f"{LOG_DIR_EVENTS}/log_dir_event_"
    await stage.other.ask(lambda session: session.create(path, data, sequence=True))


def asked(candidate: Candidate) -> list[int]:
    """The brokers that were told their roles, in order."""
    return [broker for broker, request in candidate.reigns[0].sent if isinstance(request, LeaderAndIsrRequest)]


async def led_by_1(stage: Stage, form: ControllerForm, data: bytes | None = None) -> Candidate:
    """A controller of brokers 1 and 2, of which the first leads t-0. `data`: a report that it has found."""
    await stage.other.ensure_path(LOG_DIR_EVENTS)
    if data is not None:
        await report(stage, data)
    for broker in (1, 2):
        await stage.register(broker)
    await stage.write_topic("t", {0: (1, 2)})
    found = stage.candidate(3, form)
    await stage.settle()
    return found


@pytest.mark.parametrize("form", ControllerForm)
def test_reports_of_failed_folders_are_dropped_by_a_new_controller_which_tells_all_brokers(
    form: ControllerForm,
) -> None:
    async def story(stage: Stage) -> None:
        found = await led_by_1(stage, form, log_dir_event_payload(2))
        assert asked(found) == [1, 2]  # of the election
        assert len(await reports(stage)) == (1 if form is ControllerForm.V0_8_2 else 0)

    Stage().play(story)


@pytest.mark.parametrize("form", [ControllerForm.V1_1, ControllerForm.V2_1])
def test_a_broker_that_reports_a_failed_folder_is_asked_and_what_it_has_lost_is_led_by_another(
    form: ControllerForm,
) -> None:
    async def story(stage: Stage) -> None:
        found = await led_by_1(stage, form)
        await report(stage, log_dir_event_payload(1))
        await stage.settle()
        assert asked(found) == [1, 2, 1]
        assert await reports(stage) == ()
        lost = LeadershipAnswered(1, (), {TopicPartition("t", 0): ErrorCode.KAFKA_STORAGE_ERROR})
        assert found.controller._reigning is not None
        found.controller._reigning.put(lost)
        await stage.settle()
        assert (2, "t", 0, 2, 1) in found.reigns[0].leaders()

    Stage().play(story)


def test_up_to_0_11_nobody_hears_of_it() -> None:
    async def story(stage: Stage) -> None:
        found = await led_by_1(stage, ControllerForm.V0_8_2)
        await report(stage, log_dir_event_payload(1))
        await stage.settle()
        assert asked(found) == [1, 2]
        assert len(await reports(stage)) == 1

    Stage().play(story)


def test_a_report_that_cannot_be_read_is_named_and_goes() -> None:
    async def story(stage: Stage) -> None:
        found = await led_by_1(stage, ControllerForm.V2_1)
        await report(stage, b"{")
        await stage.settle()
        assert asked(found) == [1, 2]
        assert await reports(stage) == ()
        assert "/log_dir_event_notification/log_dir_event_0000000000 holds '{'" in str(found.said("log"))

    Stage().play(story)
