"""Stores and tables that are not in a folder of this machine. Nothing here needs Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")


@dataclass(frozen=True, slots=True)
class StoreUri:
    """A folder of a file system that Spark knows, as `hdfs://host:8020/trials`. `text` has no slash at its end."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for what is a path."""
        return cls(text.rstrip("/")) if _URI.fullmatch(text) else None

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> StoreUri:
        return StoreUri(f"{self.text}/{name}")


#: Where trials or tables are.
Place = Path | StoreUri


def literal(place: Place | str) -> str:
    """A path or URI as Spark reads it: it takes `[`, `*` and others for patterns when it reads, not when it writes."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", str(place))
