"""What can go wrong with Spark, without Spark: those who report it need not import it."""

from __future__ import annotations


class SparkStartError(Exception):
    """Spark could not be started. The message says why and what to do."""
