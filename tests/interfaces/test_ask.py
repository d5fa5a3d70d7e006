"""``ask``, ``sql``, ``search``, ``index``, ``status``: what they call, and what they print."""

from __future__ import annotations

import io
import json
import sys

import pytest

from dbrag.models.testing import FunctionModel
from dbrag.types import AnswerWarning, Execution, ResultColumn
from tests.interfaces.conftest import an_answer

TRACE_START = '{"kind": "dbrag trace", "schema": 1'


def test_ask_for_people(cli, fake) -> None:
    fake.result = an_answer(warnings=(AnswerWarning("sampled_index", "saw half"),))
    done = cli("ask", "-s", "a.db", "how many?")
    assert done.code == 0
    assert done.out.splitlines() == [
        "name   n",
        "-----  -",
        "row 0  0",
        "row 1  1",
        "row 2  2",
        "3 rows",
        "",
        "tables: shop.orders",
        "agreement: 2 of 3 programs gave this result",
        "sql: SELECT name, COUNT(*) FROM orders GROUP BY name",
        "warning (sampled_index): saw half",
        "time: 1.50 s, 900 tokens read, 50 written, local:test",
    ]
    assert done.err == ""


def test_the_text_of_an_answer(cli, fake) -> None:
    fake.result = an_answer(text="row 0: 0")
    assert "3 rows\n\nrow 0: 0\n" in cli("ask", "-s", "a.db", "q").out
    fake.result = an_answer(text="3 rows.")
    assert cli("ask", "-s", "a.db", "q").out.count("3 rows") == 1


def test_ask_quiet(cli, fake) -> None:
    assert cli("ask", "-q", "-s", "a.db", "q").out.splitlines()[-1] == "3 rows"


def test_the_row_count_is_told_truthfully(cli, fake) -> None:
    fake.result = an_answer(rows=1203, max_rows=2)
    out = cli("ask", "-s", "a.db", "q").out
    assert "2 of 1,203 rows shown (--max-rows N for more)" in out
    assert "row 2" not in out
    value = cli("ask", "-s", "a.db", "q", "--json").json
    assert (value["row_count"], value["truncated"], len(value["rows"])) == (1203, True, 2)


def test_flags_reach_the_database(cli, fake) -> None:
    cli("ask", "-s", "a.db", "q", "--votes", "5", "--dry-run", "--max-rows", "9")
    call, arguments = fake.calls[0]
    assert call == "ask"
    assert (arguments["votes"], arguments["dry_run"], arguments["max_rows"]) == (5, True, 9)
    cli("sql", "-s", "a.db", "SELECT 1", "--max-rows", "0")
    assert fake.calls[1] == ("sql", {"statement": "SELECT 1", "max_rows": 0})
    cli("search", "-s", "a.db", "q", "--top", "3", "--k", "9", "--tables", "t", "--no-rerank")
    assert fake.calls[2][1] | {"on_event": None} == {
        "question": "q",
        "top": 3,
        "k": 9,
        "tables": ("t",),
        "exclude": (),
        "on_event": None,
        "rerank": False,
    }


def test_a_failed_answer_sets_the_exit_code(cli, fake) -> None:
    error = {"code": "unanswerable", "message": "no table speaks of 'x'", "hint": "dbrag status"}
    fake.result = an_answer(
        status="unanswerable",
        execution=None,
        program=None,
        tables=(),
        error=error,
        exit_code=4,
        agreement=None,
    )
    done = cli("ask", "-s", "a.db", "q")
    assert done.code == 4
    assert done.err == "error: no table speaks of 'x'\n  try: dbrag status\n"
    value = cli("ask", "-s", "a.db", "q", "--json")
    assert value.code == 4
    assert value.json["error"] == error


@pytest.mark.parametrize("command", ["ask", "sql", "search"])
@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_an_empty_question(cli, fake, command, text) -> None:
    done = cli(command, "-s", "a.db", text)
    assert done.code == 2
    assert "is empty" in done.err
    assert fake.calls == []


