"""A statement as canonical text: its own words, comments gone, nothing left to hide in.

The guard judges sqlglot's tree. What runs is not the user's text but the very words
that tree was parsed from, each written anew: strings in single, names in double quotes,
one blank where there were blanks or comments. (sqlglot's own rendering of the tree would
not do: in SQLite ``CAST(a AS DECIMAL)``, ``mod(a, b)`` or ``+a`` come out as other
expressions with other results, and a result column is named by its expression's text.)
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from dbrag.errors import Refused
from dbrag.execution import lexis
from dbrag.execution.words import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

    from dbrag.execution.dialects import Rules

_OPENING = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN})
_FROM_FIRST = _OPENING | {TokenType.FROM}
_BEFORE_PART = frozenset(
    {
        TokenType.UNION,
        TokenType.INTERSECT,
        TokenType.EXCEPT,
        TokenType.ALL,
        TokenType.DISTINCT,
        TokenType.L_PAREN,
        TokenType.R_PAREN,
    }
)
_QUOTED = {TokenType.STRING: "'", TokenType.IDENTIFIER: '"'}
# Placeholders, and kinds of strings of other engines, which SQLite would read otherwise.
_STRANGE = frozenset(
    {
        TokenType.PLACEHOLDER,
        TokenType.PARAMETER,
        TokenType.NATIONAL_STRING,
        TokenType.RAW_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.UNICODE_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.SESSION_PARAMETER,
        TokenType.BLOCK_START,
        TokenType.BLOCK_END,
    }
)
_ANY_TEXT = _STRANGE | {TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR}
# Kinds of strings that have a plain spelling elsewhere.
_SPELLED: Mapping[str, frozenset[TokenType]] = {
    "postgres": frozenset(
        {
            TokenType.HEREDOC_STRING,
            TokenType.BIT_STRING,
            TokenType.BYTE_STRING,
            TokenType.PLACEHOLDER,
            TokenType.PARAMETER,
        }
    ),
    "mysql": frozenset({TokenType.NATIONAL_STRING, TokenType.BIT_STRING}),
    "duckdb": frozenset({TokenType.HEREDOC_STRING, TokenType.BYTE_STRING, TokenType.PARAMETER}),
}
# Words before a parenthesis that do not call a function.
_SYNTAX_WORDS = """all and any as between by case cross distinct else escape except exists filter
from full glob group having in inner intersect is join like limit match materialized natural not
null offset on or order outer over partition recursive select some then union using values when
where with end collate desc asc"""
_SYNTAX = frozenset(_SYNTAX_WORDS.split())
# Elsewhere only words that no function can be called without quotes, ...
_STRICT_WORDS = """all and as between case distinct else except exists from group having in
intersect interval is join lateral like limit not null on or order select then union using values
when where with cube rollup tablesample ilike qualify pivot unpivot array div mod xor rlike
regexp index key straight_join"""
_SYNTAX_STRICTLY = frozenset(_STRICT_WORDS.split())
# ... and those that stand behind certain others.
_COMPARISONS = frozenset({"=", "<", ">", "<>", "!=", "<=", ">=", "<=>", "like", "ilike"})
_BEHIND: Mapping[str, frozenset[str]] = {
    "over": frozenset({")", "nulls"}),
    "filter": frozenset({")"}),
    "against": frozenset({")"}),
    "repeatable": frozenset({")"}),
    "overlaps": frozenset({")"}),
    "materialized": frozenset({"as", "not"}),
    "any": _COMPARISONS,
    "some": _COMPARISONS,
    "bernoulli": frozenset({"tablesample"}),
    "system": frozenset({"tablesample"}),
    "exclude": frozenset({"*"}),
    "replace": frozenset({"*", ")"}),
    "rename": frozenset({"*", ")"}),
}
_BEFORE_TYPE = frozenset({TokenType.ALIAS, TokenType.DCOLON})


def tokenize(sql: str, dialect: str) -> list[Token]:
    """The words of exactly one query, without the semicolon at its end.

    Raises:
        Refused: it is empty, several statements, no query, or holds parameters.
    """
    try:
        tokens = list(Dialect.get_or_raise(dialect).tokenize(sql))
    except TokenError as error:
        raise Refused(
            f"the statement cannot be read: {one_line(error)}", "close every quote"
        ) from (error)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise Refused("the statement is empty", "write one SELECT")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise Refused("more than one statement", "write exactly one SELECT")
    if tokens[0].token_type not in (_FROM_FIRST if dialect == "duckdb" else _OPENING):
        raise Refused(
            f"a statement that starts with {tokens[0].text[:30]!r} is no query",
            "only reading is allowed: write one SELECT (or WITH … SELECT)",
        )
    strange = _STRANGE - _SPELLED.get(dialect, frozenset())
    for token in tokens:
        if token.token_type in strange:
            written = sql[token.start : token.end + 1]
            raise Refused(f"{written[:30]!r} has no value here", "write the value itself")
        if not token.text.isascii() and token.token_type not in _ANY_TEXT:
            # sqlglot takes ſELECT for SELECT, engines do not.
            raise Refused(f"{token.text[:30]!r} is no word of SQL", "write it in plain letters")
    if dialect != "sqlite":
        _check_gaps(sql, tokens)
    return tokens


def _check_gaps(sql: str, tokens: Sequence[Token]) -> None:
    """Refuse comments that are code to the engine: ``/*! … */``, ``/*+ … */``."""
    ends = [-1, *(token.end for token in tokens)]
    starts = [*(token.start for token in tokens), len(sql)]
    for end, start in zip(ends, starts, strict=True):
        gap = sql[end + 1 : start]
        if "/*!" in gap or "/*M!" in gap or "/*+" in gap:
            raise Refused(
                f"the comment {gap.strip()[:40]!r} is code to the server", "write plain SQL"
            )


def is_word(token: Token) -> bool:
    """True for what may name something: also ``_f`` and, in MySQL, ``1f`` and ``$f``."""
    return token.token_type in (TokenType.IDENTIFIER, TokenType.VAR) or (
        token.text[:1].isalpha() or token.text[:1] == "_"
    )


def called(
    tokens: Sequence[Token], not_calls: frozenset[int], *, strict: bool = False
) -> list[Token]:
    """The names of the functions a statement calls.

    Args:
        not_calls: where names start that are followed by a column list (``WITH t(a, b)``).
        strict: after AS only known types are no functions (not in SQLite, where any
            word is a type).
    """
    names = []
    before = None
    words = _SYNTAX_STRICTLY if strict else _SYNTAX
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        last = token.text.split()[-1].lower() if token.text.split() else ""
        opens = following is not None and following.token_type is TokenType.L_PAREN
        # After AS stands a type, CAST(x AS DECIMAL(10, 2)), never a function.
        typed = before is not None and before.token_type in _BEFORE_TYPE
        if strict and typed:
            typed = last in TYPES
        if strict and before is not None:
            behind = before.text.lower() in _BEHIND.get(last, ())
            # JSON_TABLE(x, '$[*]' COLUMNS (…))
            path = last == "columns" and before.token_type is TokenType.STRING
            last = "where" if behind or path or " " in token.text.strip() else last
        syntax = token.token_type is not TokenType.IDENTIFIER and last in words
        literal = token.token_type in (TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING)
        if (
            opens
            and is_word(token)
            and not (typed or syntax or literal or token.start in not_calls)
        ):
            names.append(token)
        before = token
    return names


def parenthesised_parts(tokens: Sequence[Token]) -> bool:
    """True when a whole query, or a part of a compound, may stand in parentheses.

    The tree alone does not tell: sqlglot also wraps what SQLite just reads from the left.
    """
    for i, token in enumerate(tokens[:-1]):
        opens = token.token_type is TokenType.L_PAREN and tokens[i + 1].token_type in _OPENING
        if opens and (i == 0 or tokens[i - 1].token_type in _BEFORE_PART):
            return True
    return False


def render(sql: str, tokens: Sequence[Token], edits: Mapping[int, str | None]) -> str:
    """The words joined again.

    Args:
        sql: the text ``tokens`` were read from.
        edits: by the start of a word: what stands there instead, None for nothing.
    """
    parts: list[str] = []
    end = -1
    for token in tokens:
        text = edits[token.start] if token.start in edits else _written(sql, token)
        if text is None:
            continue
        gap = token.start > end + 1
        # Two words must not grow into one, nor a word and a string: x"ab" is not x'ab'.
        grows = bool(parts) and _joins(parts[-1][-1]) and _joins(text[0])
        if parts and (gap or grows):
            parts.append(" ")
        parts.append(text)
        end = token.end
    return "".join(parts)


def render_strictly(
    sql: str, tokens: Sequence[Token], edits: Mapping[int, str | None], rules: Rules
) -> str:
    """``render`` for every engine but SQLite: each word in its one safe spelling.

    Raises:
        Refused: a word has none.
    """
    parts: list[str] = []
    signs = {first: (last, sign) for first, last, sign in lexis.glued(sql, tokens, rules)}
    calls = {token.start for token in called(tokens, frozenset(), strict=True)}
    end, skip_to, call = -1, -1, False
    for i, token in enumerate(tokens):
        if i <= skip_to:
            end = token.end
            continue
        if token.start in edits:
            text = edits[token.start]
        elif i in signs:
            skip_to, text = signs[i]
        else:
            text = lexis.written(sql, token, rules)
        if text is None:
            continue
        # MySQL knows count(…) but not count (…).
        gap = token.start > end + 1 and not (call and text == "(")
        if parts and (gap or lexis.apart(parts[-1], text)):
            parts.append(" ")
        parts.append(text)
        end, call = token.end, token.start in calls
    return "".join(parts)


def joined_strings(sql: str, tokens: Sequence[Token], rules: Rules) -> dict[int, str | None]:
    """PostgreSQL takes strings on two lines for one: written as one."""
    edits: dict[int, str | None] = {}
    first, value = None, ""
    for token, following in pairwise([*tokens, None]):
        if token is None or token.token_type is not TokenType.STRING:
            first = None
            continue
        value = value + token.text if first is not None else token.text
        first = first if first is not None else token
        if first is not token:
            edits[token.start] = None
            edits[first.start] = lexis.literal(value, rules)
        gap = sql[token.end + 1 : following.start] if following is not None else ""
        if "\n" not in gap or gap.strip():
            first = None
    return edits


def one_line(error: SqlglotError) -> str:
    """Where a parser's error is, without its excerpt of the statement."""
    details = getattr(error, "errors", None) or [{}]
    near, line, column = (details[0].get(key) for key in ("highlight", "line", "col"))
    if near and line:
        return f"syntax error near {near[:40]!r} (line {line}, column {column})"
    return " ".join(str(error).split())[:200]


def _joins(character: str) -> bool:
    return character.isalnum() or character in "_$'\""


def _written(sql: str, token: Token) -> str:
    quote = _QUOTED.get(token.token_type)
    if quote is not None:
        return quote + token.text.replace(quote, quote * 2) + quote
    if token.token_type is TokenType.HEX_STRING:
        return sql[token.start : token.end + 1]
    return " ".join(token.text.split())
