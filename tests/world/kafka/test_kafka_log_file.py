"""log4j files as they grow."""

from __future__ import annotations

from pathlib import Path

from rebalance_lab.world.kafka.log_file import LogFile, LogLine

FIRST = "1970-01-02 00:00:01,002\tINFO\tmain\tZkClient\tone\ttwo"


def test_a_file_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    assert LogFile(tmp_path / "log").poll() == []


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(path)
    path.write_text(f"{FIRST}\n{FIRST[:30]}")
    assert log.poll() == [LogLine(86_401_002, "INFO", "main", "ZkClient", "one\ttwo")]
    with path.open("a") as file:
        file.write(f"{FIRST[30:]}\n")
    assert len(log.poll()) == 1
    assert log.poll() == []


def test_further_lines_of_a_message_carry_its_time_and_no_level(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"of a message before\n{FIRST}\njava.lang.Error: x\n\tat somewhere\n")
    assert LogFile(path).poll()[1:] == [
        LogLine(86_401_002, "", "main", "ZkClient", "java.lang.Error: x"),
        LogLine(86_401_002, "", "main", "ZkClient", "\tat somewhere"),
    ]