def test_the_question_from_standard_input(cli, fake, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("how many\norders?\n"))
    assert cli("ask", "-s", "a.db", "-", "--json").json["question"] == "how many\norders?\n"
    broken = io.TextIOWrapper(io.BytesIO(b"caf\xe9"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", broken)
    done = cli("ask", "-s", "a.db", "-")
    assert done.code == 2
    assert "not UTF-8" in done.err


def test_a_question_that_is_no_text(cli, fake) -> None:
    done = cli("ask", "-s", "a.db", "caf\udce9", "--json")
    assert done.code == 2
    assert "not valid UTF-8" in done.json["error"]["message"]


def test_sql_json_has_no_text_votes_tokens(cli, fake) -> None:
    value = cli("sql", "-s", "a.db", "SELECT 1", "--json").json
    assert not {"text", "votes", "tokens"} & set(value)
    assert value["row_count"] == 3
    assert "agreement" not in cli("sql", "-s", "a.db", "SELECT 1").out


def test_explain(cli, fake) -> None:
    out = cli("ask", "-s", "a.db", "q", "--explain").out
    assert "retrieve\n  candidates: table shop.orders, score 2.000" in out


def test_indexing_first_is_said(cli, fake) -> None:
    fake.events = ({"stage": "index", "sources": [{"name": "shop", "reason": "not indexed yet"}]},)
    for command in ("ask", "search"):
        done = cli(command, "-s", "a.db", "q")
        assert done.err == "indexing shop (not indexed yet) …\n"
        assert "indexing" not in cli(command, "-s", "a.db", "q", "-q").err
        assert "indexing" in cli(command, "-s", "a.db", "q", "--json").err


def test_many_stale_sources_are_one_line(cli, fake) -> None:
    sources = [{"name": f"s{i}", "reason": "changed"} for i in range(157)]
    fake.events = ({"stage": "index", "sources": sources},)
    err = cli("ask", "-s", "a.db", "q").err
    assert err == "indexing s0 (changed), s1 (changed), s2 (changed) and 154 more sources …\n"


def test_verbose_tells_the_stages(cli, fake) -> None:
    fake.events = ({"stage": "select", "tables": ["shop.orders"]},)
    assert "select\n  tables: shop.orders" in cli("ask", "-s", "a.db", "q", "-v").err


def test_a_remote_model_is_announced_once(cli, fake, monkeypatch) -> None:
    def load(spec: str, settings: object) -> FunctionModel:
        return FunctionModel(lambda _: "", name=spec, remote="ollama" not in spec)

    monkeypatch.setattr("dbrag.models.load.load_chat_model", load)

    def told(model: str, *flags: str) -> bool:
        return "leave this machine" in cli("ask", "-s", "a.db", "q", "--model", model, *flags).err

    assert told("openai:gpt", "-q")
    assert not told("openai:gpt")
    assert told("openai:other")
    monkeypatch.setattr(FunctionModel, "endpoint", "https://elsewhere.example", raising=False)
    assert told("openai:gpt")
    assert not told("openai:gpt")
    assert not told("ollama:on-this-machine")
    assert not told("local:qwen")


def test_search_for_people(cli, fake) -> None:
    done = cli("search", "-s", "a.db", "orders")
    assert done.out.splitlines() == [
        "   table        score  why",
        "-  -----------  -----  ------------",
        "1  shop.orders  1.250  name matches",
        "warning (source_skipped): bad.db was skipped",
    ]
    out = cli("search", "-s", "a.db", "orders", "--explain").out
    assert "shop.orders  1.250 = bm25 +1.000, join +0.250" in out
    assert "  value: name = x" in out
    assert "  row: name=x, n=1" in out
    assert cli("search", "-s", "a.db", "q", "--json").json["candidates"][0]["reason"]


def test_search_without_a_match(cli, fake) -> None:
    from dbrag.types import SearchResult

    fake.result = SearchResult("q", (), 0.0)
    assert cli("search", "-s", "a.db", "q").out == "no table matches\n"


def test_rerank_reaches_the_database(cli, fake) -> None:
    from dbrag.types import SearchResult

    cli("search", "-s", "a.db", "q")
    cli("search", "-s", "a.db", "q", "--rerank")
    cli("ask", "-s", "a.db", "q", "--no-rerank")
    assert [arguments["rerank"] for _, arguments in fake.calls] == [None, True, False]
    told = {
        "model": "local:m",
        "k": 12,
        "votes": 5,
        "valid": 4,
        "seconds": 2.0,
        "tokens": {"prompt": 1000, "cached": 0, "completion": 20},
        "left_out": {"tables": 3, "columns": 1960, "rows": 0},
    }
    fake.result = SearchResult("q", (), 0.0, rerank=told)
    assert "reranked by local:m among 12 tables: 4 of 5 orders valid, 1,020 tokens" in (
        out := cli("search", "-s", "a.db", "q").out
    )
    assert "left out of the prompt: 3 tables, 1,960 columns\n" in out
    assert cli("search", "-s", "a.db", "q", "--json").json["rerank"] == told


def test_chosen_tables_are_not_ordered(cli, fake) -> None:
    done = cli("ask", "-s", "a.db", "--rerank", "q", "--tables", "orders")
    assert done.code == 2
    assert "--rerank has nothing to order" in done.err
    assert cli("ask", "-s", "a.db", "--no-rerank", "q", "--tables", "orders").code == 0


def test_a_search_tells_of_a_remote_model_only_where_it_is_asked(cli, fake, monkeypatch) -> None:
    monkeypatch.setattr(
        "dbrag.models.load.load_chat_model",
        lambda spec, _: FunctionModel(lambda _: "", name=spec, remote=True),
    )
    far = ("-s", "a.db", "q", "--model", "openai:gpt-4o")
    assert "remote model" not in cli("search", *far, "--no-rerank").err
    assert "remote model" in cli("search", *far).err


def test_index(cli, fake) -> None:
    out = cli("index", "-s", "a.db", "--force").out.splitlines()
    assert out[2].split() == ["shop", "built", "4", "1203", "1000", "sampled"]
    assert out[3].split("  ")[-1].strip() == "not a database"
    assert out[-2:] == [
        "1 source unchanged",
        "done in 1.50 s, index 123.5 kB, peak memory 120 MB",
    ]
    assert fake.calls[0][1]["force"] is True
    assert cli("index", "-s", "a.db", "--json").json["sources"][0]["status"] == "built"


def test_drop(cli, fake) -> None:
    assert "no longer in the index" in cli("index", "-s", "a.db", "--drop", "shop").out
    assert fake.calls == [("drop", {"name": "shop"})]
    assert cli("index", "-s", "a.db", "--drop", "shop", "--json").json["dropped"] == "shop"


def test_status(cli, fake) -> None:
    out = cli("status", "-s", "a.db").out
    assert "index: /cache/index (123.5 kB)" in out
    assert "local:mini" in out
    assert "2 h ago" in out
    assert "sampled: orders" in out
    assert cli("status", "-s", "a.db", "--json").json["sources"][0]["name"] == "shop"


def test_status_before_the_first_index(cli, fake) -> None:
    fake.result = {
        "schema": 1,
        "index": "/cache/index",
        "exists": False,
        "bytes": 0,
        "encoder": None,
        "sources": [{"name": "shop", "location": "/shop.db", "status": "not indexed"}],
    }
    out = cli("status", "-s", "a.db").out
    assert "not built yet" in out
    assert "not indexed" in out


def test_exact_values_in_json(cli, fake) -> None:
    fake.result = an_answer(
        execution=Execution((ResultColumn("n", "int64"),), ((2**60,), (None,), (b"\x00",)), 0.0)
    )
    assert cli("ask", "-s", "a.db", "q", "--json").json["rows"] == [[str(2**60)], [None], ["AA=="]]


class TestTrace:
    """``--trace FILE``."""

    def test_it_is_written(self, cli, fake, tmp_path) -> None:
        fake.events = ({"stage": "index", "sources": [{"name": "a", "reason": "changed"}]},)
        path = tmp_path / "t.json"
        assert cli("ask", "-s", "a.db", "q", "--trace", path).code == 0
        assert path.read_text().startswith(TRACE_START)
        value = json.loads(path.read_text())
        assert [entry["stage"] for entry in value["trace"]] == ["index", "retrieve"]
        assert value["answer"]["status"] == "answered"
        assert cli("ask", "-s", "a.db", "again", "--trace", path).code == 0
        assert json.loads(path.read_text())["question"] == "again"
        assert [p.name for p in tmp_path.glob("*.json*")] == ["t.json"]
        assert not list(tmp_path.glob(".*"))

    def test_it_is_written_when_the_question_fails(self, cli, fake, tmp_path) -> None:
        from dbrag.errors import ModelError

        fake.events = ({"stage": "retrieve", "score": float("nan")},)
        fake.result = ModelError("no reply")
        path = tmp_path / "t.json"
        assert cli("ask", "-s", "a.db", "q", "--trace", path).code == 5
        value = json.loads(path.read_text())
        assert value["error"]["code"] == "model"
        assert value["trace"] == [{"stage": "retrieve", "score": "nan"}]

    @pytest.mark.parametrize("place", ["none/t.json", "file/t.json", "."])
    def test_an_unwritable_path(self, cli, fake, tmp_path, place) -> None:
        (tmp_path / "file").write_text("")
        done = cli("ask", "-s", "a.db", "q", "--trace", tmp_path / place)
        assert done.code == 2
        assert "cannot write the trace" in done.err
        assert fake.calls == []

    def test_nothing_else_is_overwritten(self, cli, fake, small_shop) -> None:
        before = small_shop.read_bytes()
        done = cli("ask", "-s", small_shop, "q", "--trace", small_shop)
        assert done.code == 2
        assert "is not a trace" in done.err
        assert small_shop.read_bytes() == before

    def test_a_device_stays_a_device(self, cli, fake) -> None:
        assert cli("ask", "-s", "a.db", "q", "--trace", "/dev/null").code == 0
        with open("/dev/null", "rb") as device:
            assert device.read() == b""


def test_status_tells_of_files(cli, fake) -> None:
    sources = [
        {
            "name": "d",
            "status": "indexed",
            "left_out": [{"location": "/d/x\x1b.csv", "reason": "is empty"}],
            "notes": [
                {"table": f"t{i}", "notes": ["quotes", "odd"], "odd": ["odd"] if i == 7 else []}
                for i in range(22)
            ],
        }
    ]
    fake.result = {"index": "/i", "exists": True, "sources": sources}
    text = cli("status", "-s", "d").out
    assert "left out:\n  /d/x\\x1b.csv: is empty\n" in text
    assert "how files were read:\n  d.t7: warning: odd; quotes\n" in text
    assert "  and 2 more (--json shows all)" in text


def test_status_tells_of_tables_that_were_not_read(cli, fake) -> None:
    source = {
        "name": "d",
        "status": "indexed",
        "sampled": ["big", "u"],
        "unread": ["u"],
        "broken": ["v", "w", "x", "y"],
    }
    fake.result = {"index": "/i", "exists": True, "sources": [source]}
    text = cli("status", "-s", "d").out
    assert "cannot be read: v, w, x and 1 more; known by columns only: u; sampled: big" in text
