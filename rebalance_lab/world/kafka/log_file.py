"""The growing end of a log4j file that `world.kafka.jvm` set up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rebalance_lab.world.process.growing_file import GrowingFile

#: yyyy-MM-dd HH:mm:ss,SSS
_TIME_LENGTH = 23
_FIELDS = 5

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `wall_ms`: epoch ms. Of a message of several lines, a stack trace say, each further
    line comes by itself, with an empty `level` and the time, thread and logger of the first."""

    wall_ms: int
    level: str
    thread: str
    logger: str
    message: str


class LogFile:
    """Follows one file, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._file = GrowingFile(path)
        self._last: LogLine | None = None

    def poll(self) -> list[LogLine]:
        """The lines that were completed since the last call."""
        return [line for text in self._file.lines() if (line := self._line(text)) is not None]

    def _line(self, data: bytes) -> LogLine | None:
        text = data.decode("utf-8", "replace")
        fields = text.split("\t", _FIELDS - 1)
        if len(fields) == _FIELDS and len(fields[0]) == _TIME_LENGTH:
            time, level, thread, logger, message = fields
            self._last = LogLine(_wall_ms(time), level, thread, logger, message)
            return self._last
        if self._last is None:
            return None
        return LogLine(self._last.wall_ms, "", self._last.thread, self._last.logger, text)


def _wall_ms(text: str) -> int:
    """Epoch ms of `yyyy-MM-dd HH:mm:ss,SSS`, UTC."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
