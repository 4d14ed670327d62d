"""A program of real Kafka as a child process, with its log4j log in a file."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rebalance_lab.world.kafka.jars import Role, class_path
from rebalance_lab.world.live.java import java_command
from rebalance_lab.world.live.processes import die_with_parent

#: Times are read back from the logs, and the pattern knows no zone: so it is UTC.
_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Duser.timezone=UTC")

#: What `world.kafka.log_file` reads.
_PATTERN = "%d{yyyy-MM-dd HH:mm:ss,SSS}\\t%p\\t%t\\t%c{1}\\t%m%n"

_STOP_TIMEOUT_S = 10.0
_TAIL_LINES = 15


class JavaProgram:
    """One running JVM. It dies with the process that started it (see `die_with_parent`)."""

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
        java, jars = java_command(), class_path(role)
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{name}.log"
        self.out = folder / f"{name}.out"
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        logging = folder / f"{name}.log4j"
        lines = {
            "log4j.rootLogger": "INFO, file",
            "log4j.appender.file": "org.apache.log4j.FileAppender",
            "log4j.appender.file.File": str(self.log.absolute()),
            "log4j.appender.file.layout": "org.apache.log4j.PatternLayout",
            "log4j.appender.file.layout.ConversionPattern": _PATTERN,
            **{f"log4j.logger.{logger}": level for logger, level in (loggers or {}).items()},
        }
        write_properties(logging, lines)
        command = [java, f"-Xmx{heap_mb}m", *_FLAGS, f"-Dlog4j.configuration={logging.absolute().as_uri()}"]
        with self.out.open("wb") as output:
            self.popen = subprocess.Popen(
                [*command, "-cp", jars, main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 (one C call, looked up before the fork)
                process_group=0,
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def ended(self) -> bool:
        return self.popen.poll() is not None

    def terminate(self) -> None:
        """Ask it to end: SIGTERM runs Kafka's shutdown hooks."""
        if not self.ended:
            self.popen.terminate()

    def stop(self) -> None:
        """Ask it to end, and by force after ten seconds. Harmless when ended."""
        self.terminate()
        try:
            self.popen.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once (SIGKILL). Harmless when ended."""
        if not self.ended:
            self.popen.kill()
        self.popen.wait()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def logged(self) -> str:
        """All it has logged. log4j appends: an earlier one of its name in the same folder may come before it
        in the file."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_begins)
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def tail(self) -> str:
        """The last lines of what it wrote: to its standard output, else to its log."""
        text = self.out.read_text(errors="replace").strip() or self.logged().strip()
        return "\n".join(text.splitlines()[-_TAIL_LINES:]) or "it wrote nothing"


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """A Java properties file. What it means with backslashes is left to Java."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
