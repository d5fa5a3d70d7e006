"""Single words as the engine will read them: one safe spelling for each kind.

A string is written so that it has the same value whatever the engine's settings are, an
operator so that it cannot grow together with its neighbour, a number and a bare word
only if it is nothing else. What has no safe spelling is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from dbrag.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

    from dbrag.execution.dialects import Rules

_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_HEX = re.compile(r"(?:0x[0-9a-fA-F]+|[xX]'(?:[0-9a-fA-F]{2})*')\Z")
_BITS = re.compile(r"(?:0b[01]+|[bB]'[01]*')\Z")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*\Z")
_INTRODUCERS = frozenset({"_utf8", "_utf8mb3", "_utf8mb4", "_latin1", "_binary", "_ascii"})
_PUNCTUATION = frozenset("(),.[]:")
_OPERATORS = {
    "": "+ - * / % = < > <= >= <> != || ::",
    "postgres": "+ - * / % ^ = < > <= >= <> != || :: -> ->> #> #>> #- @> <@ ? ?| ?& @@ @? ~"
    " ~* !~ !~* ~~ !~~ ~~* !~~* && & | # << >> <-> <=> <#> |/ ||/ -|- &< &> <<= >>= <<| |>> ^@ =>",
    "mysql": "+ - * / % = < > <= >= <> != || && & | ^ ~ << >> <=> -> ->> !",
    "duckdb": "+ - * / // % ** ^ = == < > <= >= <> != || :: -> ->> && & | ~ << >> @> <@ { } :="
    " => ^@ ~~ !~~ <->",
    "snowflake": "+ - * / % = < > <= >= <> != || :: :",
    "clickhouse": "+ - * / % = == < > <= >= <> != || :: -> { }",
}
_ALLOWED = {name: frozenset(signs.split()) for name, signs in _OPERATORS.items()}
_SIGNS = frozenset("+-*/%^=<>!|&#@~?:")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
_E_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_STRINGS = frozenset(
    {
        TokenType.STRING,
        TokenType.NATIONAL_STRING,
        TokenType.HEREDOC_STRING,
        TokenType.BYTE_STRING,
    }
)


def glued(sql: str, tokens: Sequence[Token], rules: Rules) -> list[tuple[int, int, str]]:
    """Operators that sqlglot reads as several (``!~``, ``>>``): (first, last token, sign)."""
    allowed = _ALLOWED.get(rules.name, _ALLOWED[""])
    found = []
    i = 0
    while i < len(tokens) - 1:
        j = i
        while (
            j + 1 < len(tokens)
            and tokens[j].end + 1 == tokens[j + 1].start
            and _is_sign(tokens[j])
            and _is_sign(tokens[j + 1])
        ):
            j += 1
        for last in range(j, i, -1):
            sign = sql[tokens[i].start : tokens[last].end + 1]
            if sign in allowed:
                found.append((i, last, sign))
                i = last
                break
        i += 1
    return found


def _is_sign(token: Token) -> bool:
    return bool(token.text) and set(token.text) <= _SIGNS


def written(sql: str, token: Token, rules: Rules) -> str:
    """A word in its safe spelling.

    Raises:
        Refused: it has none.
    """
    raw = sql[token.start : token.end + 1]
    kind = token.token_type
    if kind in _STRINGS:
        return literal(value_of(raw, token, rules), rules, raw)
    if kind is TokenType.IDENTIFIER:
        if "\0" in token.text or not token.text:
            raise Refused("a name is empty", "name the column")
        if not rules.quote_doubled and (rules.quote[1] in token.text or "\\" in token.text):
            raise Refused(f"the name {raw[:40]!r} is not sure in {rules.name}", "rename it")
        return rules.quoted(token.text)
    if kind is TokenType.HEX_STRING and _HEX.match(raw) and rules.name != "duckdb":
        return raw
    if kind is TokenType.BIT_STRING and _BITS.match(raw):
        return raw
    if kind is TokenType.NUMBER and _NUMBER.match(token.text):
        return token.text
    if kind is TokenType.INTRODUCER:
        if token.text.lower() in _INTRODUCERS:
            return token.text
        raise Refused(f"the character set {token.text!r} is not allowed", "write '…'")
    text = " ".join(token.text.split())
    if text in _PUNCTUATION or text in _ALLOWED.get(rules.name, _ALLOWED[""]):
        return text
    if all(_WORD.match(word) for word in text.split(" ")) and text:
        return text
    if kind is TokenType.VAR and not any(c.isspace() or c == "\0" for c in text):
        return rules.quoted(rules.server_name(text, quoted=False))
    raise Refused(f"{raw[:40]!r} is not allowed in {rules.name}", "write plain SQL")


def value_of(raw: str, token: Token, rules: Rules) -> str:
    """The text a string means, decoded from its source (``raw``) by the engine's rules."""
    if rules.name == "mysql" and raw[-1:] in ("'", '"'):
        return _unescaped(raw[raw.index(raw[-1]) :], _ESCAPES, keep="%_")
    if token.token_type is TokenType.BYTE_STRING:
        if raw[:1] not in "eE" or rules.name not in ("postgres", "duckdb"):
            raise Refused(f"{raw[:40]!r} is not allowed in {rules.name}", "write '…'")
        return _unescaped(raw[1:], _E_ESCAPES, keep="")
    return token.text


def _unescaped(raw: str, escapes: dict[str, str], *, keep: str) -> str:
    """A quoted string with backslash escapes; ``keep``: characters that keep theirs."""
    quote, body = raw[0], raw[1:-1]
    parts: list[str] = []
    i = 0
    while i < len(body):
        character, following = body[i], body[i + 1 : i + 2]
        if character == "\\" and following:
            if not keep and following not in escapes and (following.isalnum()):
                raise Refused(f"the escape '\\{following}' is not allowed", "write the character")
            parts.append(("\\" if following in keep else "") + escapes.get(following, following))
            i += 2
        elif character == quote and following == quote:
            parts.append(quote)
            i += 2
        else:
            parts.append(character)
            i += 1
    return "".join(parts)


def literal(value: str, rules: Rules, raw: str = "") -> str:
    """A string of that value, whatever the engine's settings are.

    Raises:
        Refused: the dialect has no spelling that is sure.
    """
    if rules.name == "mysql" and ("\\" in value or "\0" in value):
        # With and without NO_BACKSLASH_ESCAPES the same.
        return f"_utf8mb4 x'{value.encode().hex()}'"
    if "\0" in value:
        raise Refused("a text holds the character NUL", "leave it out")
    if rules.quote_doubled is False and "'" in value:
        raise Refused(f"a quote in {raw[:40]!r} is not sure in {rules.name}", "leave it out")
    if rules.escapes and "\\" in value:
        raise Refused(f"a backslash in {raw[:40]!r} is not sure in {rules.name}", "leave it out")
    return "'" + value.replace("'", "''") + "'"


def apart(before: str, after: str) -> bool:
    """True when two words must not touch, or they would grow into one."""
    if _word(before[-1]) and _word(after[0]):
        return True
    if before[-1] in _SIGNS and after[0] in _SIGNS:
        return True
    if before[-1] in "uU" and after[0] == "&":
        return True  # U&"…" is one word in PostgreSQL
    number = before[-1] == "." and len(before) > 1
    return (number and after[0] not in ",)") or (after[0] == "." and len(after) > 1)


def _word(character: str) -> bool:
    return character.isalnum() or character in "_$'\"`"
