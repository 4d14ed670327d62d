"""What is reported of a connection, in every standing."""

from __future__ import annotations

from itertools import product

import pytest

from rebalance_lab.roles.connection import TRANSITIONS, ConnectionStory, Standing


def story(standing: Standing) -> ConnectionStory:
    """A story that has come to this standing, in session 0x1."""
    found = ConnectionStory()
    if standing is not Standing.NEW:
        found.connected("0x1")
    if standing in (Standing.LOST, Standing.IN_DOUBT):
        found.lost("h:1: silence")
    if standing is Standing.IN_DOUBT:
        found.overdue(6000)
    assert found.standing is standing
    return found


@pytest.mark.parametrize(("before", "after"), list(product(Standing, Standing)))
def test_transitions(before: Standing, after: Standing) -> None:
    found = story(before)
    if after in TRANSITIONS[before]:
        found._change(after)
        assert found.standing is after
    else:
        with pytest.raises(AssertionError, match="cannot be"):
            found._change(after)


def test_the_first_connection_is_no_news() -> None:
    assert story(Standing.NEW).connected("0x1") is None
    assert story(Standing.CONNECTED).connected("0x1") is None


def test_a_loss_is_reported_with_its_reason() -> None:
    report = story(Standing.CONNECTED).lost("h:1: silence")
    assert report is not None
    assert (report.standing, report.again) == (Standing.LOST, False)
    assert report.text == "the connection to ZooKeeper is lost, and is tried again: h:1: silence"


@pytest.mark.parametrize("standing", [Standing.LOST, Standing.IN_DOUBT])
def test_each_new_reason_is_reported_once(standing: Standing) -> None:
    found = story(standing)
    assert found.lost("h:1: silence") is None
    report = found.lost("h:1: refused after 12 ms")
    assert report is not None
    assert (report.standing, report.text) == (standing, "no connection to ZooKeeper yet: h:1: refused after 12 ms")
    assert found.lost("h:1: refused after 13 ms") is None
    found.connected("0x1")
    assert found.lost("h:1: refused after 14 ms") is not None


@pytest.mark.parametrize("standing", [Standing.LOST, Standing.IN_DOUBT])
@pytest.mark.parametrize(("session", "again", "which"), [("0x1", True, "the same"), ("0x2", False, "a new")])
def test_the_return_says_in_which_session(standing: Standing, session: str, again: bool, which: str) -> None:
    report = story(standing).connected(session)
    assert report is not None
    assert (report.standing, report.again) == (Standing.CONNECTED, again)
    assert report.text == f"connected to ZooKeeper again, in {which} session"


def test_only_a_lost_connection_comes_into_doubt() -> None:
    report = story(Standing.LOST).overdue(6000)
    assert report is not None
    assert report.standing is Standing.IN_DOUBT
    assert report.text.startswith("not connected for the session timeout of 6000 ms: ")
    assert [story(each).overdue(6000) for each in Standing if each is not Standing.LOST] == [None] * 3


def test_attempts_before_the_first_connection_are_the_callers() -> None:
    assert story(Standing.NEW).lost("h:1: refused") is None
