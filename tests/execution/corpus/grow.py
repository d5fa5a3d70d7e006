"""Statements nobody has written: the corpora cut up, mixed and disturbed."""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol, TypeVar

from tests.execution.corpus import honest, hostile

T = TypeVar("T")

_WORDS = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\w+|\s+|.", re.DOTALL)
_ODD = [
    "'",
    '"',
    "`",
    "''",
    "\\",
    "\\'",
    "--",
    "-- ",
    "#",
    "/*",
    "*/",
    "/*!",
    "/*!50000 ",
    "/*+ ",
    ";",
    "$$",
    "$a$",
    "E'",
    "U&'",
    "N'",
    "B'1'",
    "X'27'",
    "_utf8'",
    "_gbk'",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "@",
    "@@",
    ":=",
    "::",
    "?",
    ":a",
    "$1",
    "%s",
    "%",
    "\n",
    "\t",
    "\r",
    "\x0b",
    "\x00",
    "\xa0",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\u017f",
    "\u0130",
    "\xe9",
    "\u5317",
    "\\x27",
    "0x27",
    "1e",
    "1.",
    ".5",
    "->",
    "->>",
    "=>",
    "||",
    "&&",
    "<=>",
    "!~",
    "<<",
    "**",
    "//",
    "*",
    ".*",
    ",",
    ".",
    "-",
    "+",
    "=",
    "!",
    "~",
    "|",
    "&",
    "^",
]
# One of a line's parts, between bars.
_FRAGMENTS = r"""ssn|people|people.ssn|p.ssn|people.*|t.*|COUNT(*)|singer.name|INTO OUTFILE
FOR UPDATE
FOR SHARE
LOCK IN SHARE MODE|UNION SELECT ssn FROM people|UNION ALL|EXCEPT|AS ssn|AS people|FROM people p
JOIN people USING (ssn)|NATURAL JOIN people|, people|WHERE ssn = 'x'|ORDER BY ssn|GROUP BY ssn
HAVING ssn > ''|pg_sleep(1)|SLEEP(1)|pg_read_file('/etc/passwd')|LOAD_FILE('/etc/passwd')
read_text('/etc/passwd')|load_extension('x')|(name).pg_ls_dir|(people).ssn|row_to_json(people)
to_json(p)|COLUMNS(*)|* EXCLUDE (id)|#3|[ssn FOR x IN [1]]|lambda ssn: ssn|ssn -> '$'|::regclass
::text|::people|AS t(a, b, c)|FROM pg_shadow|FROM mysql.user|FROM sqlite_master
FROM duckdb_secrets()|FROM '/etc/passwd'|INTO x|RETURNING *|DELETE FROM singer
INSERT INTO singer VALUES (1)|UPDATE singer SET age = 1|DROP TABLE singer
set_config('a', 'b', false)|nextval('s')|CURRENT_USER|@@version|@x := 1|LATERAL|RECURSIVE
MATERIALIZED|PIVOT|UNPIVOT|QUALIFY|OVER ()|FILTER (WHERE true)|WITHIN GROUP (ORDER BY ssn)
COLLATE "C"|INTERVAL '1 day'|CAST(ssn AS TEXT)|TABLE people|(SELECT ssn FROM people)
(SELECT * FROM people)|EXISTS (SELECT ssn)|VALUES (ssn)|DEFAULT(ssn)|rowid|_rowid|ctid|xmin|NULL
IN people|MATCH (ssn) AGAINST ('x')|query('SELECT 1')|json_each(ssn)|unnest(p)|USING SAMPLE 5"""


class Choices(Protocol):
    """Where the choices come from: a seeded generator, hypothesis or a fuzzer."""

    def pick(self, n: int) -> int:
        """A whole number from 0 to n - 1."""
        ...


class Seeded:
    """Choices of a ``random.Random`` (also hypothesis's)."""

    def __init__(self, random: object) -> None:
        self._random = random

    def pick(self, n: int) -> int:
        """A whole number from 0 to n - 1."""
        return int(self._random.randint(0, n - 1))  # type: ignore[attr-defined]


@cache
def _bases(dialect: str) -> tuple[list[str], list[str], list[str], list[str]]:
    good = [sql for own, sql in honest() if own == dialect]
    bad = [sql for own, sql in hostile() if own == dialect]
    other = [sql for own, sql in honest() + hostile() if own != dialect]
    fragments = _FRAGMENTS.replace("\n", "|").split("|")
    return good, bad, other, fragments


def statement(choices: Choices, dialect: str) -> str:
    """A statement for ``dialect``: one of a corpus after up to six changes."""
    good, bad, other, _ = _bases(dialect)
    pool = (good, good, good, bad, other)[choices.pick(5)]
    words = _WORDS.findall(_one(choices, pool))
    for _ in range(choices.pick(7)):
        words = _changed(choices, dialect, words)
    text = "".join(words)
    if choices.pick(4) == 0:
        text = _wrapped(choices, text, _one(choices, good))
    return text


def _one(choices: Choices, pool: list[T]) -> T:
    return pool[choices.pick(len(pool))]


def _changed(choices: Choices, dialect: str, words: list[str]) -> list[str]:
    good, bad, _, fragments = _bases(dialect)
    place = choices.pick(len(words) + 1)
    match choices.pick(8):
        case 0:
            return [*words[:place], _one(choices, _ODD), *words[place:]]
        case 1:
            return [*words[:place], " ", _one(choices, fragments), " ", *words[place:]]
        case 2:
            return [*words[:place], *words[place + 1 + choices.pick(3) :]]
        case 3:
            donor = _WORDS.findall(_one(choices, good if choices.pick(2) else bad))
            start = choices.pick(len(donor) + 1)
            piece = donor[start : start + 1 + choices.pick(8)]
            return [*words[:place], *piece, *words[place + choices.pick(3) :]]
        case 4:
            names = [i for i, word in enumerate(words) if word[:1].isalpha()]
            if names:
                words = list(words)
                words[_one(choices, names)] = _one(choices, fragments)
            return words
        case 5:
            return [*words[:place], " /* ", _one(choices, _ODD), " */ ", *words[place:]]
        case 6:
            strings = [i for i, word in enumerate(words) if word[:1] == "'"]
            if strings:
                words = list(words)
                words[_one(choices, strings)] = f"'{_one(choices, _ODD)}{_one(choices, _ODD)}'"
            return words
        case _:
            piece = words[place : place + 1 + choices.pick(6)]
            return [*words[:place], *piece, *words[place:]]


def _wrapped(choices: Choices, text: str, other: str) -> str:
    patterns = [
        "SELECT * FROM ({}) AS w",
        "WITH w AS ({}) SELECT * FROM w",
        "SELECT 1 WHERE EXISTS ({})",
        "{} UNION {o}",
        "({}) UNION ALL ({o})",
        "SELECT ({})",
        "SELECT w.* FROM people p, LATERAL ({}) w",
        "{}; {o}",
        "SELECT name FROM people WHERE id IN ({})",
    ]
    return _one(choices, patterns).replace("{o}", other).replace("{}", text)
