"""Answers and search results as OpenAPI describes them; their keys are those of docs/json.md."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_TABLE: dict[str, Any] = {"source": "shop", "schema": None, "name": "customers"}


class Shape(BaseModel):
    """Keys may be added; none is renamed or dropped without a new schema number."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class TableId(Shape):
    """A table's identity."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_TABLE]})

    source: str
    schema_: str | None = Field(alias="schema")
    name: str


class Failure(Shape):
    """What is wrong, and what to do next."""

    code: str = Field(description="Stable, for programs.", examples=["usage"])
    message: str = Field(description="For people.", examples=["there is no table 'custommers'"])
    hint: str = Field(examples=["did you mean shop.customers?"])


class ErrorBody(Shape):
    """The body of every response that is no success."""

    error: Failure


class Caution(Shape):
    """What a reader of an answer has to know."""

    model_config = ConfigDict(extra="allow", title="Warning")

    code: str = Field(examples=["nulls_dropped"])
    message: str = Field(examples=["2 of 120 rows have no city and are not counted"])


class ResultColumn(Shape):
    """A column of a result; names may repeat."""

    name: str = Field(examples=["city"])
    type: str = Field(description="An Arrow type.", examples=["string"])


class Rows(Shape):
    """A result: exact values; what JSON cannot hold exactly is a string."""

    columns: list[ResultColumn]
    rows: list[list[Any]] = Field(
        description="Decimals, integers beyond 2^53, dates, times and UUIDs are strings, binary is "
        "base64.",
        examples=[[["Lisbon", 12], ["Porto", 7]]],
    )
    row_count: int = Field(description="Of the whole result.", examples=[2])
    truncated: bool = Field(description="Whether `rows` was cut by `max_rows`.")


class Step(Shape):
    """A read-only SELECT; it may read earlier steps by their names."""

    name: str = Field(examples=["answer"])
    sql: str = Field(examples=["SELECT city, COUNT(*) FROM customers GROUP BY city"])


class Reading(Rows):
    """Another meaning of the question, with as many votes as the answer."""

    text: str
    difference: str
    sql: str
    tables: list[TableId]
    votes: int


class Votes(Shape):
    """Programs asked for, and those that gave a result."""

    requested: int
    valid: int


class SqlAnswer(Rows):
    """What a statement gave."""

    id: str = Field(description="For downloads and feedback.", examples=["qk1V0xF5bqZ8yQv7o2c3Rg"])
    schema_: Literal[1] = Field(alias="schema")
    question: str = Field(description="The statement.")
    status: Literal["answered", "unanswerable", "failed"]
    steps: list[Step]
    sql: str | None
    dialect: str | None = Field(examples=["sqlite"])
    tables: list[TableId]
    agreement: float | None = Field(ge=0, le=1)
    confidence: float | None = Field(
        ge=0, le=1, description="Estimated probability that it is right."
    )
    warnings: list[Caution]
    evidence: dict[str, Any] | None = Field(description="What the program does, by rule.")
    readings: list[Reading]
    error: Failure | None
    seconds: dict[str, float] = Field(examples=[{"total": 1.5, "retrieve": 0.1, "execute": 0.01}])
    model: str | None


class Answer(SqlAnswer):
    """The answer to a question, with its program and evidence."""

    question: str
    text: str = Field(description="The answer in a sentence.")
    votes: Votes
    tokens: dict[str, int]


class Match(Shape):
    """A stored value that the question mentions."""

    column: str
    value: str
    said: str
    how: Literal["exact", "inflected", "typo"]


class Candidate(Shape):
    """A table that may matter."""

    table: TableId
    score: float
    parts: dict[str, float]
    rows: list[dict[str, Any]]
    matches: list[Match]
    reason: str
    similarity: float


class SearchResult(Shape):
    """The ranked tables."""

    schema_: Literal[1] = Field(alias="schema")
    question: str
    candidates: list[Candidate]
    warnings: list[Caution]
    seconds: float
    stages: dict[str, float]
    rerank: dict[str, Any] | None


class Page(Shape):
    """Some rows of a kept result."""

    columns: list[ResultColumn]
    rows: list[list[Any]]
    offset: int
    row_count: int
