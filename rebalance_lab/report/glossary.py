"""The report's words: of checks, of events, and the terms for readers who never used Kafka or ZooKeeper.

`words.toml` has those of any subject; a subject has its own in a file of its own (`Subject.words`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from jinja2 import Environment, StrictUndefined, Template

from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import TOGETHER, ZK
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.intervals import NO_PARTITION
from rebalance_lab.report.spans import Row
from rebalance_lab.report.text import listed, shortened
from rebalance_lab.trials.scenario import subject_named

COMMON = Path(__file__).with_name("words.toml")


class EventWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one kind of events. `mark`: shape, verb and weight in a space-time diagram; None: no fixed ones."""

    deed: str = ""
    alone: str = "Allowed by itself."
    mark: tuple[str, str, int] | None = None

    @property
    def is_templated(self) -> bool:
        """Whether the verb of the mark is a template, which says by itself what the event is about."""
        return self.mark is not None and "{{" in self.mark[1]


class ZnodeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of znodes in a space-time diagram; `words.toml` explains the fields."""

    path: str
    created: str = "created"
    changed: str = "written"
    deleted: str = "deleted"
    weight: int = 8
    about: Literal["node", "last", ""] = "last"
    watched: str = "{{ last }}"

    def fits(self, path: str) -> bool:
        ours, theirs = self.path.split("/"), path.split("/")
        return len(ours) == len(theirs) and all(each in ("*", their) for each, their in zip(ours, theirs, strict=True))

    def verb(self, kind: Kind, name: str) -> str:
        """What happened to it. `name`: the short name of the node that it is about."""
        verbs = {Kind.CREATED: self.created, Kind.DELETED: self.deleted}
        return _template(verbs.get(kind, self.changed)).render(name=name)

    def watch(self, path: str) -> str:
        """A watch on it, in a word or two."""
        return _template(self.watched).render(last=last_of(path))


class Have(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words for: one node has a place, several have it, none has it. `none` is empty where that is nothing to
    draw."""

    one: str
    several: str
    none: str


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that a change costs. `formula`: the sentences that explain it."""

    measure: str
    title: str
    formula: str
    log: bool = False

    @property
    def expected(self) -> str:
        """The column of what the formula gives."""
        return f"expected_{self.measure}"


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words for trials of one subject. `words.toml` explains the fields."""

    node: str
    place: str
    whole: str
    figure: str
    holder: str
    rules: dict[str, str]
    terms: dict[str, str]
    changes: dict[str, str]
    costs: tuple[Cost, ...]
    have: dict[Layer, Have]
    events: dict[Kind, EventWords]
    is_the: dict[Layer, Have] = {}
    due_from: Kind | None = None
    deletion: str = ""
    znodes: tuple[ZnodeWords, ...] = ()

    @property
    def holder_noun(self) -> str:
        """What a node that holds a place is to it, without an article."""
        return self.holder.split()[-1]

    def having(self, row: Row, layer: Layer) -> Have:
        """The words for having a row of the picture."""
        return self.is_the[layer] if row.partition == NO_PARTITION and layer in self.is_the else self.have[layer]

    def of(self, kind: Kind) -> EventWords:
        return self.events.get(kind, EventWords())

    def alone(self, event: Event) -> str:
        """Why the event is normal by itself."""
        if event.kind is Kind.FAULT_BEGAN or (event.kind is Kind.FAULT_ENDED and event.of("fault") != "pause"):
            return kind_of(event).alone
        if event.kind is Kind.DELETED and not event.of("with_session"):
            return self.deletion
        return self.of(event.kind).alone

    def mark(self, event: Event) -> tuple[str, str, int] | None:
        """Its fixed mark. The verb may be a template, of the event alone."""
        words = self.of(event.kind)
        if words.mark is None or not words.is_templated:
            return words.mark
        shape, verb, weight = words.mark
        return shape, _template(verb).render(of=event.of), weight

    def znode(self, path: str) -> ZnodeWords:
        """The words for the znode at a path."""
        return next((each for each in self.znodes if each.fits(path)), ZnodeWords(path))

    def deed(self, event: Event, name: str) -> str:
        """What happens in an event, in a few words. `name`: the short name of the event's node."""
        if event.layer is Layer.FAULT:
            return _fault_deed(event)
        place = "" if event.topic is None else f"{event.topic}/{event.partition}"
        deed = self.of(event.kind).deed
        if not deed:
            return event.kind.value.replace("-", " ") + (f" {place}" if place else "")
        path = str(event.of("path") or "")
        who = name or event.actor
        return _template(deed).render(
            name=name, who=who, place=place, path=path, session=event.session, whole=self.whole, of=event.of
        )


@cache
def words_of(subject: str) -> Words:
    """The words for trials of a subject; those of any subject where it has none. Raises ValueError for a file that is
    not such words."""
    found = subject_named(subject)
    own = None if found is None else found.words
    words = tomllib.loads(COMMON.read_text("utf-8"))
    for name, value in ({} if own is None else tomllib.loads(own.read_text("utf-8"))).items():
        words[name] = _merged(name, words.get(name), value)
    return msgspec.convert(words, Words)


def _merged(name: str, common: Any, own: Any) -> Any:
    """A subject's table before the common one; of its events each word."""
    if not isinstance(common, dict):
        return own
    if name == "events":
        return common | {kind: common.get(kind, {}) | words for kind, words in own.items()}
    return own | common if name == "terms" else common | own


def terms_of(subjects: Iterable[str]) -> dict[str, str]:
    """The terms on a page about trials of these subjects; of the consumer group if there are none."""
    return {term: told for subject in [*subjects] or [ZK] for term, told in words_of(subject).terms.items()}


@cache
def _template(deed: str) -> Template:
    environment = Environment(undefined=StrictUndefined)
    environment.filters.update(shortened=shortened, places=_places)
    return environment.from_string(deed)


def last_of(path: str) -> str:
    """The last segment of a znode's path."""
    return path.rpartition("/")[2]


def _places(pairs: object) -> str:
    """Lists of [topic, partition] as text."""
    places = [f"{each[0]}/{each[1]}" for each in pairs] if isinstance(pairs, list | tuple) else []
    return listed(places) if places else "nothing"


def _fault_deed(event: Event) -> str:
    """The begin, proof or end of a fault: `m1 is paused`, `the pause of m1 ends`."""
    kind, target, peer = kind_of(event), event.of("target"), event.of("peer")
    if event.kind is Kind.FAULT_BEGAN:
        return f"{target} {kind.suffers_from(None if peer is None else str(peer))}"
    if event.kind is Kind.FAULT_BIT:
        return f"the {kind.noun} of {target} is proven: {event.of('proof')}"
    return f"the {kind.noun} of {target} ends"


# -- checks ---------------------------------------------------------------------------------------


def together(check: str) -> str:
    """Why a violation of the check is wrong, in a sentence or two."""
    return CHECKS[check].together if check in CHECKS else TOGETHER


def title(check: str) -> str:
    """A check's name for people: `Belief overlap`."""
    words = check.replace("_", " ").replace("-", " ")
    return (check in CHECKS and CHECKS[check].title) or words[:1].upper() + words[1:]


def statement(check: str) -> str:
    """The statement that a check tests; the title of a check that tests none."""
    return (check in CHECKS and CHECKS[check].statement) or title(check)
