"""What an error says of a name that does not exist: the nearest that does, and where all are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

#: How similar two names must be, from 0 to 1, for one to be suggested for the other.
NEAR = 0.7

#: An error is one line, so it lists no more names than these.
LISTED_LIMIT = 20


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name among `known` that may be meant by `name`; None if none is similar."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=NEAR)), None)


def some_of(names: Iterable[str], limit: int = LISTED_LIMIT) -> str:
    """The names in their order, the first `limit` of them if there are more; "none" if there are none."""
    every = list(names)
    more = len(every) - limit
    return (", ".join(every[:limit]) or "none") + (f" and {more} more" if more > 0 else "")


def missing(fault: str, name: str, known: Iterable[str], *, has: str = "there are", all_by: str | None = None) -> str:
    """The error for a name that is not among `known`: the fault, and the nearest name or those that there are.

    `all_by`: the command or page that lists all. It is named after a suggestion, and in place of many names.
    """
    names = list(known)
    near = nearest(name, names)
    many = len(names) > LISTED_LIMIT
    listing = f"{has}: {some_of(names)}"
    if all_by is not None and (near is not None or many):
        listing = f"all: {all_by}"
    if near is None:
        return f"{fault}; {listing}"
    suggested = f"{fault}; did you mean {near}?"
    return suggested if many and all_by is None else f"{suggested} {listing[:1].upper()}{listing[1:]}"
