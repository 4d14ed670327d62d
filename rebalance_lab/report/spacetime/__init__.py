"""The space-time diagram: which actor did what when around an anomaly, and what led to it.

There is a lane for each actor, and time runs downwards. Important moments cluster within milliseconds,
seconds apart. So distances are drawn short, and long quiet periods are cut and labelled.
"""

from rebalance_lab.report.spacetime.drawing import SpaceTime, draw_spacetime
from rebalance_lab.report.spacetime.subject import Subject, subject_of

__all__ = ["SpaceTime", "Subject", "draw_spacetime", "subject_of"]
