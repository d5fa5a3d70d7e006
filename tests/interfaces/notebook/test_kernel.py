"""A notebook that is really executed, with a scripted model; and IPython's own printer."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.conftest import an_answer
from tests.interfaces.notebook.reader import read

CONNECT = """
import dbrag
from dbrag.models.testing import FunctionModel, HashEmbedder

sql = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city ORDER BY city"
db = dbrag.connect(
    "small shop.db", index="index", chat_model=FunctionModel(lambda prompt: sql),
    embedder=HashEmbedder(),
)
db.index()
"""
CELLS = (
    CONNECT,
    "answer = db.ask('How many customers has each city?')\nanswer",
    "db.search('customers')",
    "db.status()",
    "answer.to_arrow().to_pylist()",
)


def test_a_notebook(small_shop: Path) -> None:
    pytest.importorskip("ipykernel")
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    # The kernel belongs to nobody's history and settings.
    env = {**os.environ, "IPYTHONDIR": str(small_shop.parent / "ipython")}
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        startup_timeout=600,  # a busy machine
        kernel_name="python3",
        resources={"metadata": {"path": str(small_shop.parent)}},
    )
    client.execute(env=env)
    shown = [[one["data"] for one in cell.outputs if "data" in one] for cell in notebook.cells]
    assert all(len(one) == 1 for one in shown), notebook.cells
    (index,), (answer,), (search,), (status,), (rows,) = shown
    for one in (index, answer, search, status):
        assert set(one) == {"text/html", "text/plain"}
        read(one["text/html"])
    told = read(answer["text/html"])
    assert {"Lisbon", "Dublin"} <= set(told.cells)
    assert "GROUP BY" in told.text
    assert "tables: small shop.customers" in answer["text/plain"]
    assert "small shop.customers" in read(search["text/html"]).cells
    assert "indexed" in read(status["text/html"]).cells
    assert "'city': 'Dublin'" in rows["text/plain"]


def test_ipython_prints_lines_and_no_representation() -> None:
    pretty: Any = pytest.importorskip("IPython.lib.pretty")
    answer = an_answer(rows=300)
    out = io.StringIO()
    printer = pretty.RepresentationPrinter(out)
    printer.pretty(answer)
    printer.flush()
    assert "20 of 300 rows shown" in out.getvalue()
    assert "Execution(" not in out.getvalue()
    assert "2 of 3 programs" in pretty.pretty({"a": answer})
    assert pretty.pretty(answer.execution).startswith("name")
