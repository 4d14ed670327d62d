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
