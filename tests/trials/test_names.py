"""What is said of a name that does not exist."""

from __future__ import annotations

import pytest

from rebalance_lab.trials.names import LISTED_LIMIT, missing, some_of

FEW = ["ceil", "range", "roundrobin"]
MANY = [f"name-{number}" for number in range(LISTED_LIMIT + 1)]


@pytest.mark.parametrize(
    ("name", "known", "all_by", "says"),
    [
        ("rang", FEW, None, "no; did you mean range? There are: ceil, range, roundrobin"),
        ("rang", FEW, "page", "no; did you mean range? All: page"),
        ("luck", FEW, None, "no; there are: ceil, range, roundrobin"),
        ("luck", FEW, "page", "no; there are: ceil, range, roundrobin"),
        ("luck", [], None, "no; there are: none"),
        ("nam-7", MANY, None, "no; did you mean name-7?"),
        ("nam-7", MANY, "page", "no; did you mean name-7? All: page"),
        ("luck", MANY, "page", "no; all: page"),
    ],
)
def test_the_nearest_is_suggested_and_few_are_listed(
    name: str, known: list[str], all_by: str | None, says: str
) -> None:
    assert missing("no", name, known, all_by=all_by) == says


def test_of_many_that_no_page_lists_the_first_are_named() -> None:
    assert missing("no", "luck", MANY) == f"no; there are: {', '.join(MANY[:LISTED_LIMIT])} and 1 more"
    assert some_of(MANY[:-1]) == ", ".join(MANY[:-1])
