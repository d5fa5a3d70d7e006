"""What the parts of a statement may be, beside their kinds: how many."""

from __future__ import annotations

import pytest

from dbrag.errors import Refused
from dbrag.execution.guard import admit
from dbrag.execution.parts import MAX_WITH_ENTRIES
from dbrag.types import Column, Table, TableRef

TABLE = Table(TableRef("shop", None, "t"), (Column("a", "int"),))


def chain(n: int) -> str:
    entries = ["a0 AS (SELECT a FROM t)"]
    entries += [f"a{i} AS (SELECT a FROM a{i - 1})" for i in range(1, n)]
    return f"WITH {', '.join(entries)} SELECT a FROM a{n - 1}"


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "duckdb"])
def test_a_chain_that_no_time_limit_ends_is_refused(dialect: str) -> None:
    assert admit(chain(MAX_WITH_ENTRIES), dialect, [TABLE]).tables == (TABLE.ref,)
    with pytest.raises(Refused, match="101 entries in WITH, more than 100"):
        admit(chain(MAX_WITH_ENTRIES + 1), dialect, [TABLE])
