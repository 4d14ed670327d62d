"""Vega-Lite as pictures and pages, by the JavaScript engine in `vl-convert`.

The engine reserves a large part of the address space when it starts. If a process may not have so much (`ulimit -v`),
the engine ends the process on the spot, so the limit is looked at before.
"""

from __future__ import annotations

import errno
import resource
from typing import Any

import vl_convert

#: V8 of vl-convert 1.9.0 started with 80,000,000 KiB and not with 60,000,000.
_RESERVED_KIB = 80_000_000


def as_svg(spec: dict[str, Any] | str) -> str:
    """Raises OSError (ENOMEM) under a limit of the address space that is too low, as all functions here do."""
    _must_fit()
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg


def as_page(spec: dict[str, Any]) -> str:
    """An HTML page that opens from disk, without a network."""
    _must_fit()
    page: str = vl_convert.vegalite_to_html(spec, bundle=True)
    return page


def bundled(start: str) -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which ends with `start`."""
    _must_fit()
    script: str = vl_convert.javascript_bundle(start)
    return script


def _must_fit() -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _RESERVED_KIB * 1024:
        raise OSError(
            errno.ENOMEM,
            f"charts need {_RESERVED_KIB} KiB of address space, and this process may have {limit // 1024}; "
            "run it without that limit (ulimit -v unlimited)",
        )
