"""A partition with three replicas: what followers get, what counts as committed, who is in sync."""

from __future__ import annotations

from cluster_stage import ClusterStage

from rebalance_lab.wire.kafka.error_codes import ErrorCode as E


def test_what_is_acknowledged_by_all_is_in_every_log() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        for number in range(5):
            answer = await stage.produce(1, f"v{number}")
            assert (answer.error_code, answer.base_offset) == (E.NONE, number)
            for each in (1, 2, 3):
                assert (await stage.read_log(each))[number] == f"v{number}"

    ClusterStage().play(story)


def test_a_reader_sees_no_record_that_a_follower_has_not() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        await stage.produce(1, "a")
        stage.brokers[3].process.pause()
        await stage.produce(1, "b", acks=1)
        found = await stage.fetch(1, 1)
        assert (found.high_watermark, found.records) == (1, b"")
        stage.brokers[3].process.resume()
        await stage.until(lambda: stage.brokers[1].replica().log.high_watermark == 2, "commit")

    ClusterStage().play(story)


def test_a_follower_that_dies_leaves_the_isr_and_comes_back() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        await stage.produce(1, "a")
        stage.kill(3)
        assert (await stage.produce(1, "b")).error_code == E.NONE
        await stage.until_state(lambda state: set(state.isr) == {1, 2})
        await stage.start(3)
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})
        assert await stage.read_log(3) == ["a", "b"]

    ClusterStage(replica_lag_time_max_ms=1000).play(story)


def test_a_follower_that_is_slow_leaves_the_isr_in_its_time() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        await stage.produce(1, "a")
        began_us = stage.tasks.now_us()
        stage.brokers[2].process.pause()
        assert (await stage.produce(1, "b")).error_code == E.NONE
        assert 500_000 < stage.tasks.now_us() - began_us < 2_500_000
        assert set((await stage.state()).isr) == {1, 3}

    ClusterStage(replica_lag_time_max_ms=1000).play(story)


def test_the_next_leader_has_what_was_acknowledged() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        for number in range(3):
            await stage.produce(1, f"v{number}")
        stage.kill(1)
        state = await stage.until_state(lambda state: state.leader == 2)
        assert state.leader_epoch == 1
        await stage.until(lambda: stage.brokers[2].replica().leadership is not None, "the new leader")
        assert (await stage.produce(2, "w")).base_offset == 3
        await stage.start(1)
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})
        assert await stage.read_log(1) == await stage.read_log(2) == await stage.read_log(3) == ["v0", "v1", "v2", "w"]

    ClusterStage(replica_lag_time_max_ms=1000).play(story)


def test_a_write_survives_a_new_epoch_of_its_leader() -> None:
    """The controller takes a dead follower out of the ISR, in a new leader epoch, while a write waits for it. Kafka
    looks at no epoch then (`Partition.checkEnoughReplicasReachOffset`, 3.9.1)."""

    async def story(stage: ClusterStage) -> None:
        await stage.create((1, 2, 3))
        await stage.until(lambda: stage.leads(1), "the first leader")
        stage.kill(3)
        assert (await stage.produce(1, "a")).error_code == 0
        assert (await stage.state()).leader_epoch == 1
        assert await stage.read_log(2) == ["a"]

    ClusterStage().play(story)
