"""Leaders that write their ISR themselves, as up to Kafka 2.6."""

from __future__ import annotations

from cluster_stage import T0, ClusterStage

from rebalance_lab.broker.replication.rules import IsrWriter
from rebalance_lab.history.transactions import Transaction
from rebalance_lab.wire.kafka.error_codes import ErrorCode as E
from rebalance_lab.wire.paths import ISR_CHANGES, partition_state_path


def cluster(*, lag_ms: int = 1000) -> ClusterStage:
    return ClusterStage(replica_lag_time_max_ms=lag_ms, lab_isr_writer=IsrWriter.LEADER)


def test_a_slow_follower_leaves_the_isr_in_the_leader_s_epoch_and_comes_back() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        before = await stage.state()
        stage.brokers[2].process.pause()
        assert (await stage.produce(1, "a")).error_code == E.NONE
        after = await stage.state()
        assert (after.isr, after.leader_epoch, after.controller_epoch) == ((1, 3), before.leader_epoch, 1)
        stage.brokers[2].process.resume()
        await stage.until_state(lambda state: set(state.isr) == {1, 2, 3})

    cluster().play(story)


def test_the_controller_learns_of_it_some_seconds_later() -> None:
    def isr_known_to(stage: ClusterStage, broker: int) -> tuple[int, ...]:
        topic = stage.brokers[broker].broker.parts.metadata.described("t", version=9)
        return () if topic is None else topic.partitions[0].isr_nodes

    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        await stage.until(lambda: len(isr_known_to(stage, 3)) == 3, "the first ISR")
        stage.world.network.set_link("host-b1", "host-b2", silent=(True, True))
        await stage.until_state(lambda state: state.isr == (1, 3))
        began_us = stage.tasks.now_us()
        await stage.until(lambda: isr_known_to(stage, 3) == (1, 3), "the report of the leader", timeout_ms=8_000)
        assert stage.tasks.now_us() - began_us > 5_000_000
        await stage.tasks.sleep(1_000_000)
        assert (await stage.zookeeper.ask(lambda session: session.children(ISR_CHANGES))).value.names == ()

    cluster().play(story)


def test_a_lost_reply_to_the_write_is_read_back() -> None:
    async def story(stage: ClusterStage) -> None:
        await stage.create([1, 2, 3])
        lost: list[Transaction] = []

        def written(transaction: Transaction) -> None:
            if partition_state_path(*T0) in str(transaction) and not lost:
                lost.append(transaction)
                stage.server.lose_next_reply(transaction.session_id)

        stage.server.on_transaction(written)
        stage.brokers[2].process.pause()
        assert (await stage.produce(1, "a")).error_code == E.NONE
        assert lost
        leadership = stage.brokers[1].replica().leadership
        assert leadership is not None
        assert (leadership.isr, leadership.proposed) == ((1, 3), None)

    cluster().play(story)


def test_a_leader_with_an_old_version_keeps_its_isr_and_commits_nothing_until_the_controller_moves() -> None:
    """KAFKA-2729. The controller (broker 1) has written the state, and cannot reach the leader."""
    slower_than_the_session_ms = 4000

    async def story(stage: ClusterStage) -> None:
        await stage.create([2, 3])
        await stage.until(lambda: stage.leads(2), "the leader")
        assert (await stage.produce(2, "a")).error_code == E.NONE
        stage.world.network.set_link("host-b1", "host-b2", silent=(True, True))
        stage.kill(3)
        state = await stage.until_state(lambda state: state.isr == (2,))
        assert state.leader_epoch == 1
        assert (await stage.produce(2, "b", timeout_ms=10_000)).error_code == E.REQUEST_TIMED_OUT
        leadership = stage.brokers[2].replica().leadership
        assert leadership is not None
        assert (leadership.isr, leadership.leader_epoch) == ((2, 3), 0)
        warnings = {str(each["message"]) for each in stage.brokers[2].said("warning")}
        assert warnings == {"the ISR of t-0 is not updated to [2]: cached zkVersion 0 not equal to that in ZooKeeper"}
        stage.kill(1)
        await stage.until(lambda: stage.brokers[2].replica().log.high_watermark == 2, "commit")

    cluster(lag_ms=slower_than_the_session_ms).play(story)
