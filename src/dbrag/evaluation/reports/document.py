"""What a report is made of, before it is written as Markdown or HTML.

Texts are plain but for two marks of Markdown: `` `code` `` and ``**strong**``. Names of runs and
of tables are data: use :func:`plain` on what may hold a mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; ``level`` 1 is the report's own."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of code: commands to type into a shell, or programs."""

    lines: tuple[str, ...]
    lang: str = "sh"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; the first column names the row, the others are figures.

    A row of a single cell is a title of the rows below it.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) not in (1, len(self.header)):
                raise ValueError(f"a row of {len(row)} cells under {len(self.header)} titles")

    @property
    def figures(self) -> tuple[bool, ...]:
        """For each column whether it holds figures, which stand to the right."""
        columns = zip(*(row for row in self.rows if len(row) > 1), strict=True)
        found = tuple(all(map(_is_figure, column)) for column in columns)
        return found or (False,) * len(self.header)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing, SVG text, with what it shows in words; ``name`` is that of a file."""

    name: str
    caption: str
    svg: str


Block = Heading | Paragraph | Code | Table | Figure


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report."""

    title: str
    blocks: tuple[Block, ...] = field(default_factory=tuple)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its drawings, in their order."""
        return tuple(block for block in self.blocks if isinstance(block, Figure))


_FIGURE = re.compile(r"(?:\*\*)?[-+−]?\d")


def _is_figure(cell: str) -> bool:
    return cell in ("", DASH, "unknown") or _FIGURE.match(cell) is not None


DASH = "–"
"""A figure that there is not."""


def percent(value: float | None) -> str:
    """A share as percent, one decimal."""
    return DASH if value is None else f"{100 * value:.1f}"


def printed(value: float | None) -> str:
    """A figure that is in percent already, one decimal."""
    return DASH if value is None else f"{value:.1f}"


def span(low: float | None, high: float | None, signed: bool = False) -> str:
    """An interval of shares in percent; a dash where nothing can be said."""
    if low is None or high is None:
        return DASH
    sign = "+" if signed else ""
    return f"{100 * low:{sign}.1f} to {100 * high:{sign}.1f}"


def plain(text: str) -> str:
    """A name that is shown as it is: on one line, its marks of Markdown without meaning."""
    return " ".join(text.split()).replace("`", "ˋ").replace("**", "∗∗")


def best(cells: Sequence[float | None]) -> list[str]:
    """Shares in percent, the largest strong, several where they tie, none where all do."""
    shown = [percent(cell) for cell in cells]
    known = [cell for cell in cells if cell is not None]
    top = percent(max(known, default=None))
    if not known or all(percent(one) == top for one in known):
        return shown
    return [f"**{text}**" if text == top else text for text in shown]


def strong_columns(
    rows: Sequence[Sequence[float | None]],
) -> list[list[str]]:
    """Rows of shares in percent, in each column the best of several rows strong."""
    columns = [best(column) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    """A :class:`Table` of any sequences."""
    return Table(tuple(header), tuple(tuple(row) for row in rows), caption)
