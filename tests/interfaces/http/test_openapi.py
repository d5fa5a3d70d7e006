"""The OpenAPI document: good enough to generate a client."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.http.conftest import Served

DOCS = Path(__file__).parents[3] / "docs" / "api.md"
OPERATIONS = {
    "ask", "ask_stream", "cancel_job", "download_result", "drop_result", "forget_entry",
    "forget_history", "forget_learned", "get_chart", "get_entry", "get_job", "get_result",
    "get_rows", "get_samples", "get_source_rows", "get_table", "give_feedback", "health",
    "learn", "list_history", "list_jobs", "list_joins", "list_learned", "list_sources",
    "list_tables", "metrics", "ready", "run_sql", "search",
}  # fmt: skip


@pytest.fixture
def document(served: Served) -> dict[str, Any]:
    return served.get("/openapi.json").json()


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for methods in document["paths"].values() for one in methods.values()]


def test_operations_have_ids_summaries_and_descriptions(document: dict[str, Any]) -> None:
    found = operations(document)
    assert {one["operationId"] for one in found} == OPERATIONS
    assert len(found) == len(OPERATIONS)
    for one in found:
        assert one["summary"]
        assert one["description"].endswith(".")
        assert len(one["tags"]) == 1
        for parameter in one.get("parameters", []):
            assert "schema" in parameter


def test_every_failure_has_the_same_body(document: dict[str, Any]) -> None:
    for one in operations(document):
        failures = {status for status in one["responses"] if status >= "400"}
        assert {"400", "401", "403", "405", "421", "422", "429", "500", "503"} <= failures
        for status in failures:
            response = one["responses"][status]
            (kind,) = response["content"].values()
            assert kind["schema"] == {"$ref": "#/components/schemas/ErrorBody"}
        assert "Retry-After" in one["responses"]["429"]["headers"]
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_successes_are_described(document: dict[str, Any]) -> None:
    for one in operations(document):
        (status,) = [status for status in one["responses"] if status < "400"]
        content = one["responses"][status].get("content", {})
        if status == "204":
            assert not content
            continue
        assert content
        for media, value in content.items():
            if media == "application/json" and one["operationId"] != "download_result":
                assert "$ref" in value["schema"]


def test_shapes_have_descriptions_and_names_without_marks(document: dict[str, Any]) -> None:
    shapes = document["components"]["schemas"]
    for name, shape in shapes.items():
        assert re.fullmatch(r"[A-Za-z]+", name), name
        assert shape["description"], name
    assert shapes["TableId"]["properties"].keys() == {"source", "schema", "name"}
    assert "schema" in shapes["Answer"]["required"]


def test_the_token_is_declared(document: dict[str, Any]) -> None:
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert document["security"] == [{}, {"token": []}]
    assert document["paths"]["/api/v1/health"]["get"]["security"] == []


def test_references_lead_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert name in schemas


def test_every_address_is_in_the_documentation(document: dict[str, Any]) -> None:
    page = DOCS.read_text(encoding="utf-8")
    for path in document["paths"]:
        last = path.removeprefix("/api/v1").replace("{job_id}", "{id}")
        words = [part for part in re.sub(r"\{\w+\}", "{id}", last).split("/") if part != "{id}"]
        for word in filter(None, words):
            assert f"/{word}" in page, path


def test_every_code_of_a_failure_is_in_the_documentation() -> None:
    from dbrag.interfaces.http.errors import STATUS

    page = DOCS.read_text(encoding="utf-8")
    for code, status in STATUS.items():
        assert str(status) in page
        assert code in page or code in ("execution", "unanswerable"), code
