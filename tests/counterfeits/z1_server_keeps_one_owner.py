"""A server that forgets one owner of each session that ends."""

from __future__ import annotations

from collections.abc import Sequence

from counterfeit import Counterfeit
from counterfeit_servers import crash, keeps, owners


def _last(paths: Sequence[str]) -> list[str]:
    return owners(paths)[-1:]


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="A session's end takes all along but the last of its owner znodes.",
    false=keeps(_last),
    honest=crash,
)
