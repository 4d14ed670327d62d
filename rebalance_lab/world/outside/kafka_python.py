"""kafka-python (`world.outside.client.Library`)."""

from __future__ import annotations

import time
from typing import Any

import kafka
from kafka.errors import KafkaError

from rebalance_lab.world.outside.client import (
    DELIVERY_TIMEOUT_MS,
    LIMIT_S,
    METADATA_MS,
    RECONNECT_MS,
    Delivered,
    OutsideError,
    OutsideSettings,
    known,
)


class KafkaPython:
    """kafka-python. Its sender thread calls back."""

    def __init__(self, settings: OutsideSettings) -> None:
        self._settings = settings
        self._common: dict[str, Any] = {
            "bootstrap_servers": list(settings.bootstrap),
            "request_timeout_ms": settings.request_timeout_ms,
            "reconnect_backoff_max_ms": RECONNECT_MS,
            "metadata_max_age_ms": METADATA_MS,
        }
        self._producer = kafka.KafkaProducer(
            **self._common,
            acks="all" if settings.acks == -1 else settings.acks,
            enable_idempotence=settings.idempotent,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
        )

    def send(self, value: bytes, delivered: Delivered) -> None:
        try:
            sent = self._producer.send(self._settings.topic, value, partition=self._settings.partition)
        except KafkaError as error:
            delivered(None, OutsideError(repr(error)))
            return
        sent.add_callback(lambda told: delivered(known(told.offset), None))
        sent.add_errback(lambda error: delivered(None, OutsideError(repr(error))))

    def work(self) -> None:
        """Nothing is to be done."""

    def read(self) -> list[tuple[int, bytes]]:
        where = kafka.TopicPartition(self._settings.topic, self._settings.partition)
        try:
            consumer = kafka.KafkaConsumer(**self._common)
            try:
                consumer.assign([where])
                consumer.seek_to_beginning(where)
                end = consumer.end_offsets([where])[where]
                found: list[tuple[int, bytes]] = []
                give_up = time.monotonic() + LIMIT_S
                while consumer.position(where) < end:
                    for records in consumer.poll(500, max_records=10_000).values():
                        found += ((each.offset, each.value or b"") for each in records)
                    if time.monotonic() > give_up:
                        raise OutsideError(f"{len(found)} records of {end} were read in {LIMIT_S:g} s")
            finally:
                consumer.close()
        except KafkaError as error:
            raise OutsideError(repr(error)) from error
        return [each for each in found if each[0] < end]

    def close(self) -> None:
        self._producer.close(LIMIT_S)


LIBRARY = KafkaPython
