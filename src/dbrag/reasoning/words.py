"""Expressions and conditions of SQL in plain words.

What has no sure wording stays SQL, marked as such: nothing is guessed, and nothing left
out. Names and texts come from the data, so they are put on one line and disarmed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from sqlglot import exp

from dbrag.reasoning.blocks import Block, Entry, bare, is_query, is_star
from dbrag.textsafe import one_line

MOST_VALUES = 12
"""Values of a list that are told; the others are counted."""
MAX_TEXT = 80
MAX_SQL = 300
MAX_DEPTH = 12
"""Deeper expressions are shown as SQL."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?\Z")
_PLAIN = re.compile(r"\w+\Z")
_AGGREGATES: Mapping[type[exp.Expr], str] = {
    exp.Sum: "the sum of {}",
    exp.Avg: "the average of {}",
    exp.Min: "the lowest {}",
    exp.Max: "the highest {}",
}
_SHAPES: Mapping[type[exp.Expr], str] = {
    exp.Lower: "{} in small letters",
    exp.Upper: "{} in capital letters",
    exp.Length: "the length of {}",
    exp.Abs: "the absolute value of {}",
    exp.Year: "the year of {}",
    exp.Month: "the month of {}",
    exp.Day: "the day of {}",
    exp.Date: "the date of {}",
    exp.Neg: "-{}",
}
_FORMATS = {
    "%Y": "the year of {}",
    "%m": "the month of {}",
    "%Y-%m": "the year and month of {}",
}
_COMPARED: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.GT: ("is over {}", "is after {}"),
    exp.GTE: ("is at least {}", "is from {} on"),
    exp.LT: ("is under {}", "is before {}"),
    exp.LTE: ("is at most {}", "is up to {}"),
}
_MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_SIGNS: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.DPipe: "||",
}


def conjuncts(node: exp.Expr | None, of: type[exp.Expr] = exp.And) -> list[exp.Expr]:
    """The parts of an AND chain (or of another connector) in order, parentheses removed."""
    found: list[exp.Expr] = []
    stack = [node] if node is not None else []
    while stack:
        place = stack.pop()
        inner = place.unnest() if isinstance(place, exp.Paren) else place
        if isinstance(inner, of):
            stack += [inner.args["expression"], inner.this]
        else:
            found.append(inner)
    return found


