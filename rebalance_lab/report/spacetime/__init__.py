"""The space-time diagram: which actor did what when around an anomaly, and what led to it.

There is a lane for each actor, and time runs downwards. Important moments cluster within milliseconds,
seconds apart. So distances are drawn short, and long quiet periods are cut and labelled.
"""

from rebalance_lab.report.spacetime.choice import Subject, subject_of
from rebalance_lab.report.spacetime.drawing import SpaceTime, draw_spacetime

__all__ = ["SpaceTime", "Subject", "draw_spacetime", "subject_of"]
