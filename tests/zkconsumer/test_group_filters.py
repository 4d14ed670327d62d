"""Members that subscribe by a filter: what they watch, when they begin anew, what goes wrong unseen
(defect F11; claim Z6)."""

from __future__ import annotations

import json

import pytest
from group_stage import GROUP, Stage
from test_group_operations import BROKERS, REGISTER, WATCH_BROKERS, WATCH_IDS

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel import Task
from rebalance_lab.wire.errors import InvalidFilter, UnsupportedFilter
from zkconsumer.errors import FilterStreamsExistException
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet
from zkconsumer.subscription import BlackList, Static, Subscription, WhiteList

BOTH = pytest.mark.parametrize("rules", [DESCRIBED, SHIPPED], ids=lambda rules: rules.name)
TOPICS = "/brokers/topics"
LIST = f"children {TOPICS}"
BEGIN_TO_WATCH_TOPICS = [f"exists {TOPICS}", f"exists {TOPICS}", LIST]


@pytest.mark.parametrize(
    ("subscription", "owned"),
    [
        (WhiteList("a.*"), {"ab": [0, 1], "ac": [0]}),
        (WhiteList(" 'ab, b' "), {"ab": [0, 1], "b": [0]}),
        (BlackList("a.*", 2), {"b": [0]}),
        (WhiteList(".*offsets"), {}),
    ],
)
def test_a_filter_owns_the_topics_it_lets_through(subscription: Subscription, owned: dict[str, list[int]]) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"ab": 2, "ac": 1, "b": 1, "__consumer_offsets": 1})
        await stage.join("m1", subscription)
        found = {topic: await stage.owners(topic) for topic in ("ab", "ac", "b", "__consumer_offsets")}
        assert found == {topic: {"m1": owned[topic]} if topic in owned else {} for topic in found}

    Stage().play(story)


def test_internal_topics_are_let_through_by_who_wants_them() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 1, "__consumer_offsets": 2})
        await stage.join("m1", WhiteList(".*"), exclude_internal_topics="false")
        assert await stage.owners("__consumer_offsets") == {"m1": [0, 1]}

    Stage().play(story)


def test_a_filter_is_registered_as_kafka_writes_it() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        started = await stage.join("m1", BlackList("'a, b/c'", 3))
        data = (await stage.zookeeper.get(f"/consumers/{GROUP}/ids/{started.member.consumer_id}")).value.data
        assert data.startswith(b'{"version":1,"subscription":{"a|b\\/c":3},"pattern":"black_list","timestamp":"')
        assert json.loads(data)["subscription"] == {"a|b/c": 3}
        (began,) = stage.events(Kind.MEMBER_STARTED, "m1")
        assert (began.of("pattern"), began.of("streams")) == ("black_list", {"a|b/c": 3})

    Stage().play(story)


def test_members_with_filters_and_with_names_share_a_group() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"ta": 4, "tb": 2})
        await stage.join("m1", WhiteList("t.", 2), consumer_id="1")
        await stage.join("m2", {"ta": 2}, consumer_id="2")
        assert await stage.owners("ta") == {"m1": [0, 1], "m2": [2, 3]}
        assert await stage.owners("tb") == {"m1": [0, 1]}
        threads = [(await stage.zookeeper.get(f"/consumers/g/owners/{each}")).value.data for each in ("ta/1", "tb/1")]
        assert threads == [b"g_1-1", b"g_1-1"]  # stream 1 is fed by both topics

    Stage().play(story)


# -- order of operations --------------------------------------------------------------------

SHIPPED_START = [
    LIST,  # to filter it
    *REGISTER,
    LIST,  # to make the queues
    *WATCH_IDS,
    f"exists {TOPICS}/t",
    *BROKERS,
    "get /consumers/g/ids/m1",
    LIST,
    *BROKERS,
    "get /consumers/g/ids/m1",
    LIST,
    f"get {TOPICS}/t",
    "children /consumers/g/ids",
    "get /consumers/g/ids/m1",
    LIST,
    "children /consumers/g/ids",
]


def start_up(rules: RuleSet) -> list[str]:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t": 0})
        await stage.join("m1", WhiteList("t"))

    return Stage(rules=rules).play(story).operations("m1")


def test_a_filter_as_shipped_watches_topics_when_the_first_rebalance_is_over() -> None:
    assert start_up(SHIPPED) == [*SHIPPED_START, *BEGIN_TO_WATCH_TOPICS, LIST]


def test_a_filter_as_described_watches_topics_before_it() -> None:
    watches = [*WATCH_IDS, *WATCH_BROKERS, *BEGIN_TO_WATCH_TOPICS]
    before = SHIPPED_START.index(WATCH_IDS[0])
    rebalance = SHIPPED_START[before + 2 :]
    assert start_up(DESCRIBED) == [*SHIPPED_START[:before], *watches, *rebalance, LIST]


# -- topics that come and go ----------------------------------------------------------------


