"""The lab's own settings: off by default, told apart from Kafka's, each with its reason."""

from __future__ import annotations

from dataclasses import fields

import pytest
from group_stage import Stage

from rebalance_lab.history.events import Kind
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import IllegalArgumentException, InvalidConfigException
from zkconsumer.lab_settings import CURES, KEEP_CLAIMS, NO_LAB_SETTINGS, Cures, LabSettings
from zkconsumer.rules import DESCRIBED, SHIPPED

REQUIRED = {"zookeeper.connect": "h:1", "group.id": "g"}
KAFKAS = {each.name.replace("_", ".") for each in fields(ConsumerConfig)}


def config(**settings: str) -> ConsumerConfig:
    values = {key.replace("_", "."): value for key, value in settings.items()}
    return ConsumerConfig.from_properties({**REQUIRED, **values})


def test_nothing_is_on_by_default() -> None:
    assert config().lab == NO_LAB_SETTINGS == LabSettings(keep_claims_on_conflict=False, cures=Cures())
    assert NO_LAB_SETTINGS.switched_on == ()


@pytest.mark.parametrize("name", [KEEP_CLAIMS, *(each.name for each in CURES)])
def test_each_is_a_switch_that_kafka_does_not_know(name: str) -> None:
    assert name not in KAFKAS
    on = ConsumerConfig.from_properties({**REQUIRED, name: "true"})
    assert on.lab.switched_on == (name,)
    assert on.warnings == ()
    assert ConsumerConfig.from_properties({**REQUIRED, name: "false"}).lab == NO_LAB_SETTINGS
    with pytest.raises(IllegalArgumentException, match=f"Unacceptable value for property '{name}'"):
        ConsumerConfig.from_properties({**REQUIRED, name: "yes"})


def test_each_cure_says_against_what_and_since_when() -> None:
    assert [each.attribute for each in CURES] == [each.name for each in fields(Cures)]
    assert all(each.against and each.since for each in CURES)
    assert len({each.name for each in CURES}) == len(CURES)


def test_a_validated_strategy_is_refused_with_the_text_of_0_9() -> None:
    assert config(partition_assignment_strategy="roundrobbin").partition_assignment_strategy == "roundrobbin"
    assert config(partition_assignment_strategy="roundrobin", validate_strategy="true").strategy_given
    with pytest.raises(InvalidConfigException) as raised:
        config(partition_assignment_strategy="roundrobbin", validate_strategy="true")
    assert str(raised.value) == (
        "Wrong value roundrobbin of partition.assignment.strategy in consumer config; "
        "Valid values are 'range' and 'roundrobin'"
    )


def test_a_history_says_which_are_on() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", undo_failed_claims="true", keep_claims_on_conflict="true")
        assert stage.details(Kind.MEMBER_STARTED, "m1", "lab") == [["keep.claims.on.conflict", "undo.failed.claims"]]

    Stage().play(story)


# -- the default group (claim Z14) ----------------------------------------------------------


def test_without_a_group_described_joins_the_default_one_shipped_refuses() -> None:
    connect = {"zookeeper.connect": "h:1"}
    assert DESCRIBED.config(connect).group_id == DESCRIBED.config(connect).client_id == "default"
    assert DESCRIBED.config(REQUIRED).group_id == "g"
    with pytest.raises(IllegalArgumentException, match=r"^requirement failed: Missing required property 'group\.id'$"):
        SHIPPED.config(connect)
    with pytest.raises(IllegalArgumentException, match=r"Missing required property 'zookeeper\.connect'$"):
        DESCRIBED.config({})
