"""A log that lists what the tree keeps."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_servers import crash, keeps, owners

COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The log lists all that a session had, and the owner znodes stay: only who looks from outside sees them.",
    false=keeps(owners, claims=True),
    honest=crash,
)
