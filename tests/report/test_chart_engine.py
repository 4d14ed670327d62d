"""The engine of charts under a limit that it would not survive."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable

import pytest

from rebalance_lab.report.charts.engine import as_page, as_svg, bundled

POINT = {"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a", "type": "quantitative"}}}


@pytest.mark.parametrize("draw", [lambda: as_svg(POINT), lambda: as_page(POINT), lambda: bundled("")])
def test_it_is_not_started_in_an_address_space_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, draw: Callable[[], str]
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024 * 60_000_000, 1024 * 60_000_000))
    with pytest.raises(OSError, match="this process may have 60000000; run it without that limit") as raised:
        draw()
    assert raised.value.errno == errno.ENOMEM


def test_without_a_limit_it_draws() -> None:
    assert as_svg(POINT).startswith("<svg")
