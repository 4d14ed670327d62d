"""The report: one HTML page that shows what an analysis found."""

from rebalance_lab.report.page import render, summary, write
from rebalance_lab.report.selection import shown_trials

__all__ = ["render", "shown_trials", "summary", "write"]
