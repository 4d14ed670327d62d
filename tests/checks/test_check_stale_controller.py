"""stale_controller, on histories written by hand: partition t-0, and controllers of the epochs 1 and 2."""

from __future__ import annotations

import json

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import LEADS


class Epochs(Story):
    def raised(self, ms: int, epoch: int) -> EventId:
        return self.registry(ms, Kind.CHANGED, "/controller_epoch", "0x9", detail={"data": str(epoch)}, group=None)

    def state(self, ms: int, controller_epoch: int, leader_epoch: int, *isr: int, session: str = "0x9") -> EventId:
        data = {
            "controller_epoch": controller_epoch,
            "leader": isr[0],
            "version": 1,
            "leader_epoch": leader_epoch,
            "isr": isr,
        }
        path = "/brokers/topics/t/partitions/0/state"
        return self.registry(ms, Kind.CHANGED, path, session, detail={"data": json.dumps(data)}, group=None)

    def leads(self, ms: int, controller_epoch: int, partition: int = 0) -> EventId:
        detail = {"leader_epoch": 0, "controller_epoch": controller_epoch}
        return self.add(ms, "b1", LEADS, member="b1", topic="t", partition=partition, group=None, detail=detail)

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["stale_controller"].judge(self.history())


def test_states_of_the_epoch_that_stands() -> None:
    story = Epochs()
    story.raised(10, 1)
    story.state(20, 1, 0, 1, 2)
    story.leads(21, 1)
    story.raised(30, 2)
    story.state(40, 2, 1, 1)
    story.leads(41, 2)
    finding = story.found()
    assert (finding.outcome, finding.measures) == (
        Outcome.CLEAN,
        {"count": 0, "writes": 2, "assignments": 0, "deletions": 0, "others": 0, "roles": 2},
    )


def test_a_write_of_a_deposed_controller() -> None:
    story = Epochs()
    story.raised(10, 1)
    story.state(20, 1, 0, 1, 2)
    election = story.raised(30, 2)
    stale = story.state(31, 1, 1, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (election, stale))
    assert finding.why == "t-0: a state of leader epoch 1 was written in controller epoch 1, when epoch 2 had begun"


def test_a_leader_of_an_older_controller_may_write_its_isr_itself() -> None:
    for writer, outcome in (("leader", Outcome.CLEAN), ("controller", Outcome.VIOLATED)):
        story = Epochs(isr_writer=writer)
        story.raised(10, 1)
        story.state(20, 1, 0, 1, 2)
        story.raised(30, 2)
        story.state(40, 1, 0, 1)
        assert story.found().outcome is outcome


def test_a_broker_that_goes_back_to_an_older_controller() -> None:
    story = Epochs()
    story.state(5, 2, 0, 1)
    before, after = story.leads(20, 2), story.leads(40, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
    assert finding.why == "t-0: b1 leads by a state of controller epoch 1, and has led by one of epoch 2"


def test_another_partition_may_have_kept_its_state() -> None:
    story = Epochs()
    story.state(5, 2, 0, 1)
    story.leads(20, 2)
    story.leads(40, 1, partition=1)
    assert story.found().outcome is Outcome.CLEAN


def test_a_new_process_has_heard_nothing() -> None:
    story = Epochs()
    story.state(5, 2, 0, 1)
    story.leads(20, 2)
    began = story.fault(30, "restart", "b1")
    story.bit(31, "restart", "b1", began)
    story.ended(32, "restart", "b1", began)
    story.leads(40, 1)
    assert story.found().outcome is Outcome.CLEAN


def test_without_a_state_nothing_is_said() -> None:
    story = Epochs()
    story.raised(10, 1)
    finding = story.found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no partition has a state")


def elected(story: Epochs, ms: int, number: int, epoch: int) -> EventId:
    """A broker creates `/controller`, in session 0x1 for broker 1, and raises the epoch with it."""
    data = json.dumps({"version": 1, "brokerid": number, "timestamp": "1"})
    session = f"0x{number}"
    created = story.registry(ms, Kind.CREATED, "/controller", session, detail={"data": data}, group=None)
    detail = {"data": str(epoch)}
    story.registry(ms, Kind.CHANGED, "/controller_epoch", session, detail=detail, group=None, zxid=story._zxid)
    return created


def brokers(story: Epochs) -> None:
    for number in (1, 2):
        story.add(number, f"b{number}", Kind.CONNECTED, session=f"0x{number}", group=None)
        story.registry(number, Kind.CREATED, f"/brokers/ids/{number}", f"0x{number}", group=None)


def succeeded(story: Epochs) -> EventId:
    """Broker 1 is elected and writes a state, and then broker 2 is elected."""
    brokers(story)
    elected(story, 10, 1, 1)
    story.state(20, 1, 0, 1, 2, session="0x1")
    story.registry(29, Kind.DELETED, "/controller", "0x1", group=None)
    return elected(story, 30, 2, 2)


def test_a_deposed_controller_that_has_read_the_new_epoch() -> None:
    """It writes in the epoch that stands, which is not its own."""
    story = Epochs()
    election = succeeded(story)
    wrong = story.state(40, 2, 1, 1, session="0x1")
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (election, wrong))
    assert finding.why == "t-0: the state of leader epoch 1 was written by b1, and the controller was b2"


def test_a_follower_that_makes_itself_the_leader() -> None:
    story = Epochs()
    brokers(story)
    election = elected(story, 10, 1, 1)
    story.state(20, 1, 0, 1, 2, session="0x1")
    wrong = story.state(40, 1, 1, 2, session="0x2")
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (election, wrong))
    assert finding.why == "t-0: the state of leader epoch 1 was written by b2, and the controller was b1"


