"""A text file that another process appends to."""

from __future__ import annotations

from pathlib import Path


class GrowingFile:
    """The new lines of one file, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def lines(self) -> list[bytes]:
        """The whole lines written since the last call. A line that is not complete yet is left for the next call."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        complete = data.rfind(b"\n") + 1
        self._offset += complete
        return data[:complete].splitlines()
