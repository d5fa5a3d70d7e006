"""How tables are joined is spelled out, once, and every way of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.reasoning.join_paths import join_hints, joins_told
from dbrag.reasoning.prompts import program_prompt
from dbrag.types import Column, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def table(name: str, *columns: str, keys: tuple[ForeignKey, ...] = ()) -> Table:
    return Table(TableRef("db", None, name), tuple(Column(c) for c in columns), foreign_keys=keys)


AIRPORTS = table("airports", "code", "city")
FLIGHTS = table("flights", "no", "source", "dest", "boss_no")
CREW = table("crew", "flight", "person")
PEOPLE = table("people", "id", "name")


def edge(left: Table, own: str, right: Table, other: str, confidence: float = 0.9) -> JoinEdge:
    """``own`` and ``other`` may name several columns."""
    columns = (tuple(own.split()), tuple(other.split()))
    declared = confidence == 1.0
    return JoinEdge(left.ref, columns[0], right.ref, columns[1], declared, confidence)


def told(
    *edges: JoinEdge, tables: tuple[Table, ...], question: str = "", dialect: str = "sqlite"
) -> list[str]:
    graph = JoinGraph([*edges, *JoinGraph.from_tables(tables).edges])
    return join_hints(tables, joins_told(graph, [t.ref for t in tables], question), dialect)


def test_what_create_table_declares_is_not_repeated() -> None:
    crew = table("crew", "flight", keys=(ForeignKey(("flight",), FLIGHTS.ref, ("no",)),))
    assert told(tables=(crew, FLIGHTS)) == []


def test_a_single_inferred_join_is_told() -> None:
    one = edge(CREW, "flight", FLIGHTS, "no")
    assert told(one, tables=(CREW, FLIGHTS)) == ["crew.flight = flights.no"]


def test_a_composite_key_is_told_as_a_whole() -> None:
    one = edge(CREW, "flight person", FLIGHTS, "no source")
    assert told(one, tables=(CREW, FLIGHTS)) == [
        "crew.flight = flights.no AND crew.person = flights.source"
    ]


def test_two_inferred_ways_are_both_told_and_marked() -> None:
    ways = [edge(FLIGHTS, name, AIRPORTS, "code") for name in ("source", "dest")]
    assert told(*ways, tables=(FLIGHTS, AIRPORTS)) == [
        "flights.dest = airports.code (likely) or, with another meaning, "
        "flights.source = airports.code (likely)"
    ]


def test_an_unlikely_second_way_is_not_told() -> None:
    ways = [edge(FLIGHTS, "source", AIRPORTS, "code"), edge(FLIGHTS, "no", AIRPORTS, "code", 0.2)]
    assert told(*ways, tables=(FLIGHTS, AIRPORTS)) == ["flights.source = airports.code"]


def test_two_ways_that_the_user_added_are_both_told() -> None:
    ways = [edge(FLIGHTS, name, AIRPORTS, "code", 1.0) for name in ("source", "dest")]
    assert told(*ways, tables=(FLIGHTS, AIRPORTS)) == [
        "flights.dest = airports.code or, with another meaning, flights.source = airports.code"
    ]


def test_a_way_that_the_user_added_beside_a_declared_key_is_told() -> None:
    flights = table(
        "flights", "source", "dest", keys=(ForeignKey(("source",), AIRPORTS.ref, ("code",)),)
    )
    added = edge(flights, "dest", AIRPORTS, "code", 1.0)
    assert told(added, tables=(flights, AIRPORTS)) == ["flights.dest = airports.code"]


def test_tables_between_are_named_though_not_shown() -> None:
    edges = (edge(CREW, "flight", FLIGHTS, "no"), edge(CREW, "person", PEOPLE, "id"))
    assert told(*edges, tables=(FLIGHTS, PEOPLE)) == [
        "crew.flight = flights.no",
        "crew.person = people.id",
    ]


def test_declared_keys_to_a_table_between_are_told_too() -> None:
    crew = table("crew", "flight", keys=(ForeignKey(("flight",), FLIGHTS.ref, ("no",)),))
    graph = JoinGraph([*JoinGraph.from_tables([crew]).edges, edge(crew, "person", PEOPLE, "id")])
    tables = (FLIGHTS, PEOPLE)
    assert join_hints(tables, joins_told(graph, [t.ref for t in tables]), "sqlite") == [
        "crew.flight = flights.no",
        "crew.person = people.id",
    ]
    over = table("trips", "flight", keys=(ForeignKey(("flight",), crew.ref, ("id",)),))
    one = (edge(over, "flight", crew, "id", 1.0),)
    assert join_hints((over, FLIGHTS), one, "sqlite") == ["trips.flight = crew.id"]


def test_both_ways_to_a_table_between_are_told() -> None:
    friends = table(
        "friends",
        "one",
        "other",
        keys=tuple(ForeignKey((name,), PEOPLE.ref, ("id",)) for name in ("one", "other")),
    )
    likes = table("likes", "who", keys=(ForeignKey(("who",), PEOPLE.ref, ("id",)),))
    assert told(tables=(friends, likes)) == [
        "friends.one = people.id or, with another meaning, friends.other = people.id",
        "likes.who = people.id",
    ]
    assert told(tables=(friends, likes, PEOPLE)) == []


def test_a_schema_of_a_table_between_is_written() -> None:
    between = Table(TableRef("db", "hr", "crew"), (Column("flight"), Column("person")))
    edges = (edge(between, "flight", FLIGHTS, "no"), edge(between, "person", PEOPLE, "id"))
    assert told(*edges, tables=(FLIGHTS, PEOPLE), dialect="postgres")[0].startswith(
        "hr.crew.flight"
    )


def test_a_table_joined_with_itself() -> None:
    declared = table(
        "staff", "id", "boss", keys=(ForeignKey(("boss",), TableRef("db", None, "staff"), ("id",)),)
    )
    assert told(tables=(declared,), question="Who is the boss of Ann?") == []
    prompt = program_prompt("Who?", [declared], dialect="sqlite", matches={}).text()
    assert "FOREIGN KEY (boss) REFERENCES staff (id)" in prompt
    staff = table("staff", "staff_id", "boss_id")
    loop = edge(staff, "boss_id", staff, "staff_id")
    assert told(loop, tables=(staff,), question="Who is the boss of Ann?") == [
        "staff.boss_id = another staff.staff_id"
    ]
    assert told(loop, tables=(staff,), question="How many staff ids are there?") == []
    added = edge(staff, "boss_id", staff, "staff_id", 1.0)
    assert told(added, tables=(staff,), question="How many?") == [
        "staff.boss_id = another staff.staff_id"
    ]


def test_the_prompt_of_joins(snapshot: SnapshotAssertion) -> None:
    edges = [edge(FLIGHTS, name, AIRPORTS, "code") for name in ("source", "dest")]
    edges += [edge(CREW, "flight", FLIGHTS, "no"), edge(CREW, "person", PEOPLE, "id", 1.0)]
    tables = (AIRPORTS, FLIGHTS, PEOPLE)
    question = "Who flies to Rome?"
    joins = joins_told(JoinGraph(edges), [t.ref for t in tables], question)
    prompt = program_prompt(question, tables, dialect="sqlite", matches={}, joins=joins)
    assert prompt.text() == snapshot
