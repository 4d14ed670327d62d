"""A program of real Kafka as a child process, with its log4j log in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rebalance_lab.world.kafka.jars import Role, archive_flags, class_path, damaged_archive
from rebalance_lab.world.live.java import java_command
from rebalance_lab.world.process.os_process import OsProcess, last_lines

#: Times are read back from the logs, and the pattern knows no zone: so it is UTC.
_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Duser.timezone=UTC")

#: What `world.kafka.log_file` reads.
_PATTERN = "%d{yyyy-MM-dd HH:mm:ss,SSS}\\t%p\\t%t\\t%c{1}\\t%m%n"


class JavaProgram(OsProcess):
    """One JVM. Its log4j log is `log_file`, to which each life appends; `out` has its standard output."""

    stop_timeout_s = 10.0

    def __init__(
        self,
        role: Role,
        main: str,
        arguments: Sequence[str],
        *,
        folder: Path,
        name: str,
        heap_mb: int,
        loggers: Mapping[str, str] | None = None,
    ) -> None:
        """Start `main` with `arguments`. `folder` gets `name`.log (from log4j), .log4j and .out;
        `loggers`: logger -> level, the rest is INFO. Raises EmbeddedServerError (no Java, no jars)."""
        super().__init__(name, folder / f"{name}.log")
        java, jars = java_command(), class_path(role)  # before any file is left for nothing
        folder.mkdir(parents=True, exist_ok=True)
        self._role = role
        self.out = folder / f"{name}.out"
        logging = folder / f"{name}.log4j"
        lines = {
            "log4j.rootLogger": "INFO, file",
            "log4j.appender.file": "org.apache.log4j.FileAppender",
            "log4j.appender.file.File": str(self.log_file.absolute()),
            "log4j.appender.file.layout": "org.apache.log4j.PatternLayout",
            "log4j.appender.file.layout.ConversionPattern": _PATTERN,
            **{f"log4j.logger.{logger}": level for logger, level in (loggers or {}).items()},
        }
        write_properties(logging, lines)
        options = [
            f"-Xmx{heap_mb}m",
            *_FLAGS,
            *archive_flags(role),
            f"-Dlog4j.configuration={logging.absolute().as_uri()}",
        ]
        self._command = [java, *options, "-cp", jars, main, *arguments]
        self.launch()

    def launch(self) -> None:
        self._log_begins = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._spawn(self._command, self.out)

    def logged(self) -> str:
        """All that it has logged in this life."""
        try:
            with self.log_file.open("rb") as file:
                file.seek(self._log_begins)
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def tail(self) -> str:
        """The last lines of what it wrote: to its standard output, else to its log; and what to do if its archive of
        classes may be damaged."""
        text = self.out.read_text(errors="replace").strip() or self.logged().strip()
        advice = damaged_archive(self._role, self.exit_code)
        return last_lines(text) + (f"\n{advice}" if advice else "")


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file. Backslashes are not escaped."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
