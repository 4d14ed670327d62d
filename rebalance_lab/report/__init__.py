"""The report: HTML pages that show what an analysis, or one trial, found."""
