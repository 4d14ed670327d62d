"""Who tells what happened in a trial: its story, and the marks of its space-time diagram that need more than words."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.history.events import Event
from rebalance_lab.report.deeds import deeds
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import Row
from rebalance_lab.report.story import cast, doubles, finding, rest, session
from rebalance_lab.report.text import starting
from rebalance_lab.trials.scenario import subject_named


@dataclass(frozen=True, slots=True)
class Mark:
    """What a space-time diagram says of an event. `rows`: what it is about; None: the partition of the event.

    `shape`: fault | change | session | life | belief | registry | watch | rebalance | failure | decision | work.
    `weight`: the less, the more it matters. ROWS in `verb` stands for the rows.
    """

    shape: str
    verb: str
    weight: int
    subject: str = ""
    rows: tuple[Row, ...] | None = None


class Narrator:
    """Of the trials of any subject. A subject with more to say derives its own (`Subject.narrator`)."""

    #: Whether the commands tell the story beside the findings.
    is_printed = False

    def tell(self, scene: Scene, wrong: Sequence[TrialOutcome] = ()) -> tuple[str, ...]:
        """At most five sentences, in the order of time. `wrong`: the violated checks."""
        members, done = cast(scene), deeds(scene)
        middle = finding(scene, wrong) or self.middle(scene)
        sentences = [each for each in (self.followed(scene), middle, doubles(scene), rest(scene)) if each]
        if len(sentences) > 3 or not scene.faults:
            return (f"{members}; {done}.", *sentences)
        return (f"{members}.", starting(f"{done}."), *sentences)

    def followed(self, scene: Scene) -> str | None:
        """What the faults led to."""
        return session(scene)

    def middle(self, scene: Scene) -> str | None:
        """What is said where no check found anything."""
        return None

    def mark(self, scene: Scene, event: Event) -> Mark | None:
        """The mark of an event for which the subject's words have none."""
        return None


@cache
def narrator_of(subject: str) -> Narrator:
    """The narrator of a subject's trials. Raises TypeError if its module has none."""
    found = subject_named(subject)
    if found is None or found.narrator is None:
        return Narrator()
    narrator = getattr(importlib.import_module(found.narrator), "NARRATOR", None)
    if not isinstance(narrator, Narrator):
        raise TypeError(f"module {found.narrator} has no NARRATOR, which the subject {subject} names")
    return narrator
