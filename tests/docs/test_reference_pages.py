"""docs/reference/: the settings are those that the consumer reads, with its defaults."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from rebalance_lab.assignors import ASSIGNORS
from zkconsumer.config import ConsumerConfig

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "kafka-consumer.md").read_text()

#: Defaults that the page gives in words, and what they come to.
IN_WORDS = {
    "client.id": "g",
    "consumer.id": None,
    "zookeeper.connection.timeout.ms": 6000,
    "rebalance.backoff.ms": 2000,
    "dual.commit.enabled": False,
}


def test_the_settings_are_those_of_the_consumer() -> None:
    section = PAGE.partition("## Settings\n")[2]
    rows = dict(re.findall(r"^\| `([a-z.]+)` \| ([^|]+) \|", section, re.MULTILINE))
    config = ConsumerConfig.from_properties({"group.id": "g", "zookeeper.connect": "h:1"})
    ours = {"group_given", "strategy_given", "warnings", "lab"}
    defaults = {
        each.name.replace("_", "."): getattr(config, each.name) for each in fields(config) if each.name not in ours
    }
    assert set(rows) == set(defaults)
    for name, default in defaults.items():
        if name in IN_WORDS:
            assert default == IN_WORDS[name], name
        elif rows[name] != "required":
            assert rows[name] == str(default).lower(), name


def test_every_assignor_is_explained() -> None:
    told = {name.lower().replace(" ", "") for name in re.findall(r"^\*\*([\w ]+)\*\*", PAGE, re.MULTILINE)}
    assert {"range", "roundrobin", "ceil"} == told <= set(ASSIGNORS)
