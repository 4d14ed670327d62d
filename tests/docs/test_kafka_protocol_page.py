"""docs/reference/kafka-protocol.md: its table is that of the code, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

from rebalance_lab.wire.kafka.apis import APIS
from rebalance_lab.wire.kafka.messages import metadata

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "kafka-protocol.md").read_text("utf-8")


def test_the_apis_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\d+) to (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (str(int(key)), api.name, *(str(each) for each in (*api.versions, api.request.FLEXIBLE.first)))
        for key, api in APIS.items()
    ]


def test_the_examples_are_true() -> None:
    example, shown = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {})
    lines = {line.strip() for line in Path(metadata.__file__).read_text("utf-8").splitlines()}
    assert {line.strip() for line in shown.splitlines()} <= lines
