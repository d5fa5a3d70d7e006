"""Which parts a query may be made of: an allow-list over sqlglot's kinds of nodes."""

from __future__ import annotations

from sqlglot import exp

from dbrag.errors import Refused

MAX_WITH_ENTRIES = 100
"""PostgreSQL plans a chain of n entries in about n³ steps, which no time limit and no cancel
ends: 100 take 0.06 s, 300 take 1.6 s; one of 100,000 characters more than ten minutes."""

QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)

# Operators and functions; which functions, the guard decides by their names.
_FAMILIES = (exp.Binary, exp.Unary, exp.Func, exp.SubqueryPredicate)
_NAMES = """Alias Aliases AtTimeZone Between BitString Boolean Bracket ByteString CTE Case Cast
Collate Column ColumnDef ColumnPosition Comprehension Cube DataType DataTypeParam Distinct Except
Exists Fetch Filter FormatJson FormatPhrase From FromTimeZone Glob Group GroupingSets Having
HavingMax HexString Identifier If IgnoreNulls In IndexTableHint Intersect Interval IntervalOp
IntervalSpan Introducer JSONColumnDef JSONKeyValue JSONPath JSONPathFilter JSONPathKey
JSONPathPart JSONPathRecursive JSONPathRoot JSONPathScript JSONPathSelector JSONPathSlice
JSONPathSubscript JSONPathUnion JSONPathWildcard JSONSchema JSONValue Join Kwarg Lambda Lateral
Limit LimitOptions Literal National Null Offset OpenJSONColumnDef Operator Order Ordered Paren
Pivot PivotAlias PivotAny PropertyEQ Qualify RespectNulls Rollup Select Slice Star Subquery Table
TableAlias TableSample Tuple Union UnpivotColumns Unnest Values Var Where Window WindowSpec With
WithFill WithinGroup WithTableHint"""
_KINDS = frozenset(_NAMES.split())

_FORBIDDEN: tuple[type[exp.Expr], ...] = (
    exp.DML,
    exp.DDL,
    exp.Into,
    exp.Lock,
    exp.Command,
    exp.Returning,
    exp.Hint,
    exp.Placeholder,
    exp.Parameter,
    exp.SessionParameter,
    exp.NextValueFor,
)
# Each of these names a user, and is written without parentheses.
_PEOPLE = (exp.CurrentUser, exp.SessionUser)


def text_of(node: exp.Expr, dialect: str) -> str:
    """A part as SQL, for a message; its kind where sqlglot fails to write it."""
    try:
        return str(node.sql(dialect))
    except Exception:  # on nonsense sqlglot also fails by accident
        return str(node.key.upper())


def check(tree: exp.Expr, dialect: str) -> None:
    """Refuse any part of the tree that does more than read, or is not known to.

    Raises:
        Refused: such a part; the message names it.
    """
    if not isinstance(tree, QUERIES):
        raise Refused(f"{tree.key.upper()} is no query", "only reading is allowed: write SELECT")
    entries = 0
    for node in tree.walk():
        entries += isinstance(node, exp.CTE)
        if isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
            if isinstance(node, exp.Parameter) and dialect in ("postgres", "duckdb"):
                raise Refused(f"{text_of(node, dialect)!r} is not allowed", "write abs(x) for @ x")
            raise Refused(
                f"the parameter {text_of(node, dialect)!r} has no value", "write the value itself"
            )
        if isinstance(node, _FORBIDDEN) and not isinstance(node, QUERIES):
            raise Refused(
                f"{node.key.upper()} is not allowed", "only reading is allowed: write SELECT"
            )
        if isinstance(node, _PEOPLE) and dialect != "sqlite":
            raise Refused(f"{node.key.upper()} is not allowed", "read the tables' own columns")
        if type(node).__name__ not in _KINDS and not isinstance(node, _FAMILIES):
            raise Refused(f"{node.key.upper()} is not known to only read", "write a plain SELECT")
    if entries > MAX_WITH_ENTRIES:
        raise Refused(
            f"the statement has {entries:,} entries in WITH, more than {MAX_WITH_ENTRIES}",
            "write fewer steps",
        )
