"""Which of a user's own functions in PostgreSQL only compute."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbrag.sources.base import SHADOWED
from dbrag.sources.servers.postgresql_catalog import READ_SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

# Everything callable, with the definition of what may turn out to only compute: written in
# SQL or PL/pgSQL, immutable or stable (PostgreSQL then lets it write nothing), with the
# caller's rights, giving one value. "bad": calling it may do more than compute.
_FUNCTIONS = f"""
SELECT lower(p.proname),
    p.provolatile = 'v' OR p.prosecdef AS bad,
    p.prokind = 'f' AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid
        AND d.deptype = 'e') AS shadows,
    CASE WHEN p.prokind = 'f' AND p.provolatile IN ('i', 's') AND NOT p.prosecdef
        AND NOT p.proretset AND l.lanname IN ('sql', 'plpgsql') AND {READ_SCHEMAS}
        AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')
        THEN pg_get_functiondef(p.oid) END
FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
"""

_SYSTEM = """
SELECT DISTINCT lower(p.proname) FROM pg_catalog.pg_proc p
WHERE p.pronamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    AND lower(p.proname) = ANY (%s)
"""

# Statements put together from texts, and what the server offers beside computing.
_SUSPECT = re.compile(
    r"\b(execute|copy|notify|listen|do|call|set_config|nextval|setval|lastval|currval"
    r"|dblink\w*|lo_\w+|pg_\w+|txid_\w+|inet_(client|server)_\w+|current_setting"
    r"|\w+_to_xml\w*|has_\w+_privilege|ts_stat|ts_rewrite)\b",
    re.IGNORECASE,
)
_BODY = re.compile(r"\bAS \$(\w*)\$(.*)\$\1\$|\b(?:RETURN|BEGIN ATOMIC)\b(.*)", re.DOTALL)


def functions(raw: Connection[Any], schemas: Sequence[str]) -> frozenset[str]:
    """The names of functions that only compute, folded.

    A statement calls by name, so all functions of a name must only compute, and the server
    itself must have none of it. One that calls a function which may do more is not among
    them either. A built-in function stands there as ``SHADOWED`` if the user has one of its
    name that may do more (extensions only add kinds of arguments).
    """
    rows = raw.execute(_FUNCTIONS, {"schemas": list(schemas)}).fetchall()
    bodies: dict[str, list[str]] = {}
    refused, bad, shadows = set(), set(), set()
    for name, may_do_more, users_own, definition in rows:
        if definition is None or _SUSPECT.search(_body(definition)):
            refused.add(name)
            if may_do_more or definition is not None:
                bad.add(name)
                if users_own:
                    shadows.add(name)
        else:
            bodies.setdefault(name, []).append(_body(definition))
    good = {name: texts for name, texts in bodies.items() if name not in refused}
    system = {name for (name,) in raw.execute(_SYSTEM, (list(good),))}
    left = {name: " ".join(texts).lower() for name, texts in good.items() if name not in system}
    while calling := {name for name, text in left.items() if _calls(text, bad)}:
        bad |= calling
        left = {name: text for name, text in left.items() if name not in calling}
    shadowed = {SHADOWED + name for (name,) in raw.execute(_SYSTEM, (list(shadows),))}
    return frozenset(name.casefold() for name in left) | shadowed


def _calls(text: str, names: set[str]) -> bool:
    """True when one of the names stands in ``text``."""
    if names & set(re.findall(r"\w+", text)):
        return True
    return any(name in text for name in names if not re.fullmatch(r"\w+", name))


def _body(definition: str) -> str:
    """What a function does, without its name and the types of its arguments."""
    found = _BODY.search(definition)
    return (found[2] or found[3] or "") if found else definition