@BOTH
def test_a_topic_that_comes_is_taken_by_the_event_task_itself(rules: RuleSet) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t1": 1})
        await stage.join("m1", WhiteList("t.*"))
        await stage.add_topic("t2", 2)
        await stage.quiet()
        assert await stage.owners("t2") == {"m1": [0, 1]}
        assert stage.details(Kind.REBALANCE_BEGAN, "m1", "by") == ["create", "topics"]
        # the whole rebalance lies between the notification and its end
        queued, handled = (
            stage.events(kind, "m1")[-1] for kind in (Kind.NOTIFICATION_QUEUED, Kind.NOTIFICATION_HANDLED)
        )
        (_, began), (_, ended) = (stage.events(kind, "m1") for kind in (Kind.REBALANCE_BEGAN, Kind.REBALANCE_ENDED))
        assert queued.of("path") == TOPICS
        assert queued.n < began.n < ended.n < handled.n
        grown = b'{"version":1,"partitions":{"0":[0],"1":[0],"2":[0]}}'
        await stage.zookeeper.set(f"{TOPICS}/t2", grown)  # the new topic is watched, by the watcher
        await stage.quiet()
        assert await stage.owners("t2") == {"m1": [0, 1, 2]}
        assert stage.details(Kind.REBALANCE_BEGAN, "m1", "by")[2:] == ["watcher"]

    Stage(rules=rules).play(story)


def test_a_topic_that_does_not_match_costs_three_reads_and_no_rebalance() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", WhiteList("t.*"))
        since_us = stage.tasks.now_us()
        await stage.add_topic("other", 1)
        await stage.quiet()
        assert stage.count(Kind.REBALANCE_BEGAN, "m1") == 1
        assert stage.operations("m1", since_us) == [f"exists {TOPICS}", LIST, LIST]

    Stage(rules=SHIPPED).play(story)


def test_a_topic_that_comes_before_the_topics_are_watched_is_found_by_the_first_look() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        stage.start("m1", WhiteList("t.*"))
        await stage.until(lambda: stage.count(Kind.ATTEMPT_FAILED, "m1") == 1, "a failed attempt")
        await stage.add_topic("t2", 1)
        await stage.zookeeper.delete("/consumers/g/owners/t/0")
        await stage.quiet()
        assert await stage.owners("t2") == {"m1": [0]}
        assert stage.details(Kind.REBALANCE_BEGAN, "m1", "by") == ["create", "topics"]

    Stage(rules=SHIPPED).play(story)


def test_a_topic_that_is_deleted_is_let_go_and_stays_watched() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t1": 1, "t2": 1})
        await stage.join("m1", WhiteList("t.*"))
        await stage.zookeeper.delete(f"{TOPICS}/t2")
        await stage.quiet()
        assert await stage.owners("t2") == {}
        assert "topics" in stage.details(Kind.REBALANCE_BEGAN, "m1", "by")
        told = f"Topic for path {TOPICS}/t2 gets deleted, which should not happen at this time"
        assert told in stage.warnings("m1")
        since_us = stage.tasks.now_us()
        await stage.add_topic("t3", 1)
        await stage.quiet()
        assert f"exists {TOPICS}/t2" in stage.operations("m1", since_us)  # a TODO of Kafka's

    Stage(rules=SHIPPED).play(story)


def test_what_fails_in_the_topic_handler_is_logged_and_no_more() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t1": 1})
        await stage.join("m1", WhiteList("t.*"), rebalance_max_retries=1)
        await stage.zookeeper.set("/brokers/ids/0", b"no broker")
        await stage.add_topic("t2", 1)
        await stage.quiet()
        name = stage.started["m1"].member.consumer_id
        assert stage.warnings("m1") == [f"error in handling child changes: {name} can't rebalance after 1 retries"]
        assert await stage.owners("t2") == {}

    Stage().play(story)


@pytest.mark.parametrize(("rules", "hears"), [(SHIPPED, False), (DESCRIBED, True)], ids=["shipped", "described"])
def test_after_a_failed_create_topics_are_watched_as_described_only(rules: RuleSet, hears: bool) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.hold(0)
        await stage.join("m1", WhiteList("t.*"), rebalance_max_retries=1)
        await stage.zookeeper.delete("/consumers/g/owners/t/0")
        await stage.add_topic("t2", 1)
        await stage.quiet()
        assert bool(await stage.owners("t2")) is hears

    Stage(rules=rules).play(story)


def test_round_robin_with_a_filter_cannot_start_before_a_topic_matches() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"other": 1})
        await stage.join("m1", WhiteList("t.*"), assignor="roundrobin", rebalance_max_retries=2)
        reasons = stage.details(Kind.ATTEMPT_FAILED, "m1", "why")
        assert len(reasons) == 2 and all(str(why).startswith("NoTopics: ") for why in reasons)

    Stage(rules=SHIPPED).play(story)


