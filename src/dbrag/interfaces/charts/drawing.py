"""A chart as Vega-Lite, and as SVG, drawn on this machine by vl-convert.

Fields of the specification are ``f0``, ``f1``, …, so that no name of a column is taken for a
path or an expression; names and values are data and are drawn as text.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dbrag.errors import DbragError
from dbrag.interfaces.charts.choice import Chart, Column, column_of
from dbrag.values import text_value

if TYPE_CHECKING:
    import pyarrow as pa

Theme = Literal["light", "dark", "any"]
"""``any``: the text has the colour of what is around it, the rest can be seen on light and dark."""
MAX_LABEL_CHARS = 60
_LOOKED_AT = 10 * MAX_LABEL_CHARS
MAX_POINTS_ON_LINES = 60
_TABLE_SHOWS = "the table shows the same values"
# https://www.w3.org/TR/xml/#NT-Char; the library ends its process on any other.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_INK = {"light": "#1d2733", "dark": "#e6ebf1", "any": "currentColor"}
_FAINT = {"light": "#d9dfe6", "dark": "#39434f", "any": "#80808066"}
# Told apart also by those who see no red or green (after Okabe and Ito, 2008).
_COLOURS: dict[str, tuple[str, ...]] = {
    "light": ("#2f6fb7", "#b8580b", "#1b7f5c", "#8b4f9f", "#5b6570", "#a8323e", "#7a6a00",
              "#007c91"),
    "dark": ("#7fb3f0", "#f0a35e", "#5fcfa3", "#c99be0", "#b6c0cb", "#f0858f", "#d9c64f",
             "#5cc9dc"),
    # At least 3:1 on white and on #111 (WCAG 2.2, 1.4.11).
    "any": ("#2f6fb7", "#b8580b", "#1b7f5c", "#9558a9", "#64707c", "#c2444f", "#7a6a00",
            "#007c91"),
}  # fmt: skip


class ChartFailed(DbragError):
    """The library that draws could not."""

    code = "chart"


def specification(chart: Chart, table: pa.Table, theme: Theme, width: int) -> dict[str, Any]:
    """The chart in Vega-Lite 6, with its data inside.

    Args:
        table: the result that the chart was decided for.
        width: of the whole picture, pixels.
    """
    columns = [column_of(field, table.column(field.index)) for field in (chart.x, *chart.y)]
    known = [column for column in columns if column is not None]
    series = column_of(chart.series, table.column(chart.series.index)) if chart.series else None
    one = len(chart.y) == 1
    amount: dict[str, Any] = {
        "field": "f1" if one else "value",
        "type": "quantitative",
        "title": short(chart.y[0].name) if one else None,
    }
    spec: dict[str, Any] = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "data": {"values": _records(chart, known, series)},
        "mark": _mark(chart, _COLOURS[theme][0]),
        "encoding": _places(chart, known[0].role, amount),
        "width": width,
        "height": 260,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 14, "right": 8, "top": 5, "bottom": 5},
        "config": _config(theme, width),
    }
    if chart.kind == "bar":
        spec["height"] = {"step": 9 if chart.series else 20}
    if not one:
        spec["transform"] = _folded([field.name for field in chart.y])
    if chart.series or not one:
        spec["encoding"]["color"] = {
            "field": "series",
            "type": "nominal",
            "title": short(chart.series.name) if chart.series else None,
            "sort": None,
            "scale": {"range": list(_COLOURS[theme])},
        }
    return spec


class Drawer:
    """Draws in another process (``drawer``), started when first needed, ended with this one.

    Safe to share by threads, which wait for each other.

    Args:
        limit_s: longest time of a drawing, seconds; the process is ended then.
    """

    def __init__(self, limit_s: float = 30.0) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def draw(self, spec: dict[str, Any]) -> str:
        """The SVG of a specification; nothing is loaded for it.

        Raises:
            ChartFailed: the library refuses it, takes too long, or ended its process.
        """
        with self._lock:
            line = self._replied(json.dumps(spec))
        if not line:
            raise ChartFailed("the chart could not be drawn", _TABLE_SHOWS)
        reply = json.loads(line)
        if "error" in reply:
            raise ChartFailed(f"the chart cannot be drawn: {reply['error'][:200]!r}", _TABLE_SHOWS)
        return str(reply["svg"])

    def close(self) -> None:
        """End the process; the next drawing starts another."""
        with self._lock:
            self._end()

    def _replied(self, line: str) -> str:
        """The line that answers; empty when the process ended."""
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        timer = threading.Timer(self._limit_s, process.kill)
        timer.start()
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        except OSError:
            reply = ""
        finally:
            timer.cancel()
        if not reply.endswith("\n"):
            self._end()
            return ""
        return reply

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603 - a file of ours
                # -P: the folder of the file is no place to import from.
                [sys.executable, "-P", str(Path(__file__).with_name("drawer.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a panic's text may hold a value
                encoding="utf-8",
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def short(text: str) -> str:
    """A name or value on one line, at most ``MAX_LABEL_CHARS`` long, of characters of XML."""
    start = text[:_LOOKED_AT]  # a cell may be megabytes
    plain = _NO_XML.sub("\ufffd", " ".join(start.split()))
    if len(plain) <= MAX_LABEL_CHARS and len(text) <= _LOOKED_AT:
        return plain
    return plain[: MAX_LABEL_CHARS - 1] + "…"


def _mark(chart: Chart, colour: str) -> dict[str, Any]:
    match chart.kind:
        case "bar":
            return {"type": "bar", "color": colour, "cornerRadiusEnd": 2}
        case "line":
            points = len(chart.rows) <= MAX_POINTS_ON_LINES
            return {"type": "line", "color": colour, "point": points}
        case "point":
            return {"type": "point", "color": colour, "filled": True, "size": 45, "opacity": 0.75}


def _places(chart: Chart, role: str, amount: dict[str, Any]) -> dict[str, Any]:
    """What stands along which axis."""
    along: dict[str, Any] = {"field": "f0", "title": short(chart.x.name)}
    if chart.kind == "bar":
        # Names are read lying: bars go to the right, in the order of the result.
        names = along | {"type": "nominal", "sort": None, "title": None}
        places = {"y": names, "x": amount}
        return places | ({"yOffset": {"field": "series", "sort": None}} if chart.series else {})
    if role == "time":
        return {"x": along | {"type": "temporal", "scale": {"type": "utc"}}, "y": amount}
    free = {"scale": {"zero": False}}
    return {"x": along | {"type": "quantitative"} | free, "y": amount | free}


def _records(
    chart: Chart, columns: Sequence[Column], series: Column | None
) -> list[dict[str, Any]]:
    names = _labels(columns[0], chart.rows) if chart.kind == "bar" else {}
    colours = _labels(series, chart.rows) if series is not None else {}
    records = []
    for i in chart.rows:
        record = {f"f{n}": _json(column.values[i]) for n, column in enumerate(columns)}
        if names:
            record["f0"] = names[columns[0].values[i]]
        if series is not None:
            record["series"] = colours[series.values[i]]
        records.append(record)
    return records


def _labels(column: Column, rows: Sequence[int]) -> dict[Any, str]:
    """A label of its own for each value: long ones may differ only where they are cut."""
    labels: dict[Any, str] = {}
    taken: set[str] = set()
    for i in rows:
        value = column.values[i]
        if value in labels:
            continue
        label = plain = short("NULL" if value is None else text_value(value))
        number = 1
        while label in taken:
            number += 1
            label = f"{plain} ({number})"
        taken.add(label)
        labels[value] = label
    return labels


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        # Read as UTC and drawn as UTC: the time of day stays what it is.
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat() if isinstance(value, date) else value


def _folded(names: Sequence[str]) -> list[dict[str, Any]]:
    """Several measures as one, with their names for the legend."""
    fields = [f"f{i}" for i in range(1, len(names) + 1)]
    pairs = [{"k": f, "series": short(name)} for f, name in zip(fields, names, strict=True)]
    source = {"data": {"values": pairs}, "key": "k", "fields": ["series"]}
    return [{"fold": fields, "as": ["name", "value"]}, {"lookup": "name", "from": source}]


def _config(theme: Theme, width: int) -> dict[str, Any]:
    ink, faint = _INK[theme], _FAINT[theme]
    text = {"labelColor": ink, "titleColor": ink, "titleFontWeight": "normal"}
    limit = min(180, width // 3)
    lines = {"domainColor": faint, "tickColor": faint, "gridColor": faint}
    return {
        "background": None,
        # Widths are measured with Liberation Sans, which is as wide as Arial.
        "font": "Arial, Liberation Sans, sans-serif",
        "view": {"stroke": None},
        "axis": {**text, **lines, "labelLimit": limit, "labelFontSize": 12, "titleFontSize": 12},
        "axisQuantitative": {"tickCount": 5},
        "legend": {**text, "labelLimit": 200, "orient": "bottom", "columns": 4},
    }
