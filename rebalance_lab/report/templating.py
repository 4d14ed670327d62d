"""The templates, and the functions that they may call."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from rebalance_lab.report import glossary, text
from rebalance_lab.report.cards import meaning
from rebalance_lab.report.findings import badge
from rebalance_lab.report.story import WORLDS, rules_in_words


@cache
def environment() -> Environment:
    """Templates that escape everything, and raise an error for undefined values."""
    found = Environment(
        loader=PackageLoader("rebalance_lab.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        coded=text.coded,
        shortened=text.shortened,
        glued=text.glued,
        without_ids=text.without_ids,
        seconds=text.seconds,
        exact=text.exact_moment,
        title_of=glossary.title,
        statement_of=glossary.statement,
        meaning_of=meaning,
        badge=badge,
        rules_of=rules_in_words,
    )
    found.globals.update(worlds=WORLDS, either=glossary.terms_of([])["either"])
    return found
