"""`whatif`: what an assignor would deal to a group, or where a topic would be placed, one line of JSON each."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from rebalance_lab.assignors import (
    ASSIGNORS,
    AssignmentContext,
    AssignmentError,
    Assignor,
    TopicPartition,
    UnknownAssignor,
    by_name,
)
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.placing import answer_place
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.report.text import count
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.registration import BLACK_LIST, STATIC, WHITE_LIST, Registration
from zkconsumer.contexts import contexts

#: More than any group has. A larger number is a typing error, and would fill the memory.
MOST_PARTITIONS = MOST_THREADS = 1_000_000
MOST_SHARES = 100_000_000

Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_PARTITIONS)]
Streams = Annotated[int, msgspec.Meta(ge=1, le=MOST_THREADS)]
Row = tuple[tuple[str, Count], str]
Owners = dict[TopicPartition, tuple[str, ...]]


class GroupMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One member. `topics`: name -> streams, or the one regex of a wildcard -> streams."""

    consumer_id: Annotated[str, msgspec.Meta(min_length=1)]
    topics: dict[str, Streams]
    pattern: Literal["static", "white_list", "black_list"] = "static"

    @property
    def registration(self) -> Registration:
        return Registration(tuple(self.topics.items()), self.pattern)


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group, and the rule to deal by.

    - `topics`: every existing topic -> its number of partitions.
    - `assignor`, `strategy`: the rule; either name can be used.
    - `previous`: rows of an earlier assignment, `[[topic, partition], thread]`.
    """

    members: Annotated[tuple[GroupMember, ...], msgspec.Meta(min_length=1)]
    topics: dict[str, Count]
    assignor: str | None = None
    strategy: str | None = None
    previous: tuple[Row, ...] | None = None


class Impossible(ValueError):
    """There can be no such group. The message names the field and what to write."""


class Repeated(ValueError):
    """A field occurs twice."""


_decoder = msgspec.json.Decoder(Case)


def answer_assign(line: bytes) -> dict[str, Any]:
    """The answer to one line: `{"assignment": …}`, or `{"error": …}` if there can be no such group, or the rule
    refuses it. Raises msgspec's errors for a line that is not a group."""
    try:
        return _deal(_decoder.decode(line))
    except (Impossible, AssignmentError, KafkaException) as error:
        return {"error": str(error)}
    except UnknownAssignor as error:
        return {"error": f"{error}; name one as `assignor`"}


def _deal(case: Case) -> dict[str, Any]:
    """The answer. Every member computes for itself, and their results are put together.

    - `balance`: the largest minus the smallest number of partitions, over all threads and over all members,
      including those without any.
    - `movement`, if there is a `previous`: how many partitions have another thread, or another member, than
      before. New and deleted partitions do not count.
    - `inconsistent`, `unowned`: if members computed different plans, so that a partition has two owners and
      another has none.
    """
    assignor = _assignor(case)
    _check(case)
    views = contexts("whatif", {each.consumer_id: each.registration for each in case.members}, case.topics)
    rows = sorted(row for view in views for row in assignor(view).owners)
    owners = _by_partition(rows)
    answer: dict[str, Any] = {"assignment": rows, "balance": _balance(views, rows)}
    if case.previous is not None:
        answer["movement"] = _movement(case.previous, owners)
    if len(owners) < len(rows):
        wanted = {
            TopicPartition(topic, each)
            for view in views
            for topic in view.partitions
            for each in view.partitions[topic]
        }
        answer |= {"inconsistent": True, "unowned": sorted(wanted - owners.keys())}
    return answer


def _assignor(case: Case) -> Assignor:
    given = [name for name in (case.assignor, case.strategy) if name is not None]
    if not given:
        raise Impossible(f"no rule is named; set `assignor` to one of: {', '.join(sorted(ASSIGNORS))}")
    if given[0] != given[-1]:
        raise Impossible(f"`assignor` names {case.assignor} and `strategy` {case.strategy}; write only one of them")
    return by_name(given[0])


def _check(case: Case) -> None:
    """Raises Impossible for an id that occurs twice, an invalid filter, or too large a group."""
    for name, times in Counter(each.consumer_id for each in case.members).items():
        if times > 1:
            raise Impossible(f"consumer_id {name} occurs {times} times in `members`; each id may occur only once")
    for each in case.members:
        if each.pattern in (WHITE_LIST, BLACK_LIST) and len(each.topics) > 1:
            raise Impossible(
                f"member {each.consumer_id}: a {each.pattern} needs one regex in `topics`, not {len(each.topics)}"
            )
    partitions = sum(case.topics.values())
    threads = sum(
        sum(each.topics.values()) * (1 if each.pattern == STATIC else len(case.topics)) for each in case.members
    )
    for what, size, most in (
        ("partitions", partitions, MOST_PARTITIONS),
        ("threads over all topics", threads, MOST_THREADS),
        ("members times partitions", partitions * len(case.members), MOST_SHARES),
    ):
        if size > most:
            raise Impossible(f"the group has {size} {what}; the limit is {most}")


def _by_partition(rows: Sequence[tuple[tuple[str, int], str]]) -> Owners:
    found: dict[TopicPartition, set[str]] = {}
    for partition, thread in rows:
        found.setdefault(TopicPartition(*partition), set()).add(thread)
    return {partition: tuple(sorted(threads)) for partition, threads in found.items()}


