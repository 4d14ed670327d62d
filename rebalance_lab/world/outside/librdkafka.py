"""librdkafka, by confluent-kafka (`world.outside.client.Library`)."""

from __future__ import annotations

import time

import confluent_kafka

from rebalance_lab.world.outside.client import (
    DELIVERY_TIMEOUT_MS,
    LIMIT_S,
    METADATA_MS,
    RECONNECT_MS,
    WORK_S,
    Delivered,
    OutsideError,
    OutsideSettings,
    known,
)


class ConfluentKafka:
    """librdkafka, by confluent-kafka. A producer that has met a fatal error, as it does when brokers have lost what
    they acknowledged, is replaced by another."""

    def __init__(self, settings: OutsideSettings) -> None:
        self._settings = settings
        self._common = {
            "bootstrap.servers": ",".join(settings.bootstrap),
            "socket.timeout.ms": settings.request_timeout_ms + 1000,
            "reconnect.backoff.max.ms": RECONNECT_MS,
            "topic.metadata.refresh.interval.ms": METADATA_MS,
        }
        self._producer = self._new_producer()
        self._fatal = False

    def _new_producer(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer(
            {
                **self._common,
                "acks": self._settings.acks,
                "enable.idempotence": self._settings.idempotent,
                "request.timeout.ms": self._settings.request_timeout_ms,
                "message.timeout.ms": DELIVERY_TIMEOUT_MS,
                "error_cb": self._failed,
            }
        )

    def _failed(self, error: confluent_kafka.KafkaError) -> None:
        self._fatal = self._fatal or error.fatal()

    def send(self, value: bytes, delivered: Delivered) -> None:
        def told(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None:
                delivered(None, OutsideError(error.str()))
            else:
                delivered(known(message.offset()), None)

        if self._fatal:
            self._replace()
        try:
            self._producer.produce(self._settings.topic, value, partition=self._settings.partition, on_delivery=told)
        except (confluent_kafka.KafkaException, BufferError) as error:
            delivered(None, OutsideError(str(error)))

    def work(self) -> None:
        self._call_back(0)
        if self._fatal:
            self._replace()

    def _call_back(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except confluent_kafka.KafkaException as error:
            self._failed(error.args[0])

    def _replace(self) -> None:
        """Give up what the producer has under way, as it does nothing more, and make another."""
        self._producer.purge()
        while len(self._producer):
            self._call_back(WORK_S)
        self._producer, self._fatal = self._new_producer(), False

    def read(self) -> list[tuple[int, bytes]]:
        consumer = confluent_kafka.Consumer(
            {**self._common, "group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"}
        )
        where = confluent_kafka.TopicPartition(self._settings.topic, self._settings.partition, 0)
        found: list[tuple[int, bytes]] = []
        try:
            start, end = consumer.get_watermark_offsets(where, timeout=LIMIT_S)
            where.offset = start
            consumer.assign([where])
            give_up = time.monotonic() + LIMIT_S
            while (found[-1][0] + 1 if found else start) < end:
                for message in consumer.consume(10_000, timeout=0.5):
                    if message.error() is None:
                        found.append((message.offset() or 0, message.value() or b""))
                if time.monotonic() > give_up:
                    raise OutsideError(f"{len(found)} records of {end} were read in {LIMIT_S:g} s")
        except confluent_kafka.KafkaException as error:
            raise OutsideError(str(error)) from error
        finally:
            consumer.close()
        return [each for each in found if each[0] < end]

    def close(self) -> None:
        self._producer.flush(LIMIT_S)


LIBRARY = ConfluentKafka
