"""The other responses as OpenAPI describes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dbrag.interfaces.http.answers import Caution, Shape, TableId


class Health(Shape):
    """The server runs."""

    status: Literal["ok"]
    version: str = Field(examples=["0.1.0"])


class Ready(Shape):
    """Requests are taken."""

    ready: Literal[True]


class SourceState(Shape):
    """An open source, as `dbrag status` tells of it."""

    name: str = Field(examples=["shop"])
    location: str = Field(description="Path or URL, without password.")
    status: str = Field(examples=["indexed"])
    reason: str
    dialect: str | None = Field(examples=["sqlite"])
    tables: int | None = None
    rows: int | None = None


class Sources(Shape):
    """The open sources and the model."""

    schema_: Literal[1] = Field(alias="schema")
    sources: list[SourceState]
    warnings: list[Caution]
    model: str = Field(examples=["local:qwen2.5-coder-1.5b"])
    remote: bool = Field(description="Whether questions and sample values leave this machine.")
    history: bool = Field(description="Whether a history is kept.")
    learning: bool = Field(description="Whether feedback can be learned from.")


class TableLine(Shape):
    """A table in the list of all."""

    table: TableId
    text: str = Field(description="Its name as other requests take it.", examples=["shop.orders"])
    kind: str = Field(examples=["table"])
    columns: list[str]
    rows: int | None = Field(description="Exact, or null where it was not counted.")


class TableList(Shape):
    """A page of the tables."""

    tables: list[TableLine]
    total: int = Field(description="Tables that fit, on all pages.")
    offset: int


class Frequent(Shape):
    """A value and in how many of the rows read it stands."""

    value: str
    count: int


class Profile(Shape):
    """What a bounded read of a column showed."""

    nulls: int
    distinct: int
    minimum: str | None
    maximum: str | None
    frequent: list[Frequent]


class ColumnState(Shape):
    """A column."""

    name: str
    type: str
    nullable: bool
    comment: str
    synonyms: list[str]
    profile: Profile | None


class Key(Shape):
    """A declared foreign key: `columns[i]` refers to `target_columns[i]`."""

    columns: list[str]
    target: TableId
    target_columns: list[str]


class TableState(TableLine):
    """All that is known of a table."""

    columns: list[ColumnState]  # type: ignore[assignment]
    comment: str
    primary_key: list[str]
    foreign_keys: list[Key]
    estimate: int | None
    sampled: bool
    rows_read: int
    redacted: list[str] = Field(description="Columns that nobody may read.")
    notes: list[str]


class Samples(Shape):
    """Some rows of a table as they were indexed, long values cut at 200 characters."""

    table: TableId
    columns: list[str]
    rows: list[list[str | None]]


class Join(Shape):
    """`left.left_columns[i]` refers to `right.right_columns[i]`."""

    left: TableId
    left_columns: list[str]
    right: TableId
    right_columns: list[str]
    declared: bool
    confidence: float = Field(ge=0, le=1)
    evidence: str


class Joins(Shape):
    """A page of the joins."""

    schema_: Literal[1] = Field(alias="schema")
    joins: list[Join]
    warnings: list[Caution]
    total: int
    offset: int


class JobState(Shape):
    """A job: times in seconds."""

    id: str
    kind: str = Field(examples=["ask"])
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    waited_s: float
    ran_s: float


class Jobs(Shape):
    """The jobs that wait or run."""

    jobs: list[JobState]


class Entry(Shape):
    """Something that was asked; never a value of its result."""

    id: str
    at: float = Field(description="Unix time, seconds.")
    kind: Literal["ask", "sql"]
    question: str
    status: str
    sql: str | None
    source: str | None
    tables: list[str]
    row_count: int
    agreement: float | None
    error: str | None
    warnings: list[str]
    seconds: float
    model: str | None
    verdict: Literal["right", "wrong"] | None


class Entries(Shape):
    """A page of the history, the latest first."""

    entries: list[Entry]
    total: int
    offset: int


class LearnedNow(Shape):
    """The pair that a verdict was made into."""

    question: str
    source: str
    sql: str
    tables: list[TableId]
    row_count: int
    replaced: bool


class Feedback(Shape):
    """What became of a verdict."""

    id: str
    verdict: Literal["right", "wrong"]
    learned: LearnedNow | None
    note: str = Field(description="For people; may be empty.")


class Pair(Shape):
    """A learned pair; one with a problem is not used."""

    question: str
    source: str | None
    sql: str
    line: int
    tables: list[TableId]
    problem: str | None


class LearnedPairs(Shape):
    """The learned pairs."""

    pairs: list[Pair]
    problems: list[dict[str, Any]]


class Forgotten(Shape):
    """How many were removed."""

    forgotten: int
