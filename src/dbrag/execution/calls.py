"""Which functions a statement calls, and which other words stand in it unquoted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dbrag.errors import Refused
from dbrag.execution.functions import ALLOWED, INSTEAD, TABLE_FUNCTIONS
from dbrag.execution.schema import nearest
from dbrag.execution.tokens import called, is_word
from dbrag.execution.words import words_of
from dbrag.sources.base import SHADOWED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

    from dbrag.execution.dialects import Rules

_NONE: frozenset[str] = frozenset()
_COUNTED: Mapping[str, type[exp.Expr]] = {
    "cube": exp.Cube,
    "rollup": exp.Rollup,
    "lateral": exp.Lateral,
}


def check_functions(
    tokens: Sequence[Token], tree: exp.Expr, rules: Rules, own: frozenset[str]
) -> None:
    """Refuse functions outside the allow-list, saying what to write instead.

    Args:
        own: the user's functions, folded, with or without their schema.

    Raises:
        Refused: such a function.
    """
    dialect = rules.name
    allowed = ALLOWED.get(dialect, _NONE) | TABLE_FUNCTIONS.get(dialect, {}).keys()
    strict = not rules.own_words
    places = {token.start: i for i, token in enumerate(tokens)}
    for token in called(tokens, _column_lists(tree), strict=strict):
        name = token.text
        prefix = _prefix(tokens, places[token.start]) if strict else ""
        if SHADOWED + name.casefold() in own and prefix.lower() != "pg_catalog":
            raise Refused(
                f"function {name!r} is not available: the database has one of its own of that "
                "name, which may do more than compute",
                f"write pg_catalog.{name}(…)",
            )
        if prefix:
            if _may_follow(prefix, name, rules, allowed, own):
                continue
        elif name.casefold() in own or (
            name.lower() in allowed and not _means_stored(token, rules)
        ):
            continue
        _refuse(name, rules, allowed)
    for word, kind in _COUNTED.items():
        # In some engines these words may also name a function.
        calls = sum(t.text.lower() == word and o.text == "(" for t, o in pairwise(tokens))
        known = 0 if word in rules.stored_words else sum(1 for _ in tree.find_all(kind))
        if strict and calls > known:
            _refuse(word, rules, _NONE)
    for number, opening in pairwise(tokens):
        # MySQL reads `week.5(x)` as the function `5` of the schema `week`.
        if number.token_type is TokenType.NUMBER and opening.token_type is TokenType.L_PAREN:
            _refuse(number.text, rules, _NONE)
    for dot, token in pairwise(tokens):
        if dot.token_type is TokenType.DOT and token.text.lower() == "columns":
            _refuse(token.text, rules, _NONE)  # t.COLUMNS('…') picks columns by their text
    if rules.own_words and tree.find(exp.RegexpLike) is not None:
        _refuse("REGEXP", rules, allowed)


def _column_lists(tree: exp.Expr) -> frozenset[int]:
    """Where names start that are followed by a list of columns: ``WITH t(a, b)``."""
    return frozenset(
        alias.this.meta.get("start", -1)
        for alias in tree.find_all(exp.TableAlias)
        if alias.this is not None
    )


def _prefix(tokens: Sequence[Token], i: int) -> str:
    """What stands before a function's name and a dot; "" if nothing does."""
    if i < 1 or tokens[i - 1].token_type is not TokenType.DOT:
        return ""
    return tokens[i - 2].text if i > 1 else "."


def _means_stored(token: Token, rules: Rules) -> bool:
    """To MySQL ```count`(x)`` is a stored function, whatever it does, before the built-in one."""
    return rules.name == "mysql" and token.token_type is TokenType.IDENTIFIER


def _may_follow(
    prefix: str, name: str, rules: Rules, allowed: frozenset[str], own: frozenset[str]
) -> bool:
    """A function with something before it: its schema, or in DuckDB its first argument."""
    if f"{prefix}.{name}".casefold() in own or name.casefold() in own:
        return True
    if rules.name == "postgres":
        return prefix.lower() == "pg_catalog" and name.lower() in allowed
    return rules.fields and (name.lower() in allowed or name.casefold() in own)


def _refuse(name: str, rules: Rules, allowed: frozenset[str]) -> None:
    instead = INSTEAD.get(rules.name, {}).get(name.lower())
    near = nearest(name, sorted(allowed), 2, 0.75)
    hint = f"write {instead}" if instead else "use the engine's built-in functions"
    if not instead and near:
        hint = f"did you mean {' or '.join(near)}?"
    raise Refused(f"function {name!r} is not available in {rules.name}", hint)


def check_words(
    tokens: Sequence[Token],
    tree: exp.Expr,
    rules: Rules,
    own: frozenset[str],
    types: frozenset[str],
) -> None:
    """Refuse words that are no name, no allowed function and no known word of a query.

    The second look, without trusting the tree: what sqlglot takes for an alias or skips,
    the engine may take for INTO, FOR UPDATE or a type whose cast looks something up.

    Args:
        own: the user's functions.
        types: words of the tables' own column types.

    Raises:
        Refused: such a word.
    """
    in_types = {
        id(node) for type_ in tree.find_all(exp.DataType) for node in type_.find_all(exp.Identifier)
    }
    names = {
        node.meta["start"]
        for node in tree.find_all(exp.Identifier)
        if "start" in node.meta and id(node) not in in_types
    }
    calls = {token.start for token in called(tokens, _column_lists(tree), strict=True)}
    words = words_of(rules.name) | types
    functions = ALLOWED.get(rules.name, _NONE) | own
    before = None
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        opens = following is not None and following.text == "("
        collation = before is not None and before.text.upper() == "COLLATE"
        schema = rules.name == "postgres" and token.text.lower() == "pg_catalog"
        known = token.start in names or token.start in calls or collation or schema
        before = token
        quoted = token.token_type is TokenType.IDENTIFIER
        if known or token.token_type in _LITERALS or not is_word(token):
            continue
        if quoted and token.text.casefold() in types:
            continue
        if opens and not quoted and token.text.lower() in functions:
            continue
        for word in token.text.lower().split():
            if quoted or word not in words:
                raise Refused(f"{token.text[:40]!r} is not allowed in a query", "leave it out")


_LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.INTRODUCER,
    }
)
