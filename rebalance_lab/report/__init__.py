"""The report: HTML pages that show what an analysis, or one trial, found."""

from rebalance_lab.report.files import write, write_trial
from rebalance_lab.report.page import render, summary
from rebalance_lab.report.selection import shown_trials
from rebalance_lab.report.trace import trace_of
from rebalance_lab.report.trial_page import render_trial, story_of

__all__ = ["render", "render_trial", "shown_trials", "story_of", "summary", "trace_of", "write", "write_trial"]