def test_a_leader_may_write_its_isr_itself_whoever_controls() -> None:
    for writer, outcome in (("leader", Outcome.CLEAN), ("controller", Outcome.VIOLATED)):
        story = Epochs(isr_writer=writer)
        brokers(story)
        elected(story, 10, 1, 1)
        story.state(20, 1, 0, 2, 1, session="0x1")
        story.state(40, 1, 0, 2, session="0x2")
        assert story.found().outcome is outcome


def test_a_controller_whose_znode_went_may_write_until_the_next_is_elected() -> None:
    story = Epochs()
    brokers(story)
    elected(story, 10, 1, 1)
    story.registry(19, Kind.DELETED, "/controller", "0x1", group=None)
    story.state(20, 1, 0, 1, 2, session="0x1")
    assert story.found().outcome is Outcome.CLEAN


def test_an_epoch_that_has_not_begun() -> None:
    story = Epochs()
    election = story.raised(10, 1)
    wrong = story.state(20, 2, 0, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (election, wrong))
    assert finding.why == "t-0: a state of leader epoch 0 was written in controller epoch 2, when epoch 1 stood"


@pytest.mark.parametrize(
    ("session", "outcome"),
    [("0x1", Outcome.VIOLATED), ("0x11", Outcome.VIOLATED), ("0x2", Outcome.CLEAN), ("0x9", Outcome.CLEAN)],
    ids=["deposed", "deposed, in its next session", "controller", "tool"],
)
def test_an_assignment_is_written_by_the_controller_or_by_a_tool(session: str, outcome: Outcome) -> None:
    story = Epochs()
    election = succeeded(story)
    story.add(31, "b1", Kind.CONNECTED, session="0x11", group=None)
    detail = {"data": '{"version":1,"partitions":{"0":[1,2]}}'}
    written = story.registry(40, Kind.CHANGED, "/brokers/topics/t", session, detail=detail, group=None)
    finding = story.found()
    assert (finding.outcome, finding.measures["assignments"]) == (outcome, 1)
    if outcome is Outcome.VIOLATED:
        assert finding.witness == (election, written)
        assert finding.why == "/brokers/topics/t was written by b1, and the controller was b2"


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Kind.CREATED, "/admin/delete_topics/t"),
        (Kind.DELETED, "/admin/delete_topics/t"),
        (Kind.CHANGED, "/admin/reassign_partitions"),
        (Kind.CREATED, "/brokers/topics/t/partitions/1"),
        (Kind.DELETED, "/config/topics/t"),
        (Kind.DELETED, "/isr_change_notification/isr_change_0000000001"),
        (Kind.DELETED, "/log_dir_event_notification/log_dir_event_0000000001"),
    ],
)
@pytest.mark.parametrize(
    ("session", "outcome"), [("0x1", Outcome.VIOLATED), ("0x2", Outcome.CLEAN), ("0x9", Outcome.CLEAN)]
)
def test_only_the_controller_or_another_program_writes_what_controllers_write(
    kind: Kind, path: str, session: str, outcome: Outcome
) -> None:
    story = Epochs()
    election = succeeded(story)
    written = story.registry(40, kind, path, session, group=None)
    finding = story.found()
    assert (finding.outcome, finding.measures["others"]) == (outcome, 1)
    if outcome is Outcome.VIOLATED:
        assert finding.witness == (election, written)
        assert finding.why.endswith("by b1, and the controller was b2")


@pytest.mark.parametrize(
    "path",
    [
        "/config/topics/t",
        "/isr_change_notification/isr_change_0000000001",
        "/log_dir_event_notification/log_dir_event_0000000001",
    ],
)
def test_leaders_and_clients_write_settings_and_reports(path: str) -> None:
    story = Epochs()
    succeeded(story)
    story.registry(40, Kind.CREATED, path, "0x1", group=None)
    assert story.found().outcome is Outcome.CLEAN


def deleted(story: Epochs, ms: int, path: str, session: str) -> EventId:
    return story.registry(ms, Kind.DELETED, f"/brokers/topics/{path}", session, group=None)


def test_the_controller_may_delete_a_topic() -> None:
    story = Epochs()
    brokers(story)
    elected(story, 10, 1, 1)
    story.state(20, 1, 0, 1, 2, session="0x1")
    deleted(story, 30, "t/partitions/0/state", "0x1")
    deleted(story, 31, "t", "0x1")
    finding = story.found()
    assert (finding.outcome, finding.measures["deletions"]) == (Outcome.CLEAN, 2)


@pytest.mark.parametrize("path", ["t/partitions/0/state", "t"])
def test_a_deposed_controller_that_deletes(path: str) -> None:
    story = Epochs()
    election = succeeded(story)
    wrong = deleted(story, 40, path, "0x1")
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (election, wrong))
    assert finding.why == f"/brokers/topics/{path} was deleted by b1, and the controller was b2"


def test_a_broker_that_was_never_elected_may_delete_what_holds_nothing() -> None:
    """`…/partitions` and `…/partitions/0`."""
    story = Epochs()
    brokers(story)
    elected(story, 10, 1, 1)
    story.state(20, 1, 0, 1, 2, session="0x1")
    deleted(story, 30, "t/partitions/0", "0x2")
    deleted(story, 31, "t/partitions", "0x2")
    assert story.found().outcome is Outcome.CLEAN
