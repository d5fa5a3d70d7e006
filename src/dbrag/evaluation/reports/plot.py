"""A line chart as SVG text, without a library: few points, names at the right, error bars.

Colours are CSS variables of the page with a fallback, so that one drawing suits light and dark;
as a file of its own it takes the colour scheme of who shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 16, 16, 46
_LEGEND = 22
"""Height of a line of the legend, pixels."""
_FALLBACK = ("#2f6fb7", "#b8580b", "#1b7f5c", "#8b4f9f", "#5b6570", "#a8323e")
_DARK = ("#7fb3f0", "#f0a35e", "#5fcfa3", "#c99be0", "#b6c0cb", "#f0858f")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 3")
"""Lines are told apart without colours, too."""
MAX_LINES = len(_FALLBACK)


@dataclass(frozen=True, slots=True)
class Point:
    """A measured point; ``low`` and ``high`` are the ends of its interval, None if unknown."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one kind, by ``x``."""

    name: str
    points: tuple[Point, ...]


def line_chart(lines: Sequence[Line], x_title: str, y_title: str, description: str) -> str:
    """The chart, ``y`` in percent (given from 0 to 1).

    Args:
        lines: at most ``MAX_LINES``, each with at least one point.
        description: of the whole, for those who do not see it.

    Raises:
        ValueError: no point, or too many lines.
    """
    points = [point for line in lines for point in line.points]
    if not points or len(lines) > MAX_LINES:
        raise ValueError(f"{len(points)} points in {len(lines)} lines cannot be drawn")
    frame = _Frame.around(points, len(lines))
    parts = [*_axes(frame, points, x_title, y_title)]
    for number, line in enumerate(lines):
        parts += _line(frame, line, number, len(lines))
    parts += _legend(frame, lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {frame.height}" role="img"'
        f' aria-label="{escape(description)}" font-family="Liberation Sans, Arial, sans-serif"'
        f' font-size="13">{_style()}{"".join(parts)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where values lie on the picture."""

    x0: float
    x1: float
    y0: float
    y1: float
    height: int

    @classmethod
    def around(cls, points: Sequence[Point], lines: int) -> _Frame:
        ends = [v for p in points for v in (p.y, p.low, p.high) if v is not None]
        low, high = min(ends), max(ends)
        room = max(0.01, (high - low) * 0.12)
        xs = [point.x for point in points]
        x0, x1 = min(xs), max(xs)
        aside = max((x1 - x0) * 0.04, 0.5)
        return cls(
            x0 - aside,
            x1 + aside,
            max(0.0, low - room),
            min(1.0, high + room),
            HEIGHT + _LEGEND * lines,
        )

    def x(self, value: float) -> float:
        share = (value - self.x0) / (self.x1 - self.x0)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.y0) / (self.y1 - self.y0)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def _style() -> str:
    light = "".join(f".k{i}{{color:var(--c{i + 1},{c})}}" for i, c in enumerate(_FALLBACK))
    dark = "".join(f".k{i}{{color:var(--c{i + 1},{c})}}" for i, c in enumerate(_DARK))
    return (
        f"<style>.ink{{fill:var(--ink,#1d2733)}}.rule{{stroke:var(--line,#d9dfe6)}}{light}"
        "@media (prefers-color-scheme: dark){.ink{fill:var(--ink,#e6ebf1)}"
        f".rule{{stroke:var(--line,#39434f)}}{dark}}}</style>"
    )


def _axes(frame: _Frame, points: Sequence[Point], x_title: str, y_title: str) -> list[str]:
    parts = []
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for value in ticks(100 * frame.y0, 100 * frame.y1):
        y = frame.y(value / 100)
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{value:g}", "end"))
    for x in sorted({point.x for point in points}):
        parts.append(_text(frame.x(x), bottom + 18, f"{x:g}", "middle"))
    parts.append(_text((_LEFT + right) / 2, bottom + 38, x_title, "middle"))
    middle = (_TOP + bottom) / 2
    parts.append(
        f'<text class="ink" text-anchor="middle" transform="translate(14 {middle:g})'
        f' rotate(-90)">{escape(y_title)}</text>'
    )
    return parts


def _line(frame: _Frame, line: Line, number: int, lines: int) -> list[str]:
    ordered = sorted(line.points, key=lambda point: point.x)
    # Bars of several lines at one place stand side by side.
    aside = (number - (lines - 1) / 2) * 5
    at = [(frame.x(p.x) + aside, frame.y(p.y)) for p in ordered]
    dash = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
    path = " ".join(f"{x:g},{y:g}" for x, y in at)
    parts = [
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="2"{dash}/>'
    ]
    for (x, y), point in zip(at, ordered, strict=True):
        if point.low is not None and point.high is not None:
            low, high = frame.y(point.low), frame.y(point.high)
            parts.append(
                f'<line x1="{x:g}" x2="{x:g}" y1="{low:g}" y2="{high:g}" stroke="currentColor"'
                ' stroke-width="1.2" opacity="0.75"/>'
            )
        told = f"{line.name}, {point.x:g}: {100 * point.y:.1f}"
        parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="currentColor">'
            f"<title>{escape(told)}</title></circle>"
        )
    return [f'<g class="k{number}">', *parts, "</g>"]


def _legend(frame: _Frame, lines: Sequence[Line]) -> list[str]:
    parts = []
    for number, line in enumerate(lines):
        y = HEIGHT + 6 + _LEGEND * number
        dash = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
        parts.append(
            f'<g class="k{number}"><line x1="{_LEFT}" x2="{_LEFT + 34}" y1="{y}" y2="{y}"'
            f' stroke="currentColor" stroke-width="2"{dash}/>'
            f'<circle cx="{_LEFT + 17}" cy="{y}" r="4" fill="currentColor"/></g>'
        )
        parts.append(_text(_LEFT + 42, y + 4, line.name, "start"))
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="ink" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def ticks(low: float, high: float) -> list[float]:
    """Round values from ``low`` to ``high``, some four to seven, a step of 1, 2 or 5 of ten."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(step * m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(n * step, 10) for n in range(first, last + 1)]
