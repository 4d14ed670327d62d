"""Distributions and cost curves over many trials: Vega-Lite charts, each with a picture that needs no
script."""

from rebalance_lab.report.charts.chart import Chart, Section, scripts, specs_json
from rebalance_lab.report.charts.sections import charts_of

__all__ = ["Chart", "Section", "charts_of", "scripts", "specs_json"]
