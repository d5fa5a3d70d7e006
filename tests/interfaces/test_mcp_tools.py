"""The tools and resources of ``dbrag mcp``, asked by the SDK's client over the demo shop."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.demo import write_demo
from dbrag.models.testing import FunctionModel
from tests.interfaces.mcp_bed import CITIES, MODES, QUESTION, connected, database, run

CUSTOMERS = "SELECT * FROM customers ORDER BY customer_id"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dbrag.Database]:
    folder = tmp_path_factory.mktemp("mcp")
    write_demo(folder / "shop.db")
    with database(folder / "shop.db", index=folder / "index") as db:
        db.index()
        yield db


@pytest.mark.parametrize("mode", MODES)
def test_the_tools_as_agents_see_them(shop: dbrag.Database, mode: str, snapshot: Any) -> None:
    async def work() -> None:
        async with connected(shop, mode) as (calls, _):
            tools = (await calls.client.list_tools()).tools
            assert {tool.name for tool in tools} == {
                "search_tables", "describe_table", "find_values", "run_query", "ask"
            }  # fmt: skip
            for tool in tools:
                assert tool.annotations.read_only_hint
                assert not tool.annotations.destructive_hint
                assert tool.input_schema["additionalProperties"] is False
                assert tool.output_schema["type"] == "object"
                assert len(tool.description) < 420
                for argument in tool.input_schema["properties"].values():
                    assert argument["description"]
            inputs = {t.name: [t.description, t.input_schema] for t in tools}
            assert json.dumps(inputs, indent=1, sort_keys=True) == snapshot

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_question_step_by_step(shop: dbrag.Database, mode: str) -> None:
    async def work() -> None:
        async with connected(shop, mode) as (calls, _):
            found, text = await calls.good("search_tables", question="customers in each city")
            assert found["tables"][0]["table"] == "shop.customers"
            assert "city" in found["tables"][0]["columns"]
            assert text.startswith("showing tables 1-5 of 15; next: offset=5\nshop.customers (")

            table, text = await calls.good("describe_table", table="gift cards")
            assert table["sql_name"] == '"gift cards"'
            assert "primary key: card_number" in text
            customers = [join["other"] for join in table["joins"]]
            assert "shop.customers" in customers

            values, text = await calls.good("find_values", text="Nordic Mills")
            first = values["values"][0]
            assert (first["table"], first["column"], first["value"]) == (
                "shop.suppliers", "name", "Nordic Mills",
            )  # fmt: skip
            assert first["how"] == "exact"
            assert "shop.suppliers.name: Nordic Mills (exact)" in text

            rows, text = await calls.good(
                "run_query", sql=f"SELECT COUNT(*) AS n FROM {table['sql_name']}", source="shop"
            )
            assert rows["rows"] == [[400]]
            assert text == "showing rows 1-1 of 1\nn\n400"
            assert rows["next_offset"] is None

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_ask(shop: dbrag.Database, mode: str) -> None:
    async def work() -> None:
        async with connected(shop, mode) as (calls, _):
            answer, text = await calls.good("ask", question=QUESTION, limit=5)
            assert answer["status"] == "answered"
            assert answer["sql"] == CITIES
            assert answer["agreement"] == 1.0
            assert 0 < answer["confidence"] < 1
            assert re.search(r"\nconfidence: (fairly |not )?sure \(\d+%\)", text)
            assert answer["result"]["row_count"] == 12
            assert len(answer["result"]["rows"]) == 5
            assert "showing rows 1-5 of 12; next: offset=5" in text
            assert "tables: shop.customers" in text
            numbers = [number for number, _ in calls.progress]
            assert numbers == sorted(set(numbers))
            assert "writing a program …" in [message for _, message in calls.progress]

            rest, _ = await calls.good("run_query", sql=answer["sql"], offset=5)
            assert rest["shown"] == "rows 6-12 of 12"
            assert rest["paging"].startswith("rows of the run at ")
            rows = answer["result"]["rows"] + rest["rows"]
            assert rows == sorted(rows)
            assert sum(count for _, count in rows) == 2000

    run(work())


def test_a_remote_model_is_told(shop: dbrag.Database) -> None:
    far = FunctionModel(lambda _: CITIES, name="far:model", remote=True)
    source = shop.sources[0].location

    async def work() -> None:
        with database(source, model=far, index=shop.index_dir, rerank="off") as db:
            async with connected(db) as (calls, _):
                answer, text = await calls.good("ask", question=QUESTION)
        warning = [one for one in answer["warnings"] if one["code"] == "remote_model"]
        assert len(warning) == 1
        assert "sent to far:model" in warning[0]["message"]
        assert "warning (remote_model): " in text

    run(work())


def test_what_leaves_the_machine_is_said_before_it_does(
    small_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbrag.interfaces.mcp import service as module

    order: list[str] = []
    monkeypatch.setattr(
        module, "tell_remote", lambda settings, *, chat: order.append(f"told, chat={chat}")
    )

    async def work() -> None:
        with database(small_shop) as db:
            index, ask = db.index, db.ask
            monkeypatch.setattr(db, "index", lambda *a, **k: [order.append("index"), index()][1])
            monkeypatch.setattr(db, "ask", lambda *a, **k: [order.append("ask"), ask(*a, **k)][1])
            async with connected(db) as (calls, _):
                await calls.good("describe_table", table="orders")
                await calls("ask", question="How many customers are there?")

    run(work())
    assert order == ["told, chat=False", "index", "told, chat=True", "ask"]


def test_the_description_of_ask_names_a_remote_model(shop: dbrag.Database) -> None:
    async def work() -> None:
        with database(shop.sources[0].location, index=shop.index_dir) as db:
            async with connected(db) as (calls, _):
                tools = {t.name: t for t in (await calls.client.list_tools()).tools}
                assert "Sends the question, the schema and sample values to openai:gpt-x." in (
                    tools["ask"].description
                )
                assert tools["ask"].annotations.open_world_hint
                assert not tools["run_query"].annotations.open_world_hint

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBRAG_MODEL", "openai:gpt-x")
        run(work())


def test_a_question_that_cannot_be_answered_is_an_error_with_what_is_known(
    shop: dbrag.Database,
) -> None:
    wrong = FunctionModel(lambda _: "SELECT nothing FROM customers")
    source = shop.sources[0].location

    async def work() -> None:
        with database(source, model=wrong, index=shop.index_dir) as db:
            async with connected(db) as (calls, _):
                result = await calls("ask", question=QUESTION)
        assert result.is_error
        answer = result.structured_content
        assert answer["status"] in ("failed", "unanswerable")
        assert answer["result"] is None
        start = f"{answer['status']} ({answer['error']['code']}): {answer['error']['message']}"
        assert result.content[0].text.startswith(start)

    run(work())


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("nothing", {}, "usage: there is no tool 'nothing'; there are search_tables, "),
        ("run_query", {}, "usage: the argument sql is missing"),
        (
            "run_query",
            {"sql": "SELECT 1", "limits": 3},
            "usage: run_query has no argument 'limits'",
        ),
        (
            "run_query",
            {"sql": "SELECT 1", "limit": "x"},
            "usage: limit: input should be a valid int",
        ),
        ("run_query", {"sql": "SELECT 1", "limit": 501}, "usage: limit: input should be less than"),
        ("run_query", {"sql": "SELECT 1", "offset": -1}, "usage: offset: input should be greater"),
        ("run_query", {"sql": "DELETE FROM customers"}, "refused: "),
        ("run_query", {"sql": "SELECT 1; DROP TABLE customers"}, "refused: "),
        ("run_query", {"sql": "SELECT nam FROM customers"}, "unknown_name: no such column: 'nam'"),
        (
            "run_query",
            {"sql": "SELECT 1", "source": "none"},
            "source_not_found: no source is named",
        ),
        ("run_query", {"sql": CUSTOMERS, "offset": 2000}, "usage: offset=2000 is behind the end"),
        ("describe_table", {"table": "ordres"}, "usage: there is no table 'ordres'\ntry: did you"),
        ("find_values", {"text": "x", "tables": ["no"]}, "usage: there is no table 'no'"),
        ("find_values", {"text": "  "}, "usage: the question is empty"),
        ("search_tables", {"question": ""}, "usage: the question is empty"),
        ("search_tables", {"question": "city", "offset": 999}, "usage: offset=999 is behind"),
        ("ask", {"question": "?", "tables": ["no"]}, "usage: there is no table 'no'"),
    ],
)
def test_errors_say_what_is_wrong(
    shop: dbrag.Database, tool: str, arguments: dict[str, Any], told: str
) -> None:
    async def work() -> None:
        async with connected(shop) as (calls, _):
            text = await calls.bad(tool, **arguments)
            assert text.startswith(told)
            assert "Error executing" not in text
            assert "--" not in text

    before = Path(shop.sources[0].location).read_bytes()
    run(work())
    assert Path(shop.sources[0].location).read_bytes() == before


def test_hints_name_tools_and_not_commands(shop: dbrag.Database) -> None:
    async def work() -> None:
        async with connected(shop) as (calls, _):
            text = await calls.bad("run_query", sql="SELECT nam FROM customers")
            assert text.endswith("\ntry: see the tables and columns: search_tables")

    run(work())


def test_a_bug_is_told_without_traceback_and_secrets(
    shop: dbrag.Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("cannot reach postgresql://me:hunter2secret@host/db")

    monkeypatch.setattr(shop, "sql", broken)

    async def work() -> None:
        async with connected(shop) as (calls, _):
            text = await calls.bad("run_query", sql="SELECT 1")
            assert text.startswith("bug: this is a bug in dbrag: RuntimeError: cannot reach post")
            assert "hunter2secret" not in text

    run(work())
    assert "Traceback" not in capsys.readouterr().err


def test_the_catalog_as_resources(shop: dbrag.Database) -> None:
    from mcp.shared.exceptions import MCPError
    from mcp_types import ResourceTemplateReference

    async def work() -> None:
        async with connected(shop) as (calls, _):
            client = calls.client
            listed = (await client.list_resources()).resources
            assert [str(one.uri) for one in listed] == ["dbrag://tables"]
            templates = (await client.list_resource_templates()).resource_templates
            assert {one.uri_template for one in templates} == {
                "dbrag://tables/{table}", "dbrag://tables{?offset}"
            }  # fmt: skip

            async def read(uri: str) -> dict[str, Any]:
                (content,) = (await client.read_resource(uri)).contents
                assert content.mime_type == "application/json"
                value: dict[str, Any] = json.loads(content.text)
                return value

            tables = await read("dbrag://tables")
            assert (tables["total"], tables["shown"], tables["next"]) == (
                15, "tables 1-15 of 15", None
            )  # fmt: skip
            assert (await read("dbrag://tables?offset=14"))["shown"] == "tables 15-15 of 15"
            for entry in tables["tables"]:
                table = await read(entry["uri"])
                assert table["table"] == entry["table"]
                described, _ = await calls.good("describe_table", table=entry["table"], limit=500)
                assert described == table
            for uri in (
                "dbrag://tables/none", "dbrag://tables/..%2F..%2Fetc%2Fpasswd", "dbrag://other",
                "dbrag://tables?offset=99", "dbrag://tables?offset=x", "file:///etc/passwd",
            ):  # fmt: skip
                with pytest.raises(MCPError) as error:
                    await client.read_resource(uri)
                assert "Error" not in str(error.value)

            argument = {"name": "table", "value": "SHOP.o"}
            reference = ResourceTemplateReference(uri="dbrag://tables/{table}")
            completion = (await client.complete(reference, argument)).completion
            assert completion.values == ["shop.order_lines", "shop.order_totals", "shop.orders"]

    run(work())


def test_long_lists_come_in_pages_without_gaps(
    shop: dbrag.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbrag.interfaces.mcp import catalog

    monkeypatch.setattr(catalog, "LISTED", 4)

    async def work() -> None:
        async with connected(shop) as (calls, _):
            for tool, key, arguments in (
                ("search_tables", "tables", {"question": "orders of customers"}),
                ("find_values", "values", {"text": "Nordic"}),
                ("describe_table", "columns", {"table": "orders"}),
            ):
                whole, _ = await calls.good(tool, limit=50, **arguments)
                pages, offset = [], 0
                while offset is not None:
                    page, text = await calls.good(tool, limit=3, offset=offset, **arguments)
                    assert page["shown"] in text
                    pages += page[key]
                    offset = page["next_offset"]
                assert pages == whole[key]
            uri, names = "dbrag://tables", []
            while uri is not None:
                (content,) = (await calls.client.read_resource(uri)).contents
                page = json.loads(content.text)
                names += [one["table"] for one in page["tables"]]
                uri = page["next"]
            assert len(names) == len(set(names)) == 15

    run(work())


def test_only_the_open_sources_are_shown(shop: dbrag.Database, tmp_path: Path) -> None:
    """The index holds others."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE suppliers (name TEXT)")
        connection.execute("INSERT INTO suppliers VALUES ('Nordic Mills')")
        connection.commit()
    index = tmp_path / "index"
    with database(shop.sources[0].location, other, index=index) as both:
        both.index()

    async def work() -> None:
        with database(other, index=index) as db:
            async with connected(db) as (calls, _):
                found, _ = await calls.good("search_tables", question="suppliers")
                assert [one["table"] for one in found["tables"]] == ["other.suppliers"]
                values, _ = await calls.good("find_values", text="Nordic Mills")
                assert [one["table"] for one in values["values"]] == ["other.suppliers"]
                assert "is not open" in await calls.bad("describe_table", table="shop.orders")
                (content,) = (await calls.client.read_resource("dbrag://tables")).contents
                assert json.loads(content.text)["total"] == 1

    run(work())