def _balance(views: Sequence[AssignmentContext], rows: Sequence[tuple[TopicPartition, str]]) -> dict[str, int]:
    threads = dict.fromkeys((each for view in views for mine in view.my_threads.values() for each in mine), 0)
    members = {view.consumer_id: 0 for view in views}
    for _, thread in rows:
        threads[thread] += 1
        members[_member_of(thread)] += 1
    return {"threads": _spread(threads.values()), "members": _spread(members.values())}


def _spread(sizes: Collection[int]) -> int:
    return max(sizes, default=0) - min(sizes, default=0)


def _movement(previous: Sequence[Row], now: Owners) -> dict[str, int]:
    before = _by_partition(previous)
    both = [each for each in before if each in now]
    return {
        "threads": sum(before[each] != now[each] for each in both),
        "members": sum(_members_of(before[each]) != _members_of(now[each]) for each in both),
    }


def _members_of(threads: tuple[str, ...]) -> list[str]:
    return sorted(_member_of(each) for each in threads)


def _member_of(thread: str) -> str:
    """The consumer id in a thread id; a text that is not a thread id counts as a whole."""
    return thread.rpartition("-")[0] or thread


# -- the command ----------------------------------------------------------------------------------


whatif = typer.Typer(name="whatif", help="Show what each rule would do to your own group or topic.")

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Files of JSON lines. Default: standard input.",
        metavar="[FILE]...",
        exists=True,
        dir_okay=False,
        readable=True,
    ),
]


@whatif.command()
def assign(files: Files = None) -> None:
    """Assign the partitions of groups: one JSON line in, one JSON line out.

    In: {"assignor": "range", "members": [{"consumer_id": "c1",
    "topics": {"t": 2}}], "topics": {"t": 5}}

    The assignor is range, roundrobin or ceil. A member's "topics" maps each
    topic to its streams; with "pattern": "white_list" or "black_list" it
    maps one regex to its streams. The group's "topics" maps every existing
    topic to its number of partitions. "previous" may hold an assignment to
    compare with.

    Out: {"assignment": [[["t", 0], "c1-0"], …], "balance": {"threads": 1,
    "members": 0}, "movement": {"threads": 2, "members": 2}}

    Balance is the largest minus the smallest number of partitions. With a
    "previous", movement counts the partitions that changed their owner. If
    members would disagree, the answer has "inconsistent" and the "unowned"
    partitions.

    A line with an error is answered by {"error": …}; the others are assigned.
    Exit 0: every line was assigned. 2: some were not.
    """
    _answer_all(files, answer_assign)


@whatif.command("place")
def place_replicas(files: Files = None) -> None:
    """Place the replicas of topics: one JSON line in, one JSON line out.

    In: {"brokers": [1, 2, 3], "partitions": 2, "replication": 2,
    "fixed_start_index": 0}

    "racks" may give each broker's rack, in the order of "brokers".
    "fixed_start_index" is the position of the first leader among the brokers,
    and how far from it the first follower is; "next_replica_shift" sets the
    latter alone. What is left out is drawn at random, as Kafka does for a new
    topic; with "seed" the draw can be repeated. "start_partition_id" is the id
    of the first new partition of a topic that grows.

    Out: {"assignment": {"0": [1, 2], "1": [2, 3]}, "fixed_start_index": 0,
    "next_replica_shift": 0, "leaders": {"1": 1, "2": 1, "3": 0},
    "replicas": {"1": 1, "2": 2, "3": 1}}

    The first replica is the preferred leader. "leaders" and "replicas" count
    what each broker has.

    A line with an error is answered by {"error": …}; the others are placed.
    Exit 0: every line was placed. 2: some were not.
    """
    _answer_all(files, answer_place)


def _answer_all(files: list[Path] | None, answer: Callable[[bytes], dict[str, Any]]) -> None:
    """Print the answer to each line, in order. Blank lines are skipped. Raises Failure if there are errors among
    them."""
    answers = errors = 0
    for line in _lines(files):
        if not line.strip():
            continue
        found = _answered(answer, line)
        answers += 1
        errors += "error" in found
        print_json(found)
    if errors:
        raise Failure(f"of {count(answers, 'line')}, {errors} could not be answered; stdout says why")


def _answered(answer: Callable[[bytes], dict[str, Any]], line: bytes) -> dict[str, Any]:
    """The answer to a line, or the error of a line that cannot be read, or of which a part would not be."""
    try:
        found = answer(line)
        json.loads(line, object_pairs_hook=_each_once, parse_int=str)
    except msgspec.ValidationError as error:
        return {"error": str(error)}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return {"error": f"the line is not JSON: {error}"}
    except Repeated as error:
        return {"error": str(error)}
    return found


def _each_once(pairs: list[tuple[str, object]]) -> None:
    """Raises Repeated for a field that occurs twice in its object: all but the last would be ignored."""
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise Repeated(f"field {name} occurs {times} times in one object; each may occur only once")


def _lines(files: list[Path] | None) -> Iterator[bytes]:
    if files:
        for each in files:
            with each.open("rb") as lines:
                yield from lines
    elif sys.stdin is None:
        raise Failure("there is no standard input; name a FILE of JSON lines")
    else:
        yield from sys.stdin.buffer