def test_a_topic_that_comes_inside_an_attempt_has_no_queue_and_stalls_unseen() -> None:
    """F11: registry and belief show an owner, nothing is fetched, no error reaches anybody."""

    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t1": 1})
        write = stage.sink.write
        made: list[Task[None]] = []

        def create_topic(event: Event) -> None:
            write(event)
            # queues are made; the attempt has not yet listed the topics
            if event.kind is Kind.ATTEMPT_BEGAN and not made:
                made.append(stage.tasks.spawn(stage.add_topic("t2", 1), "a topic comes"))

        stage.sink.write = create_topic
        started = stage.start("m1", WhiteList("t.*"))
        await stage.until(lambda: stage.count(Kind.OWNED, "m1") == 2, "both owned")
        assert await stage.owners("t2") == {"m1": [0]}
        await stage.until(lambda: stage.count(Kind.REBALANCE_ENDED, "m1") == 2, "begun anew by the first look")
        first_us = stage.events(Kind.REBALANCE_ENDED, "m1")[0].at_us
        healed_us = stage.events(Kind.REBALANCE_ENDED, "m1")[1].at_us
        await stage.sleep_ms(200)
        worked = [(event.at_us > healed_us, event.topic) for event in stage.events(Kind.WORKED, "m1")]
        assert (False, "t2") not in worked
        assert worked[0] == (False, "t1") and stage.events(Kind.WORKED, "m1")[0].at_us > first_us
        name = started.member.consumer_id
        assert stage.warnings("m1") == [
            f"[ConsumerFetcherThread-{name}-0], Error due to: error processing data for partition [t2,0]: "
            "it has no queue"
        ]
        assert (True, "t2") in worked  # the next rebalance has a queue for it

    Stage(rules=SHIPPED).play(story)


# -- sessions, second creates, refusals -----------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_new_session_hears_topics_again(seed: int) -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t1": 1})
        await stage.join("m1", WhiteList("t.*"))
        stage.server.expire(stage.session("m1"))
        await stage.until(lambda: stage.count(Kind.CONNECTED, "m1") == 2, "a new session")
        await stage.quiet()
        await stage.add_topic("t2", 1)
        await stage.quiet()
        assert await stage.owners("t2") == {"m1": [0]}
        assert await stage.owners("t1") == {"m1": [0]}

    Stage(seed=seed, rules=SHIPPED).play(story)


def test_expiry_calls_both_handlers_and_every_listener() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", WhiteList("t.*"))
        stage.server.expire(stage.session("m1"))
        await stage.until(lambda: stage.count(Kind.EXPIRED, "m1") == 1, "it learns of its expiry")
        assert stage.details(Kind.NOTIFICATION_QUEUED, "m1", "what") == [
            "New session event",  # the member's
            "New session event",  # the topic watcher's
            "Children of /consumers/g/ids changed",
            f"Children of {TOPICS} changed",
            f"Data of {TOPICS}/t changed",
        ]
        await stage.quiet()
        assert await stage.owners() == {"m1": [0, 1, 2]}

    Stage(rules=SHIPPED).play(story)


def test_a_member_with_a_filter_leaves_cleanly_also_when_it_rebalances() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"t1": 1})
        await stage.join("m1", WhiteList("t.*"))
        await stage.add_topic("t2", 1)
        await stage.until(lambda: stage.count(Kind.REBALANCE_BEGAN, "m1") == 2, "the topic handler rebalances")
        stage.started["m1"].closing.raise_()
        await stage.started["m1"].task
        assert await stage.registered() == []
        assert stage.count(Kind.MEMBER_CLOSED, "m1") == 1

    Stage().play(story)


def test_a_second_create_by_filter_has_its_own_text() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        started = await stage.join("m1", Static({"t": 1}))
        with pytest.raises(FilterStreamsExistException) as raised:
            await started.member.run(WhiteList("t"), started.closing)
        assert str(raised.value) == "Each consumer connector can create message streams by filter at most once."

    Stage().play(story)


def test_a_filter_without_streams_is_noticed_when_a_topic_matches() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare(topics={"other": 1})
        idle = await stage.join("m1", WhiteList("t.*", 0))
        await stage.add_topic("t", 1)
        await stage.quiet()
        (warned,) = stage.warnings("m1")
        assert str(warned).startswith("error in handling child changes: assertion failed: ")
        await stage.leave("m1")
        assert idle.task.done
        started = stage.start("m2", WhiteList("t.*", 0))
        with pytest.raises(AssertionError, match="asks for 0 streams of a topic"):
            await started.task

    Stage().play(story)


def test_bad_filters_are_refused_before_there_is_a_member() -> None:
    with pytest.raises(InvalidFilter, match=r"^\*t is an invalid regex\.$"):
        WhiteList("*t")
    with pytest.raises(UnsupportedFilter, match="uses an intersection of classes"):
        BlackList("[a&&b]")
