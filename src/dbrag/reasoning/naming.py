"""The column naming hint: the columns of a result are named as SQL names them.

Benchmarks derived from SQL know the names that the gold query gave its columns, and their
metrics compare them. The paper tells its model so; it is a setting here (``naming_hint``).
"""

from __future__ import annotations

from dbrag.reasoning.names import identifier

NAMING_HINT = (
    "Name the columns of the result as SQL does. A column that is taken as it is keeps its own "
    "name, without that of its table. A number of rows is called count(*). Another aggregate is "
    "called count(x), sum(x), avg(x), min(x) or max(x), where x is the name of its column. Use "
    "no other names."
)


def naming_hint(dialect: str) -> str:
    """The hint for a model that writes SQL of that dialect."""
    name = identifier("count(*)", dialect)
    return f"{NAMING_HINT} Give such a name as a quoted alias: COUNT(*) AS {name}."
