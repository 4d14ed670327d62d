"""Events as bytes, and trials as folders."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from history_story import Story
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.history.events import LAYER_OF, Event, Kind, Layer, decode, encode, order, session_text
from rebalance_lab.history.files import (
    MAX_SEED,
    SCHEMA_VERSION,
    HistoryError,
    Trial,
    canonical,
    digest,
    load,
    merge,
    read_events,
    read_trial,
    seal,
    trial_folders,
    write_whole,
)

TRIAL = Trial(
    id="a trial",
    scenario="zombie",
    world="processes",
    subject="zk",
    rules="described",
    seed=7,
    control=False,
    parameters={"topic": "t", "partitions": 6, "ratio": 0.5, "leave": True},
    boot_ids=("b",),
    wall_offset_us=-3,
    versions={"python": "3.11"},
)

_TEXT = st.text(max_size=8)  # no surrogates: hypothesis leaves them out of text for UTF-8
_NUMBER = st.integers(-(2**63), 2**63 - 1)
_VALUE = st.recursive(
    st.none() | st.booleans() | _NUMBER | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def any_event(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(list(Kind)))

    def maybe(strategy: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | strategy)

    return Event(
        actor=draw(_TEXT),
        n=draw(st.integers(0, 2**31)),
        at_us=draw(_NUMBER),
        layer=LAYER_OF[kind],
        kind=kind,
        member=maybe(_TEXT),
        session=maybe(_TEXT),
        group=maybe(_TEXT),
        generation=maybe(_NUMBER),
        topic=maybe(_TEXT),
        partition=maybe(_NUMBER),
        epoch=maybe(_NUMBER),
        zxid=maybe(_NUMBER),
        cause=maybe(st.tuples(_TEXT, st.integers(0, 2**31))),
        detail=maybe(st.dictionaries(_TEXT, _VALUE, max_size=4)),
    )


# -- one event ----------------------------------------------------------------------------------


@given(any_event())
def test_an_event_survives_its_bytes(event: Event) -> None:
    line = encode(event)
    assert b"\n" not in line
    assert decode(line) == event
    assert encode(decode(line)) == line


@given(st.dictionaries(_TEXT, _NUMBER, min_size=2, max_size=5))
def test_the_same_event_has_the_same_bytes_whatever_the_order_of_its_detail(detail: dict[str, Any]) -> None:
    backwards = dict(reversed(detail.items()))
    first, second = (Event("a", 0, 1, Layer.OP, Kind.PHASE, detail=each) for each in (detail, backwards))
    assert encode(first) == encode(second)


def test_the_bytes_of_an_event_are_these() -> None:
    event = Event("m1", 3, 12, Layer.BELIEF, Kind.OWNED, member="g_m1", topic="t", partition=0, cause=("m1", 2))
    assert encode(event) == (
        b'{"actor":"m1","n":3,"at_us":12,"layer":"belief","kind":"owned","member":"g_m1","topic":"t",'
        b'"partition":0,"cause":["m1",2]}'
    )


def test_every_kind_has_its_layer() -> None:
    by_layer = {layer: [kind for kind in Kind if LAYER_OF[kind] is layer] for layer in Layer}
    assert by_layer[Layer.BELIEF] == [Kind.OWNED, Kind.DISOWNED]
    assert by_layer[Layer.EFFECT] == [Kind.WORKED]
    assert by_layer[Layer.FAULT] == [Kind.FAULT_BEGAN, Kind.FAULT_BIT, Kind.FAULT_ENDED]
    assert {Kind.SESSION_CLOSED, Kind.CREATED, Kind.DELETED, Kind.FAILED} <= set(by_layer[Layer.REGISTRY])
    assert sum(map(len, by_layer.values())) == len(Kind)


def test_session_ids_are_unsigned_text() -> None:
    assert session_text(0x1000_0000_0000_0001) == "0x1000000000000001"
    assert session_text(-1) == "0xffffffffffffffff"


# -- merge and digest ---------------------------------------------------------------------------


@given(st.lists(any_event(), max_size=8), st.randoms(use_true_random=False))
def test_merge_orders_by_time_actor_and_count(events: list[Event], random: Any) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)
    keys = [order(event) for event in merge(shuffled)]
    assert keys == sorted(order(event) for event in events)


def test_digest_is_over_the_lines_of_the_files() -> None:
    story = Story()
    story.owned(1, "m1")
    story.rest(2)
    events = story.history().events
    expected = hashlib.sha256(b"".join(encode(event) + b"\n" for event in events)).hexdigest()
    assert digest(events) == expected
    assert digest(events[:1]) != expected
    assert digest([]) == hashlib.sha256().hexdigest()


# -- folders ------------------------------------------------------------------------------------


def _store(folder: Path, story: Story) -> None:
    """A folder as the processes of a live trial leave it: one file for each actor."""
    for actor in {event.actor for event in story.events}:
        own = [event for event in story.events if event.actor == actor]
        (folder / f"{actor}.jsonl").write_bytes(canonical(own))


def test_a_trial_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    story = Story()
    story.rest(50)
    story.owned(10, "m1")
    story.owned(30, "m2")
    story.disowned(20, "m1")
    _store(tmp_path, story)
    seal(tmp_path, TRIAL)
    history = load(tmp_path)
    assert history.trial == TRIAL
    assert [event.id for event in history.events] == [("m1", 0), ("m1", 1), ("m2", 0), ("runner", 0)]
    assert digest(history.events) == digest(merge(story.events))


def _sealed(folder: Path) -> Story:
    """A trial sealed with the digest of its events."""
    story = Story()
    story.owned(10, "m1")
    story.disowned(20, "m1")
    story.rest(50)
    _store(folder, story)
    seal(folder, msgspec.structs.replace(TRIAL, history_sha256=digest(merge(story.events))))
    return story


def test_a_sealed_history_is_read_back(tmp_path: Path) -> None:
    story = _sealed(tmp_path)
    assert load(tmp_path).events == merge(story.events)


def test_a_history_changed_after_it_was_sealed_is_an_error(tmp_path: Path) -> None:
    _sealed(tmp_path)
    path = tmp_path / "m1.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"at_us":20000', b'"at_us":20001'))
    with pytest.raises(HistoryError, match=r"was changed after it was sealed: .* run the trial again"):
        load(tmp_path)


@pytest.mark.parametrize("lost", ["m1.jsonl", "runner.jsonl"])
def test_a_file_lost_after_the_trial_was_sealed_is_an_error(tmp_path: Path, lost: str) -> None:
    _sealed(tmp_path)
    (tmp_path / lost).unlink()
    with pytest.raises(HistoryError, match="was changed after it was sealed"):
        load(tmp_path)


def test_sealing_leaves_nothing_half_written(tmp_path: Path) -> None:
    seal(tmp_path, TRIAL)
    assert [path.name for path in tmp_path.iterdir()] == ["trial.json"]
    assert read_trial(tmp_path) == TRIAL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seed": 7', b'"seed": 8'),
        (b'"control": false', b'"control": true'),
        (b'"parameters": {', b'"parameters": {"x": 1,'),
    ],
)
def test_a_field_changed_after_it_was_sealed_is_an_error(tmp_path: Path, old: bytes, new: bytes) -> None:
    _sealed(tmp_path)
    path = tmp_path / "trial.json"
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new))
    with pytest.raises(HistoryError, match=r"trial\.json was changed after it was sealed: its fields .* run the trial"):
        load(tmp_path)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1])
def test_a_trial_whose_seed_no_table_could_hold_is_an_error(tmp_path: Path, seed: int) -> None:
    seal(tmp_path, msgspec.structs.replace(TRIAL, seed=seed))
    with pytest.raises(HistoryError, match=r"trial\.json cannot be read: .*\$\.seed"):
        read_trial(tmp_path)


def test_a_field_of_a_later_version_is_covered_too(tmp_path: Path) -> None:
    seal(tmp_path, TRIAL)
    path = tmp_path / "trial.json"
    path.write_bytes(path.read_bytes().replace(b'"seed"', b'"mood": 1, "seed"'))
    with pytest.raises(HistoryError, match="was changed after it was sealed"):
        read_trial(tmp_path)


def test_a_trial_without_its_seal_is_an_error(tmp_path: Path) -> None:
    """Whoever changes a field could as well leave out the line that shows it."""
    (tmp_path / "trial.json").write_bytes(msgspec.json.encode(TRIAL))
    with pytest.raises(HistoryError, match=r"trial\.json has no trial_sha256: .*; run the trial again"):
        read_trial(tmp_path)


def test_sealing_a_trial_again_gives_the_same_file(tmp_path: Path) -> None:
    seal(tmp_path, TRIAL)
    first = (tmp_path / "trial.json").read_bytes()
    seal(tmp_path, read_trial(tmp_path))
    assert (tmp_path / "trial.json").read_bytes() == first


def test_a_last_line_cut_off_by_kill_9_is_left_out(tmp_path: Path) -> None:
    story = Story()
    story.owned(10, "m1")
    story.disowned(20, "m1")
    whole = canonical(story.events)
    path = tmp_path / "m1.jsonl"
    first = len(encode(story.events[0])) + 1
    for cut in range(first, len(whole)):  # anywhere within the second line, its line feed included
        path.write_bytes(whole[:cut])
        assert list(read_events(path)) == story.events[:1]
    path.write_bytes(whole)
    assert list(read_events(path)) == story.events


@pytest.mark.parametrize(
    "broken",
    [b'{"actor":"m1","n":', b"[]", b"\xff\xfe", b'{"actor":"\xff"}', b'{"actor":"m1","n":1,"at_us":2,"kind":"owned"}'],
)
def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path, broken: bytes) -> None:
    line = encode(Event("m1", 0, 1, Layer.OP, Kind.PHASE))
    path = tmp_path / "m1.jsonl"
    path.write_bytes(line + b"\n" + broken + b"\n" + line + b"\n")
    seal(tmp_path, TRIAL)
    with pytest.raises(HistoryError, match=r"m1\.jsonl:2 is not an event"):
        load(tmp_path)


def test_a_folder_without_trial_json_is_no_trial(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"holds no trial\.json: not a trial, or one that was cut off"):
        load(tmp_path)


@pytest.mark.parametrize("text", [b"", b"{}", b"nothing", b'{"id":"\xff"}'])
def test_a_trial_json_that_cannot_be_read_is_an_error(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "trial.json").write_bytes(text)
    with pytest.raises(HistoryError, match=r"trial\.json cannot be read"):
        read_trial(tmp_path)


def test_a_trial_of_a_later_schema_is_refused(tmp_path: Path) -> None:
    seal(tmp_path, TRIAL)
    path = tmp_path / "trial.json"
    mine = f'"schema_version": {SCHEMA_VERSION}'.encode()
    path.write_bytes(path.read_bytes().replace(mine, b'"schema_version": 99'))
    with pytest.raises(HistoryError, match=f"has schema 99; this lab reads up to {SCHEMA_VERSION}: update it"):
        load(tmp_path)


def test_a_store_lists_its_sealed_trials_and_a_trial_lists_itself(tmp_path: Path) -> None:
    for name in ("b", "a", "cut-off"):
        (tmp_path / name).mkdir()
    seal(tmp_path / "a", TRIAL)
    seal(tmp_path / "b", TRIAL)
    assert trial_folders(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert trial_folders(tmp_path / "a") == [tmp_path / "a"]
    assert trial_folders(tmp_path / "cut-off") == []


def test_what_a_killed_runner_left_unfinished_is_no_trial_of_the_store(tmp_path: Path) -> None:
    for name in ("a", ".a.4711.part"):
        (tmp_path / name).mkdir()
        seal(tmp_path / name, TRIAL)
    assert trial_folders(tmp_path) == [tmp_path / "a"]


class _Renames:
    """In place of `os.replace`. `seen`: what readers of the file found before each rename, None if it was not there."""

    def __init__(self, *, fail: bool) -> None:
        self.seen: list[bytes | None] = []
        self._fail = fail

    def __call__(self, part: Path, out: Path) -> None:
        assert part.parent == out.parent
        self.seen.append(out.read_bytes() if out.exists() else None)
        if self._fail:
            raise OSError(errno.EIO, "broken")
        part.rename(out)


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("fail", [False, True])
def test_a_file_is_written_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: bytes | None, fail: bool
) -> None:
    out = tmp_path / "page.html"
    if before is not None:
        out.write_bytes(before)
    renames = _Renames(fail=fail)
    monkeypatch.setattr(os, "replace", renames)
    with pytest.raises(OSError, match=r"page\.html") if fail else nullcontext():
        write_whole(out, b"new")
    assert renames.seen == [before]
    found = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert found == ({out.name: b"new"} if not fail else {out.name: before} if before else {})


def test_a_link_stays_and_leads_to_what_is_written(tmp_path: Path) -> None:
    link, page = tmp_path / "link", tmp_path / "page.html"
    link.symlink_to(page.name)
    for content in (b"one", b"two"):
        write_whole(link, content)
        assert (link.is_symlink(), page.read_bytes()) == (True, content)


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(fifo, b"page")
    assert os.read(reading, 100) == b"page"
    os.close(reading)
    assert fifo.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["fifo"]


def test_an_open_file_is_written_by_its_descriptor(tmp_path: Path) -> None:
    with (tmp_path / "page.html").open("wb") as page:
        before = os.fstat(page.fileno()).st_ino
        write_whole(Path(f"/dev/fd/{page.fileno()}"), b"page")
    assert (tmp_path / "page.html").read_bytes() == b"page"
    assert (tmp_path / "page.html").stat().st_ino == before


def test_a_full_device_stays_and_is_named() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole(Path("/dev/full"), b"page")
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("name", ["trial.json", "b1.jsonl"])
def test_a_pipe_in_a_trial_is_not_read_for_ever(tmp_path: Path, name: str) -> None:
    seal(tmp_path, TRIAL)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(HistoryError, match=f"{re.escape(name)} is not a file"):
        load(tmp_path)
