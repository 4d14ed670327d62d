"""Errors of rooms that need Spark, in a module without Spark, so that code which reports them need not import it."""

from __future__ import annotations

from rebalance_lab.kernel.errors import LabError


class SparkStartError(LabError):
    """Spark could not be started. The message says why and what to do."""


class TablesError(LabError):
    """Tables cannot be written, or read. The message names the folder, and says what to do."""
