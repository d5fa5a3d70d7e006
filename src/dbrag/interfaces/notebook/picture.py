"""The chart of a result as SVG for a notebook: only elements that draw, only text as text."""

from __future__ import annotations

import functools
import hashlib
import html
import importlib.util
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from dbrag.interfaces.charts.choice import MAX_MARKS, chart_of
from dbrag.interfaces.charts.drawing import ChartFailed, Drawer, specification
from dbrag.interfaces.notebook.markup import visible

if TYPE_CHECKING:
    from dbrag.types import Execution

WIDTH = 640
"""Pixels; it gets narrower with the notebook."""
_LIMIT_S = 15.0
_LIBRARY = "vl_convert"

_ELEMENTS = frozenset({"svg", "g", "path", "line", "rect", "circle", "text", "defs", "clipPath"})
_ATTRIBUTES = frozenset(
    re.findall(
        r"[\w-]+",
        """
        clip-path cx cy d dominant-baseline dx dy fill fill-opacity font-family font-size font-style
        font-weight height id opacity r stroke stroke-dasharray stroke-dashoffset stroke-linecap
        stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-anchor transform viewBox
        width x x1 x2 y y1 y2
        """,
    )
)
_REFERENCE = re.compile(r"url\(#([\w-]+)\)")


def figure(execution: Execution) -> str:
    """The chart that suits a result; empty where none does, or nothing here can draw it."""
    if not 2 <= len(execution.rows) <= MAX_MARKS or importlib.util.find_spec(_LIBRARY) is None:
        return ""
    found = chart_of(execution.table)
    if isinstance(found, str):
        return ""
    try:
        svg = _drawer().draw(specification(found, execution.table, "any", WIDTH))
        drawn = harmless(svg, found.description())
    except (ChartFailed, OSError, ElementTree.ParseError):
        return ""  # the table above it shows the same values
    told = html.escape(visible("; ".join((found.description(), *found.notes))))
    return f'<div>{drawn}<p class="dbrag-faint" dir="auto">{told}</p></div>'


@functools.cache
def _drawer() -> Drawer:
    """One process for all charts of a notebook; it ends with the notebook's."""
    return Drawer(_LIMIT_S)


def harmless(svg: str, description: str) -> str:
    """A drawing that can stand in a page of others: what only draws, with names of its own.

    Args:
        svg: as the library drew it.
        description: what it shows, for those who do not see it.

    Raises:
        ElementTree.ParseError: it is no XML.
    """
    # The text comes from our own process; it declares no entities, and none are read here.
    root = ElementTree.fromstring(svg)  # noqa: S314
    mark = hashlib.sha256(svg.encode("utf-8", "replace")).hexdigest()[:8]
    _clean(root, f"dbrag-{mark}-")
    root.set("role", "img")
    root.set("aria-label", visible(description))
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    element.tag = _bare(element.tag)
    kept = {name: _value(name, value, prefix) for name, value in element.attrib.items()}
    element.attrib.clear()
    element.attrib.update((n, v) for n, v in kept.items() if n in _ATTRIBUTES and v is not None)
    element.text = visible(element.text) if element.text else None
    element.tail = None
    for child in list(element):
        if _bare(child.tag) in _ELEMENTS:
            _clean(child, prefix)
        else:
            element.remove(child)


def _bare(tag: str) -> str:
    """Without its namespace: inside HTML an ``svg`` is one by its name."""
    return tag.rpartition("}")[2]


def _value(name: str, value: str, prefix: str) -> str | None:
    """An attribute's value; None for one that names anything outside the drawing."""
    if name == "id":
        return prefix + value
    if match := _REFERENCE.fullmatch(value):
        return f"url(#{prefix}{match[1]})"
    return None if "url" in value.lower() or ":" in value else value
