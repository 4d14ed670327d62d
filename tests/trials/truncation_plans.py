"""The settings of the schedules of the truncation ladder, for tests in all worlds."""

from __future__ import annotations

CUT_OFF = {"schedule": "cut-off"}
ALONE = {"schedule": "alone", "unclean": "true"}
LATE_ORDER = {"schedule": "late-order", "idempotent": "true"}
MISSED_EPOCH = {"schedule": "missed-epoch", "request_timeout_ms": "20000"}
CURED = {**MISSED_EPOCH, "forget": "true"}
