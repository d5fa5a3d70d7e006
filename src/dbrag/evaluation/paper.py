"""The numbers that others have published, with the place each comes from.

Figures are in percent, as printed. Nothing here is measured by dbrag, and nothing is guessed:
Table 3 of the paper is missing from the text that is at hand, so it has no figures here.

Sources:

* the paper: Ampofo, Kubo and Difallah, DBRAG: Multi-Table Retrieval-Augmented Generation for
  Complex Database Queries, arXiv 2610.07622, Tables 1 and 2;
* its corpora: the authors' research code, github.com/colab-nyuad/DBRAG;
* MTQA: Pal, Yates, Kanoulas and de Rijke, MultiTabQA: Generating Tabular Answers for
  Multi-Table Question Answering, ACL 2023.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Recall5:
    """A row of Table 1 or a column of Table 2: Recall@5 on Spider, in percent.

    ``by_tables`` is by number of gold tables; ``average`` is as printed: the mean over the
    questions, see :func:`over_questions`.
    """

    name: str
    by_tables: Mapping[int, float]
    average: float
    group: str = ""


QUERIES: Mapping[int, int] = {1: 556, 2: 366, 3: 57, 4: 6}
"""Questions by number of gold tables, Tables 1 and 2: 985 in all."""


def _row(
    name: str, one: float, two: float, three: float, four: float, all_: float, group: str = ""
) -> Recall5:
    return Recall5(name, {1: one, 2: two, 3: three, 4: four}, all_, group)


_BASE, _RERANKING = "Base retrieval methods", "Reranking methods"
TABLE_1: tuple[Recall5, ...] = (
    _row("Contriever", 86.3, 74.9, 60.2, 87.5, 80.6, _BASE),
    _row("DTR", 90.5, 75.6, 57.9, 83.3, 83.0, _BASE),
    _row("Coarse-rank", 96.0, 83.5, 64.3, 91.7, 89.5, _BASE),
    _row("JAR (Contriever)", 91.4, 90.4, 78.4, 100.0, 90.3, _RERANKING),
    _row("JAR (DTR)", 91.2, 83.5, 70.2, 91.7, 87.1, _RERANKING),
    _row("JAR (Coarse-rank)", 96.8, 90.3, 73.7, 91.7, 93.0, _RERANKING),
    _row("DBRAG (Name and Schema)", 89.4, 77.5, 68.4, 83.3, 83.7, _RERANKING),
    _row("DBRAG (Random Rows)", 95.7, 94.7, 87.7, 100.0, 94.9, _RERANKING),
    _row("DBRAG (Relevant Rows)", 97.1, 95.0, 87.1, 100.0, 95.8, _RERANKING),
)
TABLE_2: tuple[Recall5, ...] = (
    _row("Llama 3.3 (70B-Instruct)", 96.9, 88.7, 73.1, 91.6, 92.5),
    _row("Qwen2.5 (32B-Instruct)", 96.4, 84.6, 76.6, 83.3, 90.8),
    _row("GPT-3.5 (Turbo-0125)", 97.1, 95.0, 87.1, 100.0, 95.8),
)


def over_questions(row: Recall5) -> float:
    """The mean over the 985 questions, from the printed groups: what "Average" is."""
    return sum(QUERIES[n] * row.by_tables[n] for n in QUERIES) / sum(QUERIES.values())


def over_groups(row: Recall5) -> float:
    """The mean of the four groups, each counting the same, which the paper does not print."""
    return sum(row.by_tables.values()) / len(row.by_tables)


_RANKED = {
    "contriever": "Contriever",
    "dtr": "DTR",
    "coarse": "Coarse-rank",
    "hybrid": "Coarse-rank",
    "jar": "JAR (Coarse-rank)",
    "jar:coarse": "JAR (Coarse-rank)",
    "jar:contriever": "JAR (Contriever)",
    "jar:dtr": "JAR (DTR)",
}
_RERANKED = {
    "none": "DBRAG (Name and Schema)",
    "random": "DBRAG (Random Rows)",
    "relevant": "DBRAG (Relevant Rows)",
}


def counterpart(method: str, settings: Mapping[str, Any], order: str = "") -> str | None:
    """The row of Table 1 that comes closest to a retrieval method; None where none does.

    Args:
        method: a name of ``methods.RETRIEVAL_METHODS``.
        settings: of the run.
        order: of a reranking by a model "prior", "model" or "fused"; "base" for what a method
            like ``jar:bm25`` stands on; empty for a method's own where no model was asked.
    """
    if order == "base":
        return _RANKED.get(method.partition(":")[2] or "coarse")
    if order == "prior":
        return "Coarse-rank"
    if order:
        return _RERANKED.get(str(settings.get("row_context")))
    # dbrag's own search, where its settings ask no model
    return _RANKED.get("hybrid" if method == "dbrag" else method)


@dataclass(frozen=True, slots=True)
class Published:
    """A published result of answering, in percent; keys are those of the report.

    ``given`` tells what the method was given that dbrag has to find.
    """

    name: str
    scores: Mapping[str, float]
    given: str


def _mtqa(table: float, row: float, column: float, cell: float) -> Published:
    scores = {"TableEM": table, "Row F1": row, "Column F1": column, "Cell F1": cell}
    return Published("MTQA, as published", scores, "the gold tables")


MTQA: Mapping[str, Published] = {
    "Spider": _mtqa(25.19, 23.70, 26.81, 29.55),
    "GeoQuery": _mtqa(52.22, 41.38, 52.16, 41.33),
    "ATIS": _mtqa(73.88, 54.36, 72.29, 54.16),
}
"""Pal et al. 2023, with the gold tables given, fine-tuned on each data set."""


@dataclass(frozen=True, slots=True)
class Pack:
    """How the pack of a data set is known again; ``database`` is the name of a single one."""

    tables: int
    databases: int
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is known of a data set as the paper used it; None where the text does not tell.

    ``pack`` is what dbrag is measured on; ``differs`` says why its counts are others, key by key.
    """

    name: str
    tables: int
    databases: int | None
    pack: Pack
    questions: int | None = None
    by_tables: Mapping[int, int] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)


