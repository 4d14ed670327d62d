"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest
from cli_tools import CommandLine


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs command lines in this process."""
    return CommandLine(capsys)
