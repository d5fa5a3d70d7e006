"""Programs: from a model's text to steps.

A program is a chain of SELECT steps, which run as one statement (``reasoning.chain``).
"""

from __future__ import annotations

import json
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.errors import ExecutionError
from dbrag.types import Step

LAST_STEP = "answer"

_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_LINE_START = re.compile(r"(?im)^[ \t(]*(?:select|with)\b")
_ANYWHERE = re.compile(r"(?i)\b(?:select|with)\b")
_WRITES = re.compile(
    r"(?im)(?:^|;)[ \t(]*(?:"
    r"(?:drop|truncate|alter|create(?:\s+or\s+replace)?)\s+"
    r"(?:(?:temp|temporary|unique|materialized|external|unlogged|virtual|user)\s+)*"
    r"(?:table|view|index|schema|database|trigger|function|role|sequence|extension|macro)\b"
    r"|delete\s+from\b|(?:insert(?:\s+or\s+\w+)?|replace|merge)\s+into\b|update\s+\S+\s+set\b"
    r"|(?:grant|revoke)\s[^\n]*\b(?:to|from|on)\b|copy\s+\S+\s+(?:to|from)\b|copy\s*\("
    r"|attach\s+(?:database\b|')|pragma\s+\w|vacuum\s*(?:;|\Z|into\b|full\b|analyze\b)"
    r"|call\s+\w+\s*\(|exec\s*\(|exec\s+\w|execute\s+immediate\b|load\s+(?:data\b|')"
    r"|(?:commit|rollback|begin)\s*(?:;|\Z)|do\s+\$|lock\s+tables?\b|set\s+\S+\s*="
    r"|explain\s+(?:analyze|verbose|query|select|with|delete|insert|update|\()"
    r")"
)
"""The start of a statement that is no query, at the start of a line or after a semicolon."""

_QUERY_AHEAD = r"(?=(?:```[a-z]*\s*)?\(*\s*(?:select|with)\b)"
_STEP_NAME = r"(?:step[ \t]*\d*[ \t]*[:.)-]*[ \t]+)?[\"`*\[]*(?P<name>[a-z_]\w{0,62})[\"`*\]]*"
_NAMED = re.compile(rf"(?im)^[ \t`*#>-]*{_STEP_NAME}[ \t]*[:=][ \t]*[*`]*\s*{_QUERY_AHEAD}")
"""``paid: SELECT …``, also with "Step 2:" before it, marks around it, a fence after it."""
_HEADED = re.compile(rf"(?im)^[ \t]*(?:--|#+)[ \t]*{_STEP_NAME}[ \t]*:?[ \t]*\n\s*{_QUERY_AHEAD}")
"""``-- paid`` on the line before."""
_ENTRY = re.compile(
    r"(?i)\s*(?:```[a-z]*\s*)?(?:with\s+)?(?P<entry>[\"`]?[a-z_]\w*[\"`]?\s+as\s*\()"
)
_FINE_NAME = re.compile(r"\w(?:[\w -]{0,61}\w)?")
_NO_NAMES = frozenset({"sql", "sqlite", "query", "statement", "step", "duckdb", "postgresql"})
"""Words before a colon that name no step."""
_DONE = re.compile(r"(?i)\W*done\b")

_BLANK_LINES = 30
"""In a statement, at most, where prose follows: each is tried as its end."""


def parse_reply(text: str, dialect: str) -> tuple[Step, ...]:
    """The steps in a model's reply: plain SQL, fenced SQL, or ``{"steps": [{name, sql}]}``.

    Top-level CTEs become steps of their own. Nothing is cut out of the middle of a
    statement: text before the first SELECT or WITH and after its end is dropped, unless it
    is another statement that does more than read: then all of it goes to the guard.

    Raises:
        ExecutionError: there is no statement in the reply.
    """
    steps = _json_steps(text)
    if steps:
        return steps
    statement = _statement(text, dialect)
    return split(statement, dialect)


def parse_step(text: str, dialect: str, unnamed: str) -> tuple[Step, ...]:
    """The step in a reply that was asked for ``name: SELECT …``; JSON may bring several.

    Also understood: the name as a comment or heading before the statement, and
    ``name AS (SELECT …)``. A WITH within the step stays in it.

    Args:
        unnamed: the step's name where the reply has none.

    Raises:
        ExecutionError: there is no statement in the reply.
    """
    steps = _json_steps(text)
    if steps:
        return tuple(
            step if _FINE_NAME.fullmatch(step.name) else Step(f"{unnamed}_{number}", step.sql)
            for number, step in enumerate(steps, 1)
        )
    alone = _ENTRY.match(text)
    if alone is not None:
        entry = _until_semicolon(text[alone.start("entry") :].split("```")[0].strip(), dialect)
        found = split(f"WITH {entry} SELECT 1", dialect)
        if len(found) == 2:
            return (Step(found[0].name, found[0].sql),)
    fenced = [block for block in _FENCE.findall(text) if _ANYWHERE.search(block)]
    named = None
    for body in (*fenced[:1], text):
        named = named or _NAMED.search(body) or _HEADED.search(body)
    if named is None:
        return (Step(unnamed, _statement(text, dialect)),)
    name = unnamed if named["name"].casefold() in _NO_NAMES else named["name"]
    return (Step(name, _statement(named.string[named.end() :], dialect)),)


