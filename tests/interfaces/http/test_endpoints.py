"""Every endpoint on the demo shop: what it answers, and that it is as described."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbrag.database import Database
from dbrag.demo import QUESTIONS
from dbrag.errors import ModelError
from dbrag.interfaces.http import answers, shapes
from dbrag.types import Reading
from tests.interfaces.http.conftest import CITIES, Served, error, in_process, ok


def ask(served: Served, question: str = CITIES.question, **more: Any) -> dict[str, Any]:
    return ok(served.post("/ask", {"question": question, **more}), answers.Answer)


def test_health_readiness_and_metrics(served: Served) -> None:
    assert ok(served.get("/health"), shapes.Health)["status"] == "ok"
    assert ok(served.get("/ready"), shapes.Ready) == {"ready": True}
    ask(served)
    found = served.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain")
    lines = found.text.splitlines()
    assert 'dbrag_jobs_total{kind="ask",state="done"} 1.0' in lines
    assert 'dbrag_answers_total{status="answered"} 1.0' in lines
    assert "dbrag_ready 1.0" in lines
    assert 'dbrag_http_requests_total{method="POST",route="/api/v1/ask",status="200"} 1.0' in lines
    assert CITIES.question not in found.text


def test_sources_tables_samples_and_joins(served: Served) -> None:
    state = ok(served.get("/sources"), shapes.Sources)
    (shop,) = state["sources"]
    assert (shop["name"], shop["status"], shop["dialect"]) == ("shop", "indexed", "sqlite")
    assert (state["remote"], state["history"], state["learning"]) == (False, True, True)
    page = ok(served.get("/tables", params={"limit": 2, "offset": 1}), shapes.TableList)
    assert [line["text"] for line in page["tables"]] == ["shop.customers", "shop.gift cards"]
    assert page["total"] > 10
    assert page["tables"][0]["rows"] == 2000
    named = ok(served.get("/tables", params={"text": "ORDER", "source": "shop"}), shapes.TableList)
    assert {"shop.orders", "shop.order_lines"} <= {one["text"] for one in named["tables"]}
    error(served.get("/tables", params={"source": "none"}), 404, "source_not_found")
    orders = ok(served.get("/table", params={"table": "shop.orders"}), shapes.TableState)
    assert orders["primary_key"] == ["order_id"]
    assert "customers" in {key["target"]["name"] for key in orders["foreign_keys"]}
    assert orders["columns"][0]["profile"]["distinct"] == orders["rows"]
    rows = ok(served.get("/samples", params={"table": "orders"}), shapes.Samples)
    assert len(rows["rows"]) == 5
    assert all(len(row) == len(rows["columns"]) for row in rows["rows"])
    for path in ("/table", "/samples", "/joins"):
        told = error(served.get(path, params={"table": "order"}), 404, "table_not_found")
        assert "did you mean" in told["hint"]
    all_joins = ok(served.get("/joins"), shapes.Joins)
    declared = ok(served.get("/joins", params={"kind": "declared"}), shapes.Joins)
    of_two = ok(served.get("/joins?table=orders&table=stores&limit=1"), shapes.Joins)
    assert all(join["declared"] for join in declared["joins"])
    assert of_two["total"] < declared["total"] < all_joins["total"]
    assert len(of_two["joins"]) == 1


def test_search(served: Served) -> None:
    found = ok(
        served.post("/search", {"question": CITIES.question, "top": 3}), answers.SearchResult
    )
    assert found["candidates"][0]["table"]["name"] == "customers"
    assert len(found["candidates"]) == 3
    only = {"question": CITIES.question, "tables": ["orders"], "exclude": ["orders"]}
    assert "exclude" in error(served.post("/search", only), 400, "usage")["message"]
    assert not served.service.database.chat_model().prompts  # type: ignore[attr-defined]


def test_ask_gives_what_the_command_gives(
    served: Served, open_shop: Callable[..., Database]
) -> None:
    given = ask(served, max_rows=2)
    expected = open_shop().ask(CITIES.question, max_rows=2).to_dict()
    changing = ("seconds", "id", "tokens")
    assert {k: v for k, v in given.items() if k not in changing} == {
        k: v for k, v in expected.items() if k not in changing
    }
    assert (given["row_count"], len(given["rows"]), given["truncated"]) == (12, 2, True)


def test_ask_of_what_cannot_be_answered_is_no_failure_of_the_request(
    open_shop: Callable[..., Database],
) -> None:
    with in_process(open_shop(lambda _: "SELECT nothing FROM nowhere")) as served:
        answer = ask(served, votes=1)
        assert answer["status"] == "failed"
        assert answer["error"]["code"] == "unknown_name"
        error(served.get(f"/results/{answer['id']}"), 404, "result_not_found")


def test_ask_without_running(served: Served) -> None:
    answer = ask(served, dry_run=True)
    assert answer["sql"] == CITIES.sql
    assert answer["rows"] == []


def test_errors_of_the_model_and_the_sources(open_shop: Callable[..., Database]) -> None:
    def fails(_: object) -> str:
        raise ModelError("no memory", "close other programs")

    with in_process(open_shop(fails)) as served:
        told = error(served.post("/ask", {"question": CITIES.question}), 503, "model")
        assert told == {"code": "model", "message": "no memory", "hint": "close other programs"}
        told = error(served.post("/ask", {"question": "x", "tables": ["customer"]}), 400, "usage")
        assert "did you mean" in told["hint"]


def test_a_bug_is_told_without_its_words(
    open_shop: Callable[..., Database], log: io.StringIO
) -> None:
    def fails(_: object) -> str:
        raise ZeroDivisionError("".join(("a sec", "ret value")))

    with in_process(open_shop(fails)) as served:
        response = served.post("/ask", {"question": CITIES.question})
        told = error(response, 500, "bug")
    assert "ZeroDivisionError" in told["message"]
    assert response.headers["x-request-id"] in told["hint"]
    assert "secret" not in response.text + log.getvalue()
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (bug,) = [line for line in lines if line["event"] == "bug"]
    assert bug["request"] == response.headers["x-request-id"]
    assert "in fails" in bug["traceback"]


def test_sql_is_guarded(served: Served) -> None:
    value = ok(
        served.post("/sql", {"sql": "SELECT COUNT(*) FROM orders", "max_rows": 1}),
        answers.SqlAnswer,
    )
    assert value["rows"] == [[9000]]
    assert "votes" not in value
    for statement, code in (
        ("DELETE FROM orders", "refused"),
        ("SELECT 1; SELECT 2", "refused"),
        ("SELECT nothing FROM orders", "unknown_name"),
        ("SELECT * FROM nothing", "unknown_name"),
    ):
        error(served.post("/sql", {"sql": statement}), 422, code)
    error(served.post("/sql", {"sql": "SELECT 1", "source": "none"}), 404, "source_not_found")
    assert ok(served.post("/sql", {"sql": "SELECT 1", "source": "shop"}))["rows"] == [[1]]


def test_results_as_pages_and_files(served: Served) -> None:
    answer = ask(served, max_rows=0)
    again = ok(served.get(f"/results/{answer['id']}", params={"max_rows": 5}), answers.Answer)
    assert len(again["rows"]) == 5
    page = ok(
        served.get(f"/results/{answer['id']}/rows", params={"offset": 10, "limit": 5}),
        answers.Page,
    )
    assert (len(page["rows"]), page["offset"], page["row_count"]) == (2, 10, 12)
    files = {
        name: served.get(f"/results/{answer['id']}/file", params={"format": name})
        for name in ("csv", "json", "parquet")
    }
    for name, response in files.items():
        assert response.status_code == 200
        expected = f'attachment; filename="dbrag-{answer["id"]}.{name}"'
        assert response.headers["content-disposition"] == expected
    table = pq.read_table(io.BytesIO(files["parquet"].content))
    assert table.num_rows == 12
    rows = list(csv.reader(files["csv"].text.splitlines()))
    assert len(rows) == 13
    assert files["json"].json()["rows"] == [[a, int(b)] for a, b in rows[1:]]
    told = error(served.get(f"/results/{answer['id']}/rows?reading=0"), 400, "usage")
    assert "0 other readings" in told["message"]
    assert served.delete(f"/results/{answer['id']}").status_code == 204
    error(served.get(f"/results/{answer['id']}/file"), 404, "result_not_found")


def test_source_rows_behind_a_cell(served: Served) -> None:
    answer = ask(served)
    behind = ok(
        served.get(f"/results/{answer['id']}/source-rows", params={"row": 0, "limit": 3}),
        answers.SqlAnswer,
    )
    assert len(behind["rows"]) == 3
    assert "Amsterdam" in behind["rows"][0]
    error(served.get(f"/results/{answer['id']}/source-rows?row=99"), 400, "usage")


def test_source_rows_behind_a_cell_of_a_reading(served: Served) -> None:
    one = served.service.database.sql("SELECT city, COUNT(*) AS n FROM customers GROUP BY city")
    other = served.service.database.sql("SELECT COUNT(*) AS n FROM stores WHERE store_id < 3")
    reading = Reading("2", "reads shop.stores", other.program, other.execution, 1)
    served.service.results.keep("kept-answer", replace(one, readings=(reading,)))
    path = "/results/kept-answer/source-rows"
    behind = ok(served.get(path, params={"reading": 0, "column": 0}), answers.SqlAnswer)
    assert behind["tables"][0]["name"] == "stores"
    assert behind["row_count"] == 2
    assert "customers" in ok(served.get(path, params={"row": 1, "limit": 2}))["sql"]
    told = error(served.get(path, params={"reading": 1}), 400, "usage")
    assert "1 other readings" in told["message"]


def test_old_results_make_place(open_shop: Callable[..., Database]) -> None:
    with in_process(open_shop(), results=2) as served:
        ids = [ok(served.post("/sql", {"sql": f"SELECT {i}"}))["id"] for i in range(3)]
        error(served.get(f"/results/{ids[0]}"), 404, "result_not_found")
        assert ok(served.get(f"/results/{ids[2]}"))["rows"] == [[2]]


def test_feedback_becomes_a_learned_pair(served: Served, tmp_path: Path) -> None:
    right = ask(served)
    value = ok(served.post("/feedback", {"id": right["id"], "verdict": "right"}), shapes.Feedback)
    assert value["learned"]["sql"] == CITIES.sql
    assert CITIES.question in (tmp_path / "learned.sql").read_text()
    again = ask(served)
    assert again["model"] is None
    noted = ok(served.post("/feedback", {"id": again["id"], "verdict": "wrong"}), shapes.Feedback)
    assert noted["learned"] is None
    assert "correct or forget it" in noted["note"]
    better = CITIES.sql + " ORDER BY 2 DESC"
    body = {"id": again["id"], "verdict": "wrong", "sql": better}
    assert ok(served.post("/feedback", body), shapes.Feedback)["learned"]["replaced"] is True
    assert ask(served)["rows"][0] == ["Lisbon", 561]
    (pair,) = ok(served.get("/learned"), shapes.LearnedPairs)["pairs"]
    assert (pair["sql"], pair["problem"]) == (better, None)
    gone = served.delete("/learned", params={"question": CITIES.question.upper()})
    assert ok(gone, shapes.Forgotten) == {"forgotten": 1}
    again = served.delete("/learned", params={"question": CITIES.question})
    error(again, 404, "pair_not_found")
    found = ok(served.get("/history"), shapes.Entries)["entries"]
    assert [entry["verdict"] for entry in found] == [None, "wrong", "right"]


def test_pairs_are_kept_and_corrected(served: Served, tmp_path: Path) -> None:
    body = {"question": CITIES.question, "sql": CITIES.sql}
    first = ok(served.post("/learned", body), shapes.LearnedNow)
    assert (first["replaced"], first["source"], first["row_count"]) == (False, "shop", 12)
    better = CITIES.sql + " ORDER BY 2 DESC"
    body |= {"sql": better, "source": "shop"}
    assert ok(served.post("/learned", body), shapes.LearnedNow)["replaced"] is True
    (pair,) = ok(served.get("/learned"), shapes.LearnedPairs)["pairs"]
    assert pair["sql"] == better
    assert ask(served)["rows"][0] == ["Lisbon", 561]
    before = (tmp_path / "learned.sql").read_bytes()
    error(served.post("/learned", body | {"sql": "DELETE FROM customers"}), 422, "refused")
    error(served.post("/learned", body | {"sql": "SELECT nme FROM customers"}), 422, "unknown_name")
    error(served.post("/learned", body | {"source": "nowhere"}), 404, "source_not_found")
    error(served.post("/learned", body | {"question": " "}), 422, "invalid")
    error(served.post("/learned", body | {"verdict": "right"}), 422, "invalid")
    assert (tmp_path / "learned.sql").read_bytes() == before


def test_feedback_that_cannot_be_taken(served: Served, tmp_path: Path) -> None:
    error(
        served.post("/feedback", {"id": "unknown-id", "verdict": "right"}), 404, "entry_not_found"
    )
    answer = ask(served)
    bad = {"id": answer["id"], "verdict": "wrong", "sql": "DROP TABLE orders"}
    error(served.post("/feedback", bad), 422, "refused")
    both = {"id": answer["id"], "verdict": "right", "sql": "SELECT 1"}
    error(served.post("/feedback", both), 422, "invalid")
    statement = ok(served.post("/sql", {"sql": "SELECT 1"}))
    error(served.post("/feedback", {"id": statement["id"], "verdict": "right"}), 400, "usage")
    assert not (tmp_path / "learned.sql").exists()


def test_feedback_where_learning_is_off(open_shop: Callable[..., Database]) -> None:
    with in_process(open_shop(learned="off")) as served:
        assert ok(served.get("/sources"))["learning"] is False
        answer = ask(served)
        told = error(
            served.post("/feedback", {"id": answer["id"], "verdict": "right"}), 400, "usage"
        )
        assert "off" in told["message"]


def test_history_holds_no_values(served: Served) -> None:
    answer = ask(served, QUESTIONS[3].question)
    ok(served.post("/sql", {"sql": "SELECT city FROM customers"}))
    page = ok(served.get("/history"), shapes.Entries)
    assert [entry["kind"] for entry in page["entries"]] == ["sql", "ask"]
    (value,) = answer["rows"][0]
    assert str(value) not in json.dumps(page)
    (entry,) = ok(served.get("/history", params={"text": "STAFF"}), shapes.Entries)["entries"]
    assert entry["id"] == answer["id"]
    assert ok(served.get(f"/history/{answer['id']}"), shapes.Entry)["row_count"] == 1
    assert served.delete(f"/history/{answer['id']}").status_code == 204
    error(served.get(f"/history/{answer['id']}"), 404, "entry_not_found")
    error(served.get(f"/results/{answer['id']}"), 404, "result_not_found")
    assert served.delete("/history").status_code == 204
    assert ok(served.get("/history"))["total"] == 0


def test_without_a_history(open_shop: Callable[..., Database]) -> None:
    with in_process(open_shop(), history=0) as served:
        answer = ask(served)
        assert ok(served.get("/history"))["total"] == 0
        assert ok(served.get(f"/results/{answer['id']}"))["row_count"] == 12
        error(
            served.post("/feedback", {"id": answer["id"], "verdict": "right"}),
            404,
            "entry_not_found",
        )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/ask", {}),
        ("/ask", {"question": ""}),
        ("/ask", {"question": "  \n"}),
        ("/ask", {"question": "x" * 20_001}),
        ("/ask", {"question": "\ud800"}),
        ("/ask", {"question": 5}),
        ("/ask", {"question": "x", "votes": 0}),
        ("/ask", {"question": "x", "votes": "3"}),
        ("/ask", {"question": "x", "unknown": 1}),
        ("/ask", {"question": "x", "rerank": True, "tables": ["orders"]}),
        ("/ask", {"question": "x", "id": "a b"}),
        ("/ask", ["question"]),
        ("/ask", None),
        ("/search", {"question": "x", "top": 0}),
        ("/sql", {"sql": ""}),
        ("/feedback", {"id": "12345678", "verdict": "maybe"}),
    ],
)
def test_requests_that_are_not_as_described(served: Served, path: str, body: Any) -> None:
    content = json.dumps(body).encode()  # as \ud800 where it is half a character
    response = served.http.post(
        f"/api/v1{path}", content=content, headers={"content-type": "application/json"}
    )
    told = error(response, 422, "invalid")
    assert told["message"]
    assert "x" * 100 not in response.text


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"question": NaN}', b""])
def test_bodies_that_are_no_json(served: Served, content: bytes) -> None:
    response = served.http.post(
        "/api/v1/ask", content=content, headers={"content-type": "application/json"}
    )
    assert response.status_code in (400, 422)
    assert response.json()["error"]["code"] in ("invalid", "http")


def test_unknown_addresses_and_methods(served: Served) -> None:
    error(served.get("/nothing"), 404, "not_found")
    error(served.http.get("/docs"), 404, "not_found")
    response = served.get("/ask")
    error(response, 405, "method")
    assert response.headers["allow"] == "POST"
    response = served.http.put("/api/v1/history/12345678")
    error(response, 405, "method")
    assert response.headers["allow"] == "DELETE, GET"
    error(served.get("/jobs/not-known-id"), 404, "job_not_found")
    error(served.get("/jobs/short"), 422, "invalid")


def test_an_id_is_used_once(served: Served) -> None:
    assert ask(served, id="my-own-id")["id"] == "my-own-id"
    assert ok(served.get("/jobs/my-own-id"), shapes.JobState)["state"] == "done"
    told = error(
        served.post("/ask", {"question": CITIES.question, "id": "my-own-id"}), 400, "usage"
    )
    assert "in use" in told["message"]
