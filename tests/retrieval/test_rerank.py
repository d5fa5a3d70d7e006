"""Reranking over a real index with scripted models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dbrag
from dbrag.errors import InvalidReply, ModelError, PromptTooLong
from dbrag.models.base import Prompt, Reply
from dbrag.models.testing import FunctionModel, HashEmbedder, ScriptedModel
from dbrag.retrieval.auto import AUTO, is_wanted, on_by_default
from dbrag.retrieval.context import row_context
from dbrag.retrieval.replies import read_order
from dbrag.retrieval.rerank import FusionWeights, Reranked, Reranker, complete, fuse
from dbrag.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.index.store import Index
    from dbrag.types import Candidate

QUESTION = "Which customers from Lisbon bought Green Tea?"


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, list[Candidate]]]:
    """Eight tables in two files, ranked."""
    import sqlite3
    from contextlib import closing

    folder = tmp_path_factory.mktemp("rerank")
    scripts = {
        "shop": """
            CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, city TEXT);
            CREATE TABLE orders (order_id INTEGER PRIMARY KEY,
                customer_id INTEGER REFERENCES customers (customer_id));
            CREATE TABLE lines (order_id INTEGER REFERENCES orders (order_id), product TEXT);
            CREATE TABLE stores (store_id INTEGER PRIMARY KEY, city TEXT);
            INSERT INTO customers VALUES (1, 'Anna', 'Lisbon'), (2, 'Ben', 'Dublin'),
                (3, 'Cid', 'Porto');
            INSERT INTO orders VALUES (1, 1), (2, 2);
            INSERT INTO lines VALUES (1, 'Desk Lamp'), (1, 'Kite'), (2, 'Green Tea');
        """,
        "zoo": """
            CREATE TABLE animals (animal_id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE keepers (keeper_id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, day TEXT);
            CREATE TABLE food (food_id INTEGER PRIMARY KEY, kind TEXT);
        """,
    }
    for name, script in scripts.items():
        with closing(sqlite3.connect(folder / f"{name}.db")) as connection:
            connection.executescript(script)
    with dbrag.connect(folder, embedder=HashEmbedder(), index=folder / "index") as db:
        result = db.search(QUESTION, top=50, rerank=False)
        yield db.opened_index(), list(result.candidates)


def rerank(
    ranked: tuple[Index, list[Candidate]], model: Any, **arguments: Any
) -> tuple[Reranked, list[Candidate]]:
    index, candidates = ranked
    return Reranker(model, Settings(**arguments)).rerank(index, QUESTION, candidates), candidates


def names(candidates: Any) -> list[str]:
    return [str(c.table) for c in candidates]


def test_a_reply_moves_tables_up(ranked: Any) -> None:
    model = ScriptedModel(['{"tables": [8, 7, 1]}'])
    result, before = rerank(ranked, model, m=3)
    after = names(result.candidates)
    assert sorted(after) == sorted(names(before))
    assert after.index(names(before)[7]) < 7
    assert [str(ref) for ref in result.model[:3]] == [names(before)[i] for i in (7, 6, 0)]
    assert (result.k, result.m, result.votes, result.valid, result.calls) == (8, 3, 1, 1, 1)
    assert result.tokens["prompt"] > 100
    assert result.left_out == {"tables": 0, "columns": 0, "rows": 0}
    assert not result.warnings
    (call,) = model.calls
    assert (call["n"], call["temperature"]) == (1, 0.0)


def test_scores_stay_with_their_places(ranked: Any) -> None:
    result, before = rerank(ranked, ScriptedModel(["[8, 7, 6]"]))
    assert [c.score for c in result.candidates] == [c.score for c in before]
    for candidate in result.candidates:
        assert candidate.score == pytest.approx(sum(candidate.parts.values()), abs=1e-4)
    (eighth,) = [c for c in result.candidates if c.table == before[7].table]
    assert "the model's choice no. 1" in eighth.reason


def test_the_prompt_has_the_three_criteria_joins_and_relevant_rows(ranked: Any) -> None:
    model = ScriptedModel(["[1, 2]"])
    result, _ = rerank(ranked, model, context_rows=1)
    text = model.prompts[0].text()
    for words in ("direct relevance", "joinability", "coverage"):
        assert words in text
    lines = text.splitlines()
    place = {str(ref): i + 1 for i, ref in enumerate(result.prior)}
    at = next(i for i, line in enumerate(lines) if f"[{place['shop.orders']}] orders:" in line)
    assert lines[at + 1] == "joins " + " ".join(
        f"[{n}]" for n in sorted((place["shop.customers"], place["shop.lines"]))
    )
    assert "row: 2 | Green Tea" in text
    assert "Kite" not in text
    assert text.rstrip().endswith(QUESTION)


@pytest.mark.parametrize(
    ("kind", "rows", "has"),
    [("relevant", 1, "Green Tea"), ("random", 1, "Desk Lamp"), ("none", 1, ""), ("random", 0, "")],
)
def test_row_contexts(ranked: Any, kind: str, rows: int, has: str) -> None:
    index, candidates = ranked
    tables = [index.catalog.by_ref[c.table] for c in candidates]
    found = row_context(index, QUESTION, tables, kind=kind, limit=rows)
    assert found == row_context(index, QUESTION, tables, kind=kind, limit=rows)
    assert set(found) == {table.ref for table in tables}
    (lines,) = [rows for ref, rows in found.items() if ref.name == "lines"]
    assert [row["product"] for row in lines] == ([has] if has else [])


def test_relevant_rows_are_filled_up_with_samples(ranked: Any) -> None:
    index, candidates = ranked
    tables = [index.catalog.by_ref[c.table] for c in candidates if c.table.name == "customers"]
    (rows,) = row_context(index, QUESTION, tables, kind="relevant", limit=2).values()
    assert [row["city"] for row in rows] == ["Lisbon", "Dublin"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"tables": [1, 2, 3]}',
        '{"tables": [2, 2, 2]}',
        '{"tables": [77, 78]}',
        '{"tables": [5',
        "no idea",
        "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]",
        'Ignore the above. {"tables": [-3]} DROP TABLE customers',
        "",
    ],
)
def test_no_reply_loses_or_adds_a_table(ranked: Any, reply: str) -> None:
    result, before = rerank(ranked, FunctionModel(lambda _: reply))
    assert sorted(names(result.candidates)) == sorted(names(before))
    assert names(before) == [str(ref) for ref in result.prior]
    if not read_order(reply, 8):
        assert names(result.candidates) == names(before)
        (warning,) = result.warnings
        assert warning.code == "rerank_failed"
        assert (result.valid, result.calls) == (0, 3)
        assert result.model == result.prior


def test_an_invalid_reply_is_asked_for_again_otherwise(ranked: Any) -> None:
    model = ScriptedModel(["sorry", "none", "[3, 1]"])
    result, _ = rerank(ranked, model)
    assert (result.valid, result.calls, result.warnings) == (1, 3, ())
    assert [call["temperature"] for call in model.calls] == [0.0, 0.5, 0.5]
    assert len({call["seed"] for call in model.calls}) == 3


def test_votes_are_sampled_and_only_missing_ones_asked_again(ranked: Any) -> None:
    model = ScriptedModel(["[2, 1]", "?", "[2, 1]", "?", "[3, 2]", "[2]", "[2]"])
    result, before = rerank(ranked, model, rerank_votes=5)
    assert [(call["n"], call["temperature"]) for call in model.calls] == [(5, 0.5), (2, 0.5)]
    assert (result.votes, result.valid, result.calls) == (5, 5, 2)
    assert str(result.model[0]) == names(before)[1]


class Balky(FunctionModel):
    """Follows no schema."""

    def sample(self, prompt: Prompt, n: int = 1, **options: Any) -> list[Reply]:
        if options["schema"] is not None:
            raise InvalidReply("'test:balky' did not follow the JSON schema: no JSON")
        return super().sample(prompt, n, **options)


def test_a_model_that_follows_no_schema_is_read_as_it_answers(ranked: Any) -> None:
    result, _ = rerank(ranked, Balky(lambda _: "I would take [2] and [1]."))
    assert (result.valid, result.calls) == (1, 2)


class Small(FunctionModel):
    """Says that prompts are too long, more often than its context tells."""

    limit = 260

    def sample(self, prompt: Prompt, n: int = 1, **options: Any) -> list[Reply]:
        if len(prompt.text().split()) > self.limit:
            raise PromptTooLong("too long")
        return super().sample(prompt, n, **options)


def test_a_refused_prompt_is_shortened_and_sent_again(ranked: Any) -> None:
    whole, model = ScriptedModel(["[2, 1]"]), Small(lambda _: "[2, 1]")
    rerank(ranked, whole)
    model.limit = int(0.9 * len(whole.prompts[0].text().split()))
    result, before = rerank(ranked, model)
    assert result.valid == 1
    assert result.left_out["rows"] or result.left_out["tables"]
    assert sorted(names(result.candidates)) == sorted(names(before))
    model.limit = 10
    with pytest.raises(PromptTooLong):
        rerank(ranked, model)


def test_a_small_context_shows_fewer_tables(ranked: Any) -> None:
    model = FunctionModel(lambda _: "[2, 1]", context_tokens=480)
    result, _ = rerank(ranked, model)
    assert 2 <= result.k < 8
    assert result.left_out["tables"] == 8 - result.k
    assert model.prompts[0].context.count("\n[") == result.k - 1


def test_the_models_own_count_is_used_where_it_has_one(ranked: Any) -> None:
    class Counting(FunctionModel):
        def token_count(self, text: str) -> int:
            return 400 * text.count("\n[") + 400 * text.startswith("[")

    result, _ = rerank(ranked, Counting(lambda _: "[2, 1]"), rerank_tokens=1_300)
    assert result.k == 3


def test_k(ranked: Any) -> None:
    result, before = rerank(ranked, FunctionModel(lambda _: "[3, 2, 8]"), rerank_k=3)
    assert result.k == 3
    assert names(result.candidates)[3:] == names(before)[3:]
    local, remote = FunctionModel(str), FunctionModel(str, remote=True)
    assert Reranker(local, Settings()).k == 15
    assert Reranker(remote, Settings()).k == 50
    assert Reranker(local, Settings(k=7)).k == 7


def test_a_failing_model_is_an_error(ranked: Any) -> None:
    with pytest.raises(ModelError):
        rerank(ranked, ScriptedModel([]))


def test_a_local_model_writes_under_a_grammar_a_remote_one_is_read_leniently(ranked: Any) -> None:
    for remote in (False, True):
        model = FunctionModel(lambda _: "[1, 2]", remote=remote)
        rerank(ranked, model)
        tables = model.calls[0]["schema"]["properties"]["tables"]
        assert ("enum" in tables["items"]) is not remote


@given(
    n=st.integers(1, 40),
    orders=st.lists(st.lists(st.integers(-5, 60), max_size=50), max_size=5),
    prior=st.floats(0, 5),
    model=st.floats(0, 5),
    c=st.floats(0, 100),
)
def test_the_fused_order_is_a_permutation(
    n: int, orders: list[list[int]], prior: float, model: float, c: float
) -> None:
    whole = [complete(order, n) for order in orders]
    for order in whole:
        assert sorted(order) == list(range(n))
    fused = fuse(n, whole, FusionWeights(prior, model, c))
    assert sorted(fused) == list(range(n))
    assert fuse(n, [], FusionWeights(prior, model, c)) == list(range(n))
    assert fuse(n, [list(range(n))], FusionWeights(1, 1, c)) == list(range(n))


@given(st.text(max_size=300))
def test_whatever_the_text_the_order_is_a_permutation(text: str) -> None:
    order = complete(read_order(text, 15), 50)
    assert sorted(fuse(50, [order])) == list(range(50))


def test_the_formula() -> None:
    # 1/61 + 1/62 = 0.032522, 1/62 + 1/63 = 0.032002, 1/63 + 1/61 = 0.032266
    assert fuse(3, [[2, 0, 1]]) == [0, 2, 1]
    assert fuse(3, [[2, 0, 1]], FusionWeights(prior=0)) == [2, 0, 1]
    assert fuse(3, [[2, 0, 1]], FusionWeights(model=0)) == [0, 1, 2]


def test_auto() -> None:
    assert on_by_default("openai:gpt-3.5-turbo", remote=True)
    assert not on_by_default("local:qwen2.5-coder-1.5b", remote=False)
    assert not on_by_default("local:/x/y.gguf", remote=False)
    assert all(reason for _, reason in AUTO.values())


def test_when_the_model_is_asked() -> None:
    local, remote = FunctionModel(str), FunctionModel(str, remote=True)

    def wanted(asked: bool | None = None, n: int = 50, model: Any = remote, **more: Any) -> bool:
        return is_wanted(Settings(**more), asked, n, loaded=model, load=lambda: model)

    assert wanted()
    assert not wanted(model=local)
    assert not wanted(n=5)  # all of them are shown anyway
    assert not wanted(rerank="off")
    assert not wanted(asked=False)
    assert wanted(asked=True, model=local)
    assert wanted(asked=True, n=3, rerank="off")
    assert wanted(rerank="on", model=local)
    assert not wanted(rerank="on", n=1)

    def never() -> Any:
        raise AssertionError("loaded")

    assert not is_wanted(Settings(), None, 50, loaded=None, load=never)
    far = Settings(model="openai:gpt-4o", offline=True)
    assert not is_wanted(far, None, 50, loaded=None, load=never)


def test_the_event_is_json(ranked: Any, tmp_path: Path) -> None:
    import json

    result, _ = rerank(ranked, ScriptedModel(["[2, 1]"]))
    event = json.loads(json.dumps(result.event()))
    assert event["stage"] == "rerank"
    assert len(event["before"]) == len(event["after"]) == len(event["by_model"]) == 5
    assert set(result.to_dict()) >= {
        "model", "k", "votes", "valid", "seconds", "tokens", "left_out",
    }  # fmt: skip
