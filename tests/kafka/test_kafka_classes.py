"""The committed messages are those of Kafka's jars, and Kafka's own classes read and write the same bytes."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_samples import sample

from rebalance_lab.wire.kafka.apis import APIS
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.world.kafka import jars
from rebalance_lab.world.live.java import java_command

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
WIRE = ROOT / "rebalance_lab" / "wire" / "kafka"
TIMES = 25


def test_the_committed_modules_are_what_the_generator_writes(tmp_path: Path) -> None:
    script = "import kafka_messages, pathlib, sys; kafka_messages.generate(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=ROOT / "scripts", timeout=100)
    written = {path.relative_to(tmp_path): path.read_text("utf-8") for path in tmp_path.rglob("*.py")}
    committed = [*(WIRE / "messages").glob("*.py"), WIRE / "apis.py", WIRE / "error_codes.py"]
    assert written == {path.relative_to(WIRE): path.read_text("utf-8") for path in committed}
    assert len(written) > 20


def test_kafkas_classes_read_and_write_the_same_bytes() -> None:
    lines, wanted = [], []
    for key, api in APIS.items():
        for kind, message in (("request", api.request), ("response", api.response)):
            for version in range(message.VERSIONS.last + 1):
                chance = random.Random(f"{message.__name__} {version}")
                for _ in range(TIMES):
                    data = codec(message, version).encode(sample(message, version, chance))
                    lines.append(f"{key:d} {kind} {version} {data.hex()}")
                    wanted.append(f"{message.__name__} version {version}: {data.hex()}")
    said = subprocess.run(
        [java_command(), "-cp", jars.class_path(jars.Role.BROKER), str(Path(__file__).with_name("KafkaMessages.java"))],
        input="\n".join(lines),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=100,
    ).stdout.splitlines()
    wrong = [f"{wanted[int(line.split(' ', 1)[0])]}: {line}" for line in said[:-1]]
    assert wrong[:5] == []
    assert said[-1] == f"equal {len(lines)}"
    assert len(lines) > 5_000
