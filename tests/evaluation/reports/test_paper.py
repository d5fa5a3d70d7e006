"""The published numbers agree with each other, as far as they can be checked."""

from __future__ import annotations

import pytest

from dbrag.evaluation import paper


@pytest.mark.parametrize("row", [*paper.TABLE_1, *paper.TABLE_2], ids=lambda row: row.name)
def test_the_printed_average_is_the_mean_over_questions(row: paper.Recall5) -> None:
    # Groups and average are each rounded to 0.1: 0.05 in the groups and 0.05 in the average.
    assert paper.over_questions(row) == pytest.approx(row.average, abs=0.1 + 1e-9)


def test_the_mean_of_the_groups_is_another_figure() -> None:
    coarse = next(row for row in paper.TABLE_1 if row.name == "Coarse-rank")
    assert paper.over_groups(coarse) == pytest.approx((96.0 + 83.5 + 64.3 + 91.7) / 4)
    far = [row for row in paper.TABLE_1 if abs(paper.over_groups(row) - row.average) > 0.5]
    assert len(far) >= 6


def test_both_tables_have_the_same_row_of_gpt_3_5() -> None:
    first, second = paper.TABLE_1[-1], paper.TABLE_2[-1]
    assert (first.by_tables, first.average) == (second.by_tables, second.average)
    assert sum(paper.QUERIES.values()) == 985


@pytest.mark.parametrize(
    ("method", "settings", "order", "name"),
    [
        ("contriever", {}, "", "Contriever"),
        ("jar", {}, "", "JAR (Coarse-rank)"),
        ("jar:dtr", {}, "", "JAR (DTR)"),
        ("rerank", {"row_context": "none"}, "model", "DBRAG (Name and Schema)"),
        ("rerank", {"row_context": "random"}, "fused", "DBRAG (Random Rows)"),
        ("rerank", {"row_context": "relevant"}, "prior", "Coarse-rank"),
        ("dbrag", {"row_context": "relevant"}, "fused", "DBRAG (Relevant Rows)"),
        ("dbrag", {}, "", "Coarse-rank"),
        ("bm25", {}, "", None),
        ("jar:contriever", {}, "base", "Contriever"),
        ("jar", {}, "base", "Coarse-rank"),
        ("jar:bm25", {}, "base", None),
    ],
)
def test_what_stands_beside_a_method(
    method: str, settings: dict[str, str], order: str, name: str | None
) -> None:
    assert paper.counterpart(method, settings, order) == name
    assert name is None or name in {row.name for row in paper.TABLE_1}


def test_packs_are_known_by_size_and_name() -> None:
    spider, geo = paper.CORPORA["spider"], paper.CORPORA["geoquery"]
    assert paper.corpus_of(779, ["concert_singer"], 157) is spider
    assert paper.corpus_of(779, ["concert_singer"], 156) is None
    assert paper.corpus_of(7, ["geography"]) is geo
    assert paper.corpus_of(7, ["market"]) is None  # another database of seven tables


def test_table_3_has_no_figures_but_mtqas_own() -> None:
    assert set(paper.MTQA) == {corpus.name for corpus in paper.CORPORA.values()}
    assert paper.MTQA["ATIS"].scores["Cell F1"] == 54.16
