"""Is a double-quoted word text? SQLite takes it so when no column has that name.

Models write ``WHERE country = "France"``; they also misspell ``"countri"``, which SQLite
would compare as text without a word. Decided by the place it stands in.
"""

from __future__ import annotations

from sqlglot import exp

_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Like,
    exp.ILike,
    exp.Glob,
    exp.Match,
    exp.Is,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


def is_text(node: exp.Column, *, resembles: bool) -> bool:
    """True when the unknown double-quoted name ``node`` can only be meant as text.

    Args:
        resembles: a column in sight is spelled nearly so.
    """
    place, parent = _climb(node)
    if isinstance(parent, _COMPARISONS):
        if place is parent.expression:
            # "nmae" = 'Bob' compares two texts only if "nmae" is a misspelled column.
            return _reads(parent.this, node)
        return not resembles and _reads(parent.expression, node, sure=True)
    if isinstance(parent, exp.In):
        return place is not parent.this
    if isinstance(parent, exp.Between):
        return place is not parent.this
    if resembles:
        return False
    if isinstance(parent, (exp.Escape, exp.Case, exp.If, exp.GroupConcat)):
        return place is not parent.this
    if isinstance(parent, (exp.DPipe, exp.Concat, exp.Values)):
        return True
    return isinstance(parent, exp.Func) and not isinstance(parent, _AGGREGATES)


def _climb(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """The node with its parentheses and COLLATE, and what stands around."""
    place, parent = node, node.parent
    while isinstance(parent, (exp.Paren, exp.Tuple, exp.Collate, exp.TsOrDsToTimestamp)):
        place, parent = parent, parent.parent
    return place, parent


def _reads(other: exp.Expr, node: exp.Column, *, sure: bool = False) -> bool:
    """True when the other side of a comparison depends on data.

    Args:
        sure: a double-quoted name, which may be text itself, is not enough.
    """
    for part in other.walk():
        if isinstance(part, (exp.Query, exp.AggFunc)):
            return True
        column = isinstance(part, exp.Column) and part is not node
        if column and not (sure and not part.args.get("table") and part.this.args.get("quoted")):
            return True
    return False
