"""Which list of members a real member dealt from. Its log names no thread for a reply, and the event thread
of its client asks for the list too, for a listener: exists, then children."""

from __future__ import annotations

import pytest

from rebalance_lab.roles.real.attempts import Attempt
from rebalance_lab.roles.real.packets import packet
from rebalance_lab.wire.view_digest import view_digest

IDS = "/consumers/g1/ids"

#: (path below the ids, "" for themselves; zxid of the reply; the children of a list, None for another operation)
Reply = tuple[str, int, tuple[str, ...] | None]

TWO, THREE = ("g1_a", "g1_b"), ("g1_a", "g1_b", "g1_c")

RANGE = "Consumer g1_a rebalancing the following partitions: ArrayBuffer(0, 1) for topic t1 with consumers: List(x)"
ROUND_ROBIN = "Consumer g1_a rebalancing the following partitions for topic t1: ArrayBuffer(0, 1)"


def own(zxid: int) -> Reply:
    return ("/g1_a", zxid, None)


def listed(zxid: int, *names: str) -> Reply:
    return ("", zxid, names)


def exists(zxid: int) -> Reply:
    return ("", zxid, None)


def read(zxid: int, *names: str) -> list[Reply]:
    """The registrations of those on the list."""
    return [(f"/{name}", zxid, None) for name in names]


def line(reply: Reply) -> str:
    """As ZooKeeper's client of 3.4.6 logs it at DEBUG."""
    name, zxid, names = reply
    opcode = 8 if names is not None else 4 if name else 3
    children = "" if names is None else "v{" + ",".join(f"'{each}" for each in names) + "}"
    return (
        "Reading reply sessionid:0x1, packet:: clientPath:null serverPath:null finished:false "
        f"header:: 1,{opcode}  replyHeader:: 1,{zxid},0  request:: '{IDS}{name},T  response:: {children or 's{1,1}'} "
    )


def decision(replies: list[Reply], log: str = RANGE) -> dict[str, object] | None:
    """A change of members at each ten."""
    attempt = Attempt(0, "g1", released=True)
    for reply in replies:
        told = packet(line(reply))
        assert told is not None
        attempt.saw(told)
    attempt.heard(log)
    return attempt.decision(lambda _group, reached: reached // 10 * 10)


def dealt(zxid: int | None, names: tuple[str, ...]) -> dict[str, object]:
    known = {} if zxid is None else {"members_zxid": zxid}
    return {"members": len(names), **known, "view": view_digest(names, {"t1": (0, 1)}), "wants": []}


@pytest.mark.parametrize("log", [RANGE, ROUND_ROBIN])
def test_alone_it_is_the_list_between_its_own_registration_and_those_of_all(log: str) -> None:
    replies = [own(11), listed(12, *TWO), *read(13, *TWO), listed(21, *THREE)]
    assert decision(replies, log) == dealt(10, TWO)


@pytest.mark.parametrize("log", [RANGE, ROUND_ROBIN])
@pytest.mark.parametrize(
    "lists",
    [
        [exists(12), listed(13, *TWO), listed(21, *THREE)],  # the rebalance's comes between the listener's two
        [exists(12), listed(21, *THREE), listed(13, *TWO)],
        [listed(13, *TWO), exists(21), listed(21, *THREE)],
    ],
)
def test_of_two_lists_it_is_the_one_whose_registrations_were_read(lists: list[Reply], log: str) -> None:
    assert decision([own(11), *lists, *read(22, *TWO)], log) == dealt(10, TWO)
    assert decision([own(11), *lists, *read(22, *THREE)], log) == dealt(20, THREE)


def test_a_list_that_a_listener_had_asked_for_before_is_not_its_own() -> None:
    replies = [exists(9), own(11), listed(12, *TWO), listed(21, *THREE), *read(22, *THREE)]
    assert decision(replies) == dealt(20, THREE)


def test_one_list_twice_with_the_same_members_is_one() -> None:
    replies = [own(11), exists(11), listed(12, *TWO), listed(13, *TWO), *read(13, *TWO)]
    assert decision(replies) == dealt(10, TWO)


def test_two_lists_of_one_content_and_of_different_times_leave_it_open() -> None:
    """A member came and went between them."""
    replies = [own(11), exists(11), listed(12, *TWO), listed(31, *TWO), *read(32, *TWO)]
    assert decision(replies) == dealt(None, TWO)


def test_no_list_that_fits_leaves_it_open() -> None:
    assert decision([own(11), listed(12, *TWO), *read(13, *THREE)]) == dealt(None, THREE)
    assert decision([own(11), *read(13, *TWO)]) == dealt(None, TWO)


def test_what_came_before_the_release_is_not_what_it_dealt_from() -> None:
    attempt = Attempt(0, "g1")
    for reply in (own(11), listed(12, *TWO), *read(13, *TWO)):
        told = packet(line(reply))
        assert told is not None
        attempt.saw(told)
    attempt.heard(RANGE)
    assert attempt.decision(lambda _group, reached: reached) is None


def test_without_registrations_or_without_an_assignor_s_line_nothing_was_decided() -> None:
    assert decision([own(11), listed(12, *TWO)]) is None
    assert decision([own(11), listed(12, *TWO), *read(13, *TWO)], "nothing of that kind") is None
