"""Frames that a hostile client may send: random bytes, requests with damage, requests cut off, and sound requests with
random values."""

from __future__ import annotations

import random

from kafka_samples import damaged, sample

from rebalance_lab.broker.dispatch import HANDLERS
from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.errors import UnwritableMessage
from rebalance_lab.wire.kafka.frames import encode_request

#: A sound one with a high epoch deposes the controller, or takes its leaderships from a broker, here as in Kafka
#: without ACLs; then there is nothing to test.
CONTROLLERS = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}

KEYS = sorted(set(HANDLERS) - CONTROLLERS)


def frame(chance: random.Random) -> bytes:
    """A frame without its length."""
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randrange(60))
    key = chance.choice(KEYS)
    version = chance.randint(*HANDLERS[key].versions)
    try:
        data = encode_request(sample(APIS[key].request, version, chance), version, correlation_id=1, client_id="f")
    except UnwritableMessage:
        return chance.randbytes(9)
    if kind < 0.8:
        data = damaged(data, chance)
    return data[: chance.randrange(len(data) + 1)] if kind < 0.2 else data


def with_length(data: bytes, chance: random.Random) -> bytes:
    """The frame as it is sent; one in twenty has a length that is not its own."""
    length = (
        chance.choice([-1, -(2**31), 2**31 - 1, 100 * 2**20 + 1, len(data) + 7])
        if chance.random() < 0.05
        else len(data)
    )
    return length.to_bytes(4, "big", signed=True) + data
