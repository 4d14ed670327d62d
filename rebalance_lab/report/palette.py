"""Members' colours: those of Okabe and Ito, which colour-blind people can distinguish.

Their vermilion is left out, because red is for overlaps. After six members the colours are repeated with
dots, then with bars, so that colour is never the only mark. Names are in the bars and in every tooltip,
too.
"""

from __future__ import annotations

from dataclasses import dataclass

DARK_INK = "#10151a"
LIGHT_INK = "#ffffff"

#: (fill, colour of text on it): blue, orange, bluish green, reddish purple, sky blue, yellow.
COLOURS = (
    ("#0072b2", LIGHT_INK),
    ("#e69f00", DARK_INK),
    ("#009e73", DARK_INK),
    ("#cc79a7", DARK_INK),
    ("#56b4e9", DARK_INK),
    ("#f0e442", DARK_INK),
)
TEXTURES = ("plain", "dots", "bars")


@dataclass(frozen=True, slots=True)
class Paint:
    """How a member is drawn: `fill` goes into SVG, `base` is its plain colour, `ink` that of text on it."""

    fill: str
    base: str
    ink: str
    texture: str


def paint(index: int) -> Paint:
    """The paint of the member at that place of the legend."""
    base, ink = COLOURS[index % len(COLOURS)]
    texture = TEXTURES[index // len(COLOURS) % len(TEXTURES)]
    if texture == "plain":
        return Paint(base, base, ink, texture)
    return Paint(f"url(#paint-{texture}-{index % len(COLOURS)})", base, ink, texture)


def textured() -> tuple[tuple[str, str, str, str], ...]:
    """The patterns a page defines once: (id, texture, fill, ink)."""
    return tuple(
        (f"paint-{texture}-{place}", texture, base, ink)
        for texture in TEXTURES[1:]
        for place, (base, ink) in enumerate(COLOURS)
    )
