"""Pictures made of pixels, for what has too many parts to draw one by one: a PNG in a data URI."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

#: Red, green, blue, opacity; each 0 to 255. Opacity lets one picture serve on light and dark paper.
Pixel = tuple[int, int, int, int]

CLEAR: Pixel = (0, 0, 0, 0)


def png(rows: Sequence[Sequence[Pixel]]) -> bytes:
    """The PNG of rows of pixels, all of one length. Raises ValueError for no pixels or ragged rows."""
    width = len(rows[0]) if rows else 0
    if width == 0 or any(len(row) != width for row in rows):
        raise ValueError(f"a picture needs rows of one length, above 0; there are {len(rows)} rows")
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 6, 0, 0, 0)  # 8 bits, RGBA, no interlace
    lines = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in parts
    )


def data_uri(rows: Sequence[Sequence[Pixel]]) -> str:
    """The picture as an address that needs no network."""
    return f"data:image/png;base64,{b64encode(png(rows)).decode()}"
