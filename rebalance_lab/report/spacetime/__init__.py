"""The space-time diagram: who did what when around an anomaly, and what led to it.

A lane for each actor, time downwards. Moments that matter cluster within milliseconds, seconds
apart: so distances are drawn short, and long quiet stretches are cut and named.
"""

from rebalance_lab.report.spacetime.drawing import SpaceTime, draw_spacetime
from rebalance_lab.report.spacetime.subject import Subject, subject_of

__all__ = ["SpaceTime", "Subject", "draw_spacetime", "subject_of"]
