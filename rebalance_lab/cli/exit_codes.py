"""What a command's exit code says. A command that a signal ends has 128 and the signal's number."""

from __future__ import annotations

#: Everything that was tested came out as expected.
AS_EXPECTED = 0

#: Something that was tested did not.
SURPRISE = 1

#: The outcome is unknown, or the command could not be carried out.
UNKNOWN = 2
