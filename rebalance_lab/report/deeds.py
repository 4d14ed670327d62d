"""What is done to the nodes of a trial, in words: its faults and changes."""

from __future__ import annotations

from dataclasses import replace

from rebalance_lab.history.events import Layer
from rebalance_lab.history.intervals import NO_PARTITION
from rebalance_lab.report.scene import Fault, Scene
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.text import listed, members_named, moment, partitions_named, seconds, times

#: Up to so many faults are told one by one, in the order of time; more are counted by kind.
TOLD_SINGLY = 8
#: More than so many that begin at once are counted by kind, too.
TOLD_SINGLY_AT_ONCE = 3
#: Faults that begin within this time count as simultaneous.
AT_ONCE_US = 300_000


def deeds(scene: Scene) -> str:
    """The faults and changes: each of them, or how many of each kind."""
    faults = scene.faults
    if not faults:
        return "nothing is done to them"
    begin_us, end_us = faults[0].began_us, faults[-1].began_us
    at_once = end_us - begin_us <= AT_ONCE_US
    if len(faults) <= (TOLD_SINGLY_AT_ONCE if at_once else TOLD_SINGLY):
        return "; ".join(_deed(scene, fault, first=nth == 0) for nth, fault in enumerate(faults))
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        kinds.setdefault(fault.kind.suffers, []).append(fault)
    told = listed([_several(alike) for alike in kinds.values()])
    if at_once:
        return f"at {moment(begin_us)}, all at once, {told}"
    return f"between {moment(begin_us)} and {moment(end_us)}, {told}"


def _several(alike: list[Fault]) -> str:
    """Faults of one kind. The peers of links are named where all are links of one node."""
    targets = list(dict.fromkeys(fault.target for fault in alike))
    if len(targets) > 1:
        return f"{members_named(targets)} {alike[0].kind.many}"
    peers = sorted({fault.peer for fault in alike if fault.peer is not None})
    suffers = replace(alike[0], peer=members_named(peers) if peers else None).suffers
    return f"{targets[0]} {suffers}" + (f" {times(len(alike))}" if len(alike) > 1 else "")


def _deed(scene: Scene, fault: Fault, *, first: bool) -> str:
    length = "" if fault.ended_us is None else f" for {seconds(fault.ended_us - fault.began_us)}"
    having = "" if fault.kind.change and not first else _having(scene, fault)
    return f"at {moment(fault.began_us)} {fault.target}{having} {fault.suffers}{length}"


def _having(scene: Scene, fault: Fault) -> str:
    """`, owner of t1/0,` and the like. What the victim does not believe to have, the registry alone gives it."""
    rows, believed = held(scene, fault), held(scene, fault, Layer.BELIEF)
    told = []
    for partitions, by in (
        ([row for row in rows if row in believed], ""),
        ([row for row in rows if row not in believed], " according to ZooKeeper"),
    ):
        named = [row for row in partitions if row.partition != NO_PARTITION]
        told += [f"{scene.words.holder_noun} of {partitions_named(named)}{by}"] if named else []
        told += [f"the {row}{by}" for row in partitions if row.partition == NO_PARTITION]
    return f", {listed(told)}," if told else ""


def held(scene: Scene, fault: Fault, layer: Layer = Layer.REGISTRY) -> list[Row]:
    """The partitions that the victim had, by a layer, when the fault began."""
    return sorted(
        row_of(span)
        for span in scene.spans
        if span.layer is layer
        and span.member in (fault.member, fault.target)
        and span.begin_us <= fault.began_us
        # A kill ends what its victim believes.
        and (fault.began_us < span.end_us or (layer is Layer.BELIEF and fault.began_us == span.end_us))
    )