CORPORA: Mapping[str, Corpus] = {
    "spider": Corpus(
        "Spider",
        tables=729,
        databases=138,
        questions=985,
        by_tables=QUERIES,
        pack=Pack(779, 157),
        differs={
            "tables": "there, the distinct tables that a gold query of train or dev touches, "
            "without the names of their databases; here, all tables of all databases",
            "databases": "there, those of the questions that MultiTabQA kept; here, all",
            "questions": "there, dev questions whose gold query runs and returns rows; here, of "
            "a corrected release with 1,007 such questions the part that the pack holds",
        },
    ),
    "geoquery": Corpus(
        "GeoQuery",
        tables=8,
        databases=1,
        pack=Pack(7, 1, "geography"),
        differs={
            "tables": "here, the seven tables of the public text-to-SQL release; which eighth "
            "one there is, is not told"
        },
    ),
    "atis": Corpus(
        "ATIS",
        tables=12,
        databases=1,
        pack=Pack(10, 1, "atis"),
        differs={
            "tables": "here, the ten tables that the pack holds; which two more there are, is "
            "not told"
        },
    ),
}


def corpus_of(tables: int, databases: Collection[str], count: int | None = None) -> Corpus | None:
    """The data set of a run or a folder; None where it is none of the paper's.

    Args:
        tables: of the whole corpus.
        databases: names of those that are known.
        count: of all databases, where ``databases`` are some of them.
    """
    size = len(databases) if count is None else count
    for corpus in CORPORA.values():
        pack = corpus.pack
        named = pack.database is None or set(databases) == {pack.database}
        if named and (pack.tables, pack.databases) == (tables, size):
            return corpus
    return None