def has_ended(text: str, dialect: str) -> bool:
    """Whether the statement in a reply is whole, though the reply was cut after it."""
    if _json_steps(text):
        return True
    found = _ANYWHERE.search(text)
    if found is None:
        return False
    fence = text.rfind("```", 0, found.start())
    if fence >= 0:
        return "```" in text[found.start() :]
    try:
        tokens = sqlglot.tokenize(text[found.start() :], dialect=dialect)
    except (SqlglotError, RecursionError):
        return False
    return any(token.token_type == sqlglot.TokenType.SEMICOLON for token in tokens)


def says_done(text: str) -> bool:
    """Whether a reply says that the last step is the answer, and no more."""
    return _DONE.match(text) is not None and re.search(r"(?i)\bselect\b", text) is None


def split(statement: str, dialect: str) -> tuple[Step, ...]:
    """One statement as steps: a step for each top-level CTE, and the last for the rest.

    Stays one step where the CTEs are recursive or rename their columns, and where the
    statement does not parse (the engine's or the guard's error is then the clearer one).
    """
    try:
        tree = sqlglot.parse_one(statement, dialect=dialect)
    except (SqlglotError, RecursionError):
        return (Step(LAST_STEP, statement),)
    with_ = tree.args.get("with_") or tree.args.get("with")
    if not isinstance(with_, exp.With) or with_.args.get("recursive"):
        return (Step(LAST_STEP, statement),)
    steps = []
    for cte in with_.expressions:
        alias = cte.args.get("alias")
        if alias is None or alias.columns:
            return (Step(LAST_STEP, statement),)
        steps.append(Step(cte.alias, cte.this.sql(dialect=dialect)))
    rest = tree.copy()
    (rest.args.get("with_") or rest.args["with"]).pop()
    return (*steps, Step(LAST_STEP, rest.sql(dialect=dialect)))


def _json_steps(text: str) -> tuple[Step, ...]:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end <= start or "sql" not in text[start:end]:
        return ()
    try:
        data = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return ()
    raw = data.get("steps") if isinstance(data, dict) else None
    if raw is None and isinstance(data, dict) and isinstance(data.get("sql"), str):
        raw = [data]
    if not isinstance(raw, list) or not raw:
        return ()
    steps = []
    for number, item in enumerate(raw, start=1):
        if not isinstance(item, dict) or not isinstance(item.get("sql"), str):
            return ()
        name = str(item.get("name") or f"step{number}")
        steps.append(Step(name, item["sql"].strip().rstrip(";")))
    return tuple(steps)


def _statement(text: str, dialect: str) -> str:
    fenced = [block for block in _FENCE.findall(text) if _ANYWHERE.search(block)]
    body = fenced[0] if fenced else text
    found = _LINE_START.search(body) or _ANYWHERE.search(body)
    if found is None:
        shown = " ".join(text.split())[:120]
        raise ExecutionError(f"the model wrote no SQL but {shown!r}")
    if _WRITES.search(body[: found.start()]):
        return body.strip()  # a query within something else: the guard refuses the whole
    return _until_semicolon(body[found.start() :].strip(), dialect)


def _until_semicolon(text: str, dialect: str) -> str:
    """Up to the first semicolon outside quotes; without one, up to a blank line that ends SQL."""
    try:
        tokens = sqlglot.tokenize(text, dialect=dialect)
    except (SqlglotError, RecursionError):
        return text
    for token in tokens:
        if token.token_type == sqlglot.TokenType.SEMICOLON:
            if _WRITES.search(text[token.end + 1 :]):
                return text  # several statements: the guard refuses them
            return text[: token.start].strip()
    parts = re.split(r"\n\s*\n", text)
    few = min(len(parts) - 1, _BLANK_LINES)
    for n in (len(parts), *range(few, 0, -1)):
        candidate = "\n".join(parts[:n]).strip()
        try:
            sqlglot.parse_one(candidate, dialect=dialect)
        except (SqlglotError, RecursionError):
            continue
        return candidate
    return text
