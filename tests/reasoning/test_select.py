"""Selection without a model, and the refusal of questions that nothing speaks of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.joins import JoinGraph
from dbrag.catalog.parts import parts_of
from dbrag.errors import Unanswerable, UsageError
from dbrag.reasoning.answerable import SIMILARITY_FLOOR, check_evidence
from dbrag.reasoning.relevance import probabilities, signs_of
from dbrag.reasoning.select import select
from dbrag.reasoning.variants import plan_votes
from dbrag.retrieval.coverage import SourceVocabulary
from dbrag.settings import Settings
from dbrag.types import Candidate, Column, ForeignKey, Table, TableRef, ValueMatch


def table(source: str, name: str, *columns: str, keys: tuple[ForeignKey, ...] = ()) -> Table:
    return Table(TableRef(source, None, name), tuple(Column(c) for c in columns), foreign_keys=keys)


SINGER = table("pop", "singer", "singer_id", "name", "country")
CONCERT = table("pop", "concert", "concert_id", "title", "year")
LINK = table(
    "pop",
    "singer_in_concert",
    "singer_id",
    "concert_id",
    keys=(
        ForeignKey(("singer_id",), SINGER.ref, ("singer_id",)),
        ForeignKey(("concert_id",), CONCERT.ref, ("concert_id",)),
    ),
)
SCHOOL = table("school", "Highschooler", "id", "name", "grade")
TABLES = (CONCERT, SINGER, LINK, SCHOOL)
CATALOG = Catalog(TABLES)
JOINS = JoinGraph.from_tables(TABLES)
VOCABULARY = SourceVocabulary(TABLES)


def candidates(*scores: tuple[Table, float]) -> list[Candidate]:
    return [Candidate(t.ref, score) for t, score in scores]


def chosen(question: str, *scores: tuple[Table, float]) -> tuple[str, set[str]]:
    coverage = VOCABULARY.coverage(question)
    selection = select(question, candidates(*scores), CATALOG, JOINS, coverage)
    return selection.source, {ref.name for ref in selection.tables}


def test_the_table_between_two_needed_ones_is_taken_along() -> None:
    question = "Which singer of each country sang in a concert titled Summer in which year?"
    source, names = chosen(question, (SINGER, 3.0), (CONCERT, 2.9), (LINK, 0.1))
    assert source == "pop"
    assert names == {"singer", "concert", "singer_in_concert"}


def test_one_table_alone_where_the_question_speaks_of_one() -> None:
    assert chosen("What are the countries of all singers?", (SINGER, 3.0), (CONCERT, 0.5)) == (
        "pop",
        {"singer"},
    )


def test_switched_off_the_best_tables_of_the_source_are_taken_as_ranked() -> None:
    question = "Which singer of each country sang in a concert titled Summer in which year?"
    ranked = candidates((SINGER, 3.0), (SCHOOL, 2.95), (CONCERT, 2.9), (LINK, 0.1))
    coverage = VOCABULARY.coverage(question)
    off = Settings(selection="off", top=2)
    selection = select(question, ranked, CATALOG, JOINS, coverage, settings=off)
    assert (selection.source, selection.tables) == ("pop", (SINGER.ref, CONCERT.ref))
    assert selection.alternatives == ()
    alone = "What are the countries of all singers?"
    for settings, n in ((off, 2), (replace(off, top=9), 3)):
        chosen = select(
            alone, ranked, CATALOG, JOINS, VOCABULARY.coverage(alone), settings=settings
        )
        assert len(chosen.tables) == n
    named = select(alone, ranked, CATALOG, JOINS, coverage, only=(LINK.ref,), settings=off)
    assert named.tables == (LINK.ref,)


def test_a_source_that_knows_the_words_beats_a_nearer_table() -> None:
    question = "How many high schoolers are in each grade?"
    assert chosen(question, (SINGER, 2.2), (SCHOOL, 2.0))[0] == "school"


def test_coverage_is_a_share() -> None:
    coverage = VOCABULARY.coverage("the grade of high schoolers")
    assert coverage["school"] == pytest.approx(1.0)
    assert coverage["pop"] == 0.0
    assert VOCABULARY.coverage("") == {"pop": 0.0, "school": 0.0}


def test_a_close_table_of_another_source_is_named() -> None:
    coverage = {"pop": 0.5, "school": 0.5}
    found = candidates((SINGER, 2.0), (SCHOOL, 1.9))
    selection = select("names", found, CATALOG, JOINS, coverage)
    assert selection.rivals == (SCHOOL.ref,)


def test_tables_named_by_the_user_are_taken_as_they_are() -> None:
    found = candidates((SINGER, 2.0), (SCHOOL, 1.9))
    selection = select("names", found, CATALOG, JOINS, {}, only=[SCHOOL.ref])
    assert selection.tables == (SCHOOL.ref,)
    assert selection.alternatives == ()


def test_tables_of_two_sources_are_refused() -> None:
    found = candidates((SINGER, 2.0), (SCHOOL, 1.9))
    with pytest.raises(UsageError, match="pop, school"):
        select("names", found, CATALOG, JOINS, {}, only=[SCHOOL.ref, SINGER.ref])


def test_a_mentioned_value_makes_a_table_likelier() -> None:
    plain = candidates((SINGER, 2.0), (CONCERT, 1.9))
    with_value = [
        plain[0],
        Candidate(CONCERT.ref, 1.9, matches=(ValueMatch("title", "Super bootcamp"),)),
    ]
    question = "Who sang at Super bootcamp?"
    before = probabilities(question, plain, CATALOG.by_ref)
    after = probabilities(question, with_value, CATALOG.by_ref)
    assert after[1] > before[1]
    assert all(0 < p < 1 for p in after)


def test_votes_are_planned_greedy_first() -> None:
    coverage = {"pop": 1.0}
    found = candidates((SINGER, 3.0), (CONCERT, 2.9), (LINK, 2.0))
    selection = select("singers of the concert", found, CATALOG, JOINS, coverage)
    variants = plan_votes(selection, 5)
    assert len(variants) == 5
    assert (variants[0].tables, variants[0].temperature) == (selection.tables, 0.0)
    assert len({(v.tables, v.temperature, v.seed) for v in variants}) == 5


@pytest.mark.parametrize(
    ("similarity", "matches", "encoder", "refused"),
    [
        (0.1, (), next(iter(SIMILARITY_FLOOR)), True),
        (0.1, (ValueMatch("name", "Ann"),), next(iter(SIMILARITY_FLOOR)), False),
        (0.9, (), next(iter(SIMILARITY_FLOOR)), False),
        (0.1, (), "another encoder", False),
    ],
)
def test_a_question_that_nothing_speaks_of(
    similarity: float, matches: tuple[ValueMatch, ...], encoder: str, refused: bool
) -> None:
    found = [Candidate(SINGER.ref, 1.0, matches=matches, similarity=similarity)]
    if not refused:
        check_evidence(found, encoder)
        return
    with pytest.raises(Unanswerable, match=r"pop\.singer"):
        check_evidence(found, encoder)
    with pytest.raises(Unanswerable):
        check_evidence([], encoder)


def _in_schemas(*links: tuple[str, str]) -> list[Table]:
    """Tables t of schemas a, b, c, each joined with its own u; and links between schemas."""
    made = []
    for schema in "abc":
        ref = TableRef("server", schema, "u")
        keys = [ForeignKey(("x",), ref, ("x",))] if schema != "c" else []
        keys += [
            ForeignKey(("x",), TableRef("server", other, "u"), ("x",))
            for one, other in links
            if one == schema
        ]
        columns = (Column("x"),)
        made.append(Table(TableRef("server", schema, "t"), columns, foreign_keys=tuple(keys)))
        made.append(Table(ref, columns))
    return made


def test_schemas_with_keys_of_their_own_are_parts() -> None:
    parts = parts_of(_in_schemas())
    assert {(ref.schema, part) for ref, part in parts.items()} == {
        ("a", "server.a"),
        ("b", "server.b"),
        ("c", "server"),
    }


def test_schemas_joined_by_keys_are_one_part() -> None:
    parts = parts_of(_in_schemas(("a", "b")))
    assert {part for ref, part in parts.items() if ref.schema in ("a", "b")} == {"server.a"}


def test_one_schema_alone_is_its_source() -> None:
    parts = parts_of([t for t in _in_schemas() if t.ref.schema == "a"])
    assert set(parts.values()) == {"server"}


def test_tables_of_another_part_are_not_mixed_in() -> None:
    tables = _in_schemas()
    vocabulary = SourceVocabulary(tables)
    ranked = [Candidate(t.ref, 3.0 - i / 10) for i, t in enumerate(tables)]
    selection = select(
        "x of t and u",
        ranked,
        Catalog(tuple(tables)),
        JoinGraph.from_tables(tables),
        vocabulary.coverage("x of t and u"),
        parts=vocabulary.parts,
    )
    assert selection.source == "server"
    assert {ref.schema for ref in selection.tables} == {"a"}


ORDERS = table("shop", "orders", "order_id", "day", "total")
BACKUP = table("shop", "orders_backup", "order_id", "day", "total", "saved_at")
PAYMENTS = table("shop", "payments", "payment_id", "amount")


def shop_tables(
    question: str, *, prefer: bool, backup: float = 2.0, home: str = "shop"
) -> tuple[str, ...]:
    """Names of the selected tables; the backup scores a little better than the orders."""
    copy = replace(BACKUP, ref=replace(BACKUP.ref, source=home))
    tables = (replace(ORDERS, preferred=prefer), copy, PAYMENTS)
    found = candidates((copy, backup), (ORDERS, 1.9), (PAYMENTS, -1.0))
    coverage = dict.fromkeys(("shop", home), 0.5)
    selection = select(question, found, Catalog(tables), JoinGraph([]), coverage)
    return tuple(str(ref) for ref in selection.tables)


def test_a_preferred_table_goes_before_its_copy() -> None:
    question = "What is the total of all orders by day?"
    assert "shop.orders_backup" in shop_tables(question, prefer=False)
    assert shop_tables(question, prefer=True) == ("shop.orders",)


def test_a_copy_that_the_question_names_is_taken() -> None:
    question = "What is the total of the orders in the backup by day?"
    assert shop_tables(question, prefer=True) == shop_tables(question, prefer=False)


def test_a_preferred_table_decides_between_sources_that_nearly_tie() -> None:
    question = "What is the total of all orders by day?"
    assert shop_tables(question, prefer=False, home="old") == ("old.orders_backup",)
    assert shop_tables(question, prefer=True, home="old") == ("shop.orders",)
    far = shop_tables(question, prefer=True, home="old", backup=2.6)
    assert far == ("old.orders_backup",)


def test_a_preferred_table_is_no_more_needed_than_others() -> None:
    question = "How many payments are there?"
    found = candidates((PAYMENTS, 2.0), (ORDERS, 0.1))
    tables = (replace(ORDERS, preferred=True), PAYMENTS)
    selection = select(question, found, Catalog(tables), JoinGraph([]), {"shop": 0.5})
    assert [ref.name for ref in selection.tables] == ["payments"]


def test_other_names_count_in_telling_sources_apart() -> None:
    clients = replace(table("crm", "cst", "nm"), synonyms=("clients",))
    named = replace(clients, columns=(Column("nm", comment="surname"),))
    coverage = SourceVocabulary([named, PAYMENTS]).coverage("the surname of all clients")
    assert coverage == {"crm": pytest.approx(1.0), "shop": 0.0}


def test_synonyms_are_names_to_selection() -> None:
    clients = replace(table("shop", "cst", "nm"), synonyms=("clients",))
    named = replace(clients, columns=(Column("nm", synonyms=("full name",)),))
    found = candidates((clients, 2.0), (PAYMENTS, 1.9))
    question = "the full name of all clients"
    before, after = (
        signs_of(question, found, {t.ref: t for t in (own, PAYMENTS)})[0]
        for own in (replace(clients, synonyms=()), named)
    )
    assert (before.name_whole, before.columns_said, before.only_here) == (0, 0, 0)
    assert (after.name_whole, after.columns_said) == (1, 1)
    assert after.only_here > 0
