"""Kafka's own classes: they define the committed messages, and read and write the same bytes."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_samples import damaged, sample, sample_record

from rebalance_lab.wire.kafka.apis import APIS
from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.errors import MalformedMessage
from rebalance_lab.wire.kafka.frames import encode_request, encode_response
from rebalance_lab.wire.kafka.records import Compression, build_batch, check_produced, records
from rebalance_lab.world.kafka import jars
from rebalance_lab.world.live.java import java_command

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
WIRE = ROOT / "rebalance_lab" / "wire" / "kafka"
TIMES = 25


def asked(program: str, lines: list[str]) -> list[str]:
    """What the Java program of this name answers to these lines."""
    command = [java_command(), "-cp", jars.class_path(jars.Role.BROKER), str(Path(__file__).with_name(program))]
    done = subprocess.run(command, input="\n".join(lines), stdout=subprocess.PIPE, text=True, check=True, timeout=100)
    return done.stdout.splitlines()


def test_the_committed_modules_are_what_the_generator_writes(tmp_path: Path) -> None:
    script = "import kafka_messages, pathlib, sys; kafka_messages.generate(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=ROOT / "scripts", timeout=100)
    written = {path.relative_to(tmp_path): path.read_text("utf-8") for path in tmp_path.rglob("*.py")}
    committed = [*(WIRE / "messages").glob("*.py"), WIRE / "apis.py", WIRE / "error_codes.py"]
    assert written == {path.relative_to(WIRE): path.read_text("utf-8") for path in committed}
    assert len(written) > 20


def test_kafka_reads_and_writes_the_same_frames() -> None:
    lines = []
    for key, api in APIS.items():
        for version in range(api.versions.last + 1):
            chance = random.Random(f"{api.name} {version}")
            for n in range(TIMES):
                request, response = sample(api.request, version, chance), sample(api.response, version, chance)
                client_id = chance.choice(["", "client", "ü" * 100])  # null is read as ""
                frames = {
                    "request": encode_request(request, version, correlation_id=n, client_id=client_id),
                    "response": encode_response(response, version, correlation_id=n),
                }
                lines += [f"{key:d} {kind} {version} {frame.hex()}" for kind, frame in frames.items()]
    *wrong, last = asked("KafkaMessages.java", lines)
    assert [f"{lines[int(line.split(' ', 1)[0])]}: {line}" for line in wrong[:5]] == []
    assert last == f"equal {len(lines)}"
    assert len(lines) > 5_000


#: Why bytes are refused here that Kafka reads (docs/reference/kafka-protocol.md).
STRICTER = re.compile(
    r"-\d+ items|a length of -|a varint of \d+, which is over 31 bits|its value ends|a tagged field of \d+ bytes"
)


def test_kafka_reads_what_is_read_here_and_little_more() -> None:
    chance, lines, reasons = random.Random(0), [], []
    versions = [(key, version) for key, api in APIS.items() for version in range(api.versions.last + 1)]
    for _ in range(10_000):
        key, version = chance.choice(versions)
        request = chance.random() < 0.5
        message = sample(APIS[key].request if request else APIS[key].response, version, chance)
        if request:
            frame = encode_request(message, version, correlation_id=0, client_id="")
        else:
            frame = encode_response(message, version, correlation_id=0)
        found = codec(type(message), version)
        begin = len(frame) - len(found.encode(message))
        body = damaged(frame[begin:], chance)
        try:
            found.decode(body)
        except MalformedMessage as refused:
            reasons.append(refused.reason)
        else:
            reasons.append("")
        lines.append(f"{key:d} {'request' if request else 'response'} {version} {(frame[:begin] + body).hex()}")
    *answers, _ = asked("KafkaMessages.java", lines)
    refused_there = {
        int(n) for n, said in (line.split(" ", 1) for line in answers) if not said.startswith("Kafka writes")
    }
    for n, reason in enumerate(reasons):
        if reason == "":
            assert n not in refused_there, lines[n]
        elif n not in refused_there:
            assert STRICTER.match(reason), f"{lines[n]}: {reason}"
    assert 500 < reasons.count("") < 5_000


def test_kafka_reads_the_records_and_its_own_are_read() -> None:
    chance = random.Random(0)
    built = []
    for n in range(200):
        many = [sample_record(chance) for _ in range(chance.randint(1, 30))]
        producer = (chance.randrange(1 << 40), 3, chance.randrange(1 << 20)) if n % 2 else (-1, -1, -1)
        batch = build_batch(
            many,
            compression=Compression(n % 5),
            base_offset=chance.randrange(1 << 40),
            leader_epoch=n,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )
        built.append(batch)
    for ours, answer in zip(built, asked("KafkaRecords.java", [each.hex() for each in built]), strict=True):
        assert not answer.startswith("wrong"), answer
        theirs = bytes.fromhex(answer)
        header, wanted = check_produced(theirs), check_produced(ours)
        assert list(records(theirs)) == list(records(ours))
        assert (header.producer_id, header.base_sequence) == (wanted.producer_id, wanted.base_sequence)
        if header.compression is Compression.NONE:
            assert theirs == ours
