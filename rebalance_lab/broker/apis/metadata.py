"""Metadata: the live brokers, the controller, and who leads which partition (`KafkaApis.handleTopicMetadataRequest`).

Versions 10 and later speak of topic ids, which other APIs of this broker do not take.
"""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.log.names import InvalidTopic, check_topic
from rebalance_lab.broker.new_topics import NewTopic, create_topics
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from rebalance_lab.wire.kafka.schema import Versions
from rebalance_lab.wire.topic_filter import INTERNAL_TOPICS

#: How long a client waits for topics that it asks for by their names. Kafka does not wait at all.
CREATION_TIMEOUT_MS = 2_000

_COMING = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.REQUEST_TIMED_OUT)


async def handle(parts: Parts, call: Call) -> MetadataResponse:
    cache, request = parts.metadata, call.request
    asked = _asked(request, call.version)
    names = sorted(cache.topics) if asked is None else asked
    errors = {}
    if request.allow_auto_topic_creation and parts.config.auto_create_topics_enable:
        errors = await _created(parts, [each for each in names if each not in cache.topics])
    return MetadataResponse(
        brokers=tuple(
            MetadataResponseBroker(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in cache.nodes.values()
        ),
        cluster_id=parts.cluster_id,
        controller_id=-1 if cache.controller_id is None else cache.controller_id,
        topics=tuple(
            cache.described(each, version=call.version) or _missing(each, errors.get(each, _why_missing(each)))
            for each in names
        ),
    )


def _asked(request: MetadataRequest, version: int) -> list[str] | None:
    """The topics, each once; None for all. No topics mean all in version 0, and none in later ones."""
    if request.topics is None or (version == 0 and not request.topics):
        return None
    return list(dict.fromkeys(each.name for each in request.topics if each.name is not None))


async def _created(parts: Parts, topics: list[str]) -> dict[str, ErrorCode]:
    """Create topics that clients asked for. Their leaders are not known yet, so clients ask again. Any broker does it,
    as all did before Kafka 2.8, where brokers began to ask the controller. A broker that no controller has told of the
    cluster yet creates nothing, and its clients ask again (`AutoTopicCreationManager.sendCreateTopicRequest`, 3.9.1):
    it would refuse every topic for lack of brokers, which clients take for a permanent error."""
    if not topics or not parts.metadata.nodes:
        return {}
    config = parts.config
    wanted = [NewTopic(each, config.num_partitions, config.default_replication_factor) for each in topics]
    outcomes = await create_topics(parts, wanted, timeout_ms=CREATION_TIMEOUT_MS)
    return {each: _told(outcome) for each, outcome in outcomes.items()}


def _told(outcome: Refused | object) -> ErrorCode:
    """The client asks again for a topic that is there now, or that may be soon."""
    if isinstance(outcome, Refused) and outcome.code not in _COMING:
        return outcome.code
    return ErrorCode.LEADER_NOT_AVAILABLE


def _why_missing(topic: str) -> ErrorCode:
    try:
        check_topic(topic)
    except InvalidTopic:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _missing(topic: str, error: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=topic, is_internal=topic in INTERNAL_TOPICS, partitions=())


HANDLER = Handler(ApiKey.METADATA, Versions(0, 9), handle)