class Words:
    """Words for the expressions of one block.

    Args:
        labels: ``id`` of each query inside → what it is called.
    """

    def __init__(self, block: Block, dialect: str, labels: Mapping[int, str]) -> None:
        self._block = block
        self._dialect = dialect
        self._labels = labels
        self._doubles = _doubles(block)
        self._depth = 0

    # ---- names ------------------------------------------------------------------

    def entry(self, entry: Entry) -> str:
        """A table by its own name, with its alias where it is read twice."""
        if entry.table is None:
            return quoted(entry.alias) if entry.alias else "a query"
        name = quoted(entry.table.ref.name)
        if entry.table.ref in self._doubles and entry.alias != entry.table.ref.name:
            return f"{name} ({quoted(entry.alias)})"
        return name

    def column(self, column: exp.Column, *, outputs_first: bool = False) -> str:
        """``orders.status``, or what stands behind the name of a result column."""
        if is_star(column):
            return "all columns"
        place = self._block.place(column)
        output = self._block.output_named(column)
        if output is not None and output is not column and (outputs_first or place is None):
            if self._depth > MAX_DEPTH:
                return quoted(column.name)
            return self.value(output)
        if place is None:
            return ".".join(quoted(p) for p in (column.table, column.name) if p)
        return f"{self.entry(place.entry)}.{quoted(place.name)}"

    # ---- values -----------------------------------------------------------------

    def value(self, node: exp.Expr) -> str:
        """An expression as a noun: ``the average of staff.salary``."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                return self.sql(node)
            return self._value(node)
        finally:
            self._depth -= 1

    def _value(self, node: exp.Expr) -> str:
        kind = type(node)
        if is_query(node):
            return self.query(node)
        if kind in _SHAPES and _has_only_this(node):
            return _SHAPES[kind].format(self.value(node.this))
        if kind in _SIGNS:
            left, right = self.value(node.this), self.value(node.args["expression"])
            return f"{left} {_SIGNS[kind]} {right}"
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        match node:
            case exp.Column():
                return self.column(node)
            case exp.Literal():
                return self._literal(node)
            case exp.Null():
                return "NULL"
            case exp.Boolean():
                return "true" if node.this else "false"
            case exp.Paren():
                inner = self.value(node.this)
                return f"({inner})" if type(node.unnest()) in _SIGNS else inner
            case exp.Alias():
                return self.value(node.this)
            case exp.Distinct() if len(node.expressions) == 1:
                return f"different values of {self.value(node.expressions[0])}"
            case exp.TsOrDsToTimestamp() | exp.TsOrDsToDate():
                return self.value(node.this)
            case exp.Cast() if isinstance(node.this, exp.Literal) and _is_date(node.this):
                return one_line(node.this.name, MAX_TEXT)
            case exp.Cast():
                return f"{self.value(node.this)} as {self.sql(node.args['to'])}"
            case exp.TimeToStr() if node.text("format") in _FORMATS:
                return _FORMATS[node.text("format")].format(self.value(node.this))
            case exp.Extract():
                return f"the {node.name.lower()} of {self.value(node.args['expression'])}"
            case exp.Round() if node.args.get("decimals") is not None:
                return f"{self.value(node.this)} rounded to {self.value(node.args['decimals'])}"
            case exp.Round():
                return f"{self.value(node.this)} rounded"
            case exp.Coalesce() if len(node.expressions) == 1:
                other = self.value(node.expressions[0])
                return f"{self.value(node.this)} (or {other} where it has no value)"
        return self.sql(node)

    def _aggregate(self, node: exp.AggFunc) -> str:
        if isinstance(node, exp.Count):
            inner = node.this
            if inner is None or isinstance(inner, exp.Star | exp.Literal) or node.expressions:
                plain = not node.expressions and not isinstance(inner, exp.Distinct)
                return "the number of rows" if plain else self.sql(node)
            if isinstance(inner, exp.Distinct):
                if len(inner.expressions) != 1:
                    return self.sql(node)
                return f"the number of {self.value(inner)}"
            return f"the number of rows with a value of {self.value(inner)}"
        shape = _AGGREGATES.get(type(node))
        if shape is None or not _has_only_this(node):
            return self.sql(node)
        return shape.format(self.value(node.this))

    def query(self, node: exp.Expr) -> str:
        """A query inside, by its label: what it does is told under that."""
        label = self._labels.get(id(bare(node)))
        own = label.rpartition(", ")[2] if label else ""
        article = "the " if own == "subquery" else ""
        return f"the result of {article}{own}" if own else self.sql(node)

    def _literal(self, node: exp.Literal) -> str:
        text = one_line(node.name, MAX_TEXT)
        return f"'{text}'" if node.is_string and not _is_date(node) else text

    def sql(self, node: exp.Expr) -> str:
        """SQL on one line; a long one is cut, ending in ``…``."""
        try:
            return one_line(node.sql(dialect=self._dialect, comments=False), MAX_SQL)
        except RecursionError:
            return "an expression that is nested too deeply to show"

    # ---- conditions -------------------------------------------------------------

    def condition(self, node: exp.Expr) -> str:
        """A condition as a sentence: ``orders.status is 'shipped' or 'paid'``."""
        self._depth += 1
        try:
            told = None if self._depth > MAX_DEPTH else self._condition(node)
        finally:
            self._depth -= 1
        return self._as_sql(node) if told is None else told

    def _as_sql(self, node: exp.Expr) -> str:
        return f"SQL: {self.sql(node)}"

    def _condition(self, node: exp.Expr, *, negated: bool = False) -> str | None:
        """None where there are no words for it."""
        kind = type(node)
        not_ = "not " if negated else ""
        if kind in _MIRRORED and not negated:
            return self._comparison(node)
        match node:
            case exp.Paren():
                return self._condition(node.unnest(), negated=negated)
            case exp.Not() if not negated:
                told = self._condition(node.this, negated=True)
                return told or f"it is not so that {self.condition(node.this)}"
            case exp.And() if not negated:
                return " and ".join(self._part(p, exp.Or) for p in conjuncts(node))
            case exp.Or() if not negated:
                return self._or(conjuncts(node, exp.Or))
            case exp.Between() if not node.args.get("symmetric"):
                return self._between(node, not_)
            case exp.Is() if isinstance(node.args["expression"], exp.Null):
                some = negated != bool(node.args.get("negate"))
                return f"{self.value(node.this)} has {'a' if some else 'no'} value"
            case exp.In():
                return self._in(node, negated=negated)
            case exp.Like() | exp.ILike():
                return self._like(node, negated=negated)
            case exp.Exists():
                there = "no row" if negated else "a row"
                return f"there is {there} in {self.query(node.this)}"
            case exp.Column() | exp.Boolean():
                return f"{self.value(node)} is {not_}true"
        return None

    def _part(self, node: exp.Expr, weaker: type[exp.Expr]) -> str:
        told = self.condition(node)
        return f"({told})" if isinstance(node.unnest(), weaker) else told

    def _or(self, parts: list[exp.Expr]) -> str:
        """``x = 1 OR x = 2`` is one sentence about x."""
        equal = [p for p in parts if isinstance(p, exp.EQ) and _is_value(p.args["expression"])]
        if len(equal) == len(parts) and len({self.sql(p.this) for p in parts}) == 1:
            values = (self.value(p.args["expression"]) for p in parts)
            return f"{self.value(parts[0].this)} is {_listed(list(values), 'or')}"
        told = [self._part(part, exp.And) for part in parts]
        return " or ".join(_most(told))

    def _comparison(self, node: exp.Expr) -> str | None:
        left, right, kind = node.this, node.args["expression"], type(node)
        if isinstance(left, exp.Null) or isinstance(right, exp.Null):
            return None  # never true, which no sentence about a value would say
        if _is_value(left) and not _is_value(right):
            left, right, kind = right, left, _MIRRORED[kind]
        said, other = self.value(left), self.value(right)
        if kind in (exp.EQ, exp.NEQ):
            verb = "is" if _is_value(right) else "equals"
            negation = {"is": "is not", "equals": "differs from"}[verb]
            return f"{said} {verb if kind is exp.EQ else negation} {other}"
        plain, dated = _COMPARED[kind]
        return f"{said} {(dated if _is_date(right) else plain).format(other)}"

    def _between(self, node: exp.Between, not_: str) -> str:
        low, high = node.args["low"], node.args["high"]
        words = "is {}from {} to {}" if _is_date(low) else "is {}between {} and {}, both included"
        return f"{self.value(node.this)} {words.format(not_, self.value(low), self.value(high))}"

    def _in(self, node: exp.In, *, negated: bool) -> str | None:
        said = self.value(node.this)
        query = node.args.get("query")
        if query is not None:
            return f"{said} is {'not ' if negated else ''}in {self.query(query)}"
        if not node.expressions or node.args.get("unnest") or node.args.get("field"):
            return None
        values = [self.value(value) for value in node.expressions]
        if not negated:
            return f"{said} is {_listed(values, 'or')}"
        return f"{said} is {'not' if len(values) == 1 else 'none of'} {_listed(values, 'and')}"

    def _like(self, node: exp.Like | exp.ILike, *, negated: bool) -> str | None:
        pattern = node.args["expression"]
        negated = negated != bool(node.args.get("negate"))
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            return None
        text = pattern.name
        inner = text.strip("%")
        case = " (small or capital letters)" if isinstance(node, exp.ILike) else ""
        said = self.value(node.this)
        told = f"'{one_line(inner, MAX_TEXT)}'{case}"
        if not inner or "%" in inner or "_" in inner or "\\" in inner:
            does = "does not fit" if negated else "fits"
            return f"{said} {does} the pattern '{one_line(text, MAX_TEXT)}'{case}"
        shape = (text.startswith("%"), text.endswith("%"))
        if shape == (False, False):
            return f"{said} is {'not ' if negated else ''}like {told}"
        verb, base = {
            (True, True): ("contains", "contain"),
            (False, True): ("starts with", "start with"),
            (True, False): ("ends with", "end with"),
        }[shape]
        return f"{said} {f'does not {base}' if negated else verb} {told}"


def quoted(name: str) -> str:
    """A name on one line, in quotes where it is more than letters, digits and ``_``."""
    shown = one_line(name, MAX_TEXT)
    return shown if _PLAIN.match(shown) else f'"{shown}"'


def _doubles(block: Block) -> frozenset[object]:
    counted = Counter(e.table.ref for e in _in_sight(block) if e.table is not None)
    return frozenset(ref for ref, times in counted.items() if times > 1)


def _in_sight(block: Block) -> Iterator[Entry]:
    place: Block | None = block
    while place is not None:
        yield from place.entries
        place = place.outer


def _has_only_this(node: exp.Expr) -> bool:
    return isinstance(node.this, exp.Expr) and not any(
        value for name, value in node.args.items() if name != "this"
    )


def _is_value(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Neg | exp.Cast) else node
    return isinstance(inner, exp.Literal | exp.Boolean | exp.Null)


def _is_date(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Cast) else node
    return isinstance(inner, exp.Literal) and inner.is_string and bool(_DATE.match(inner.name))


def _most(values: list[str]) -> list[str]:
    more = len(values) - MOST_VALUES
    return [*values[:MOST_VALUES], *([f"{more:,} more"] if more > 0 else [])]


def _listed(values: list[str], word: str) -> str:
    """``a, b or c``."""
    shown = _most(values)
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"
