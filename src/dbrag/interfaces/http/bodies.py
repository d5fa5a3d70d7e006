"""What clients send: checked before anything is done, described for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from dbrag.scope import MAX_QUESTION_CHARS

MAX_STATEMENT_CHARS = 100_000
MAX_ROWS = 10_000
ID = r"^[A-Za-z0-9_-]{8,64}$"


def _is_text(value: str) -> str:
    """Half characters ("\\ud800" in JSON) can be neither stored nor asked of an engine."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("is not valid Unicode text") from None
    return value


Text = Annotated[str, AfterValidator(_is_text)]
Question = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_QUESTION_CHARS,
        pattern=r"\S",
        description="A question in plain language.",
        examples=["How many customers live in each city?"],
    ),
]
Statement = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=MAX_STATEMENT_CHARS,
        pattern=r"\S",
        description="One reading SQL statement in the dialect of its source.",
        examples=["SELECT city, COUNT(*) FROM customers GROUP BY city"],
    ),
]
TableName = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=1000,
        description="A table: source.schema.name, source.name, or its name where it is unique.",
        examples=["shop.customers"],
    ),
]
JobId = Annotated[
    str | None,
    Field(
        pattern=ID,
        description="The job's id, chosen by the client so that it can cancel the job before the "
        "response begins; by default the server chooses one.",
    ),
]
MaxRows = Annotated[
    int | None,
    Field(ge=0, le=MAX_ROWS, description="Rows in the response; never limits what is computed."),
]


class Body(BaseModel):
    """An object that may hold nothing but what it declares."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Tables(Body):
    tables: list[TableName] = Field(
        default=[], max_length=100, description="Use only these tables.", examples=[[]]
    )
    exclude: list[TableName] = Field(
        default=[], max_length=100, description="Never use these tables.", examples=[[]]
    )
    rerank: bool | None = Field(
        default=None, description="Let the chat model order the best tables anew; default: as set."
    )
    id: JobId = None


class SearchBody(_Tables):
    """A question whose tables are wanted."""

    question: Question
    top: int | None = Field(default=None, ge=1, le=100, description="Candidates returned.")
    k: int | None = Field(default=None, ge=1, le=1000, description="Tables ranked.")


class AskBody(_Tables):
    """A question to be answered."""

    question: Question
    votes: int | None = Field(default=None, ge=1, le=20, description="Programs voted on.")
    dry_run: bool = Field(default=False, description="Write and check the program, do not run it.")
    max_rows: MaxRows = None

    @model_validator(mode="before")
    @classmethod
    def _one_chooses(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("rerank") is True and value.get("tables"):
            raise ValueError("rerank has nothing to order where tables chooses")
        return value


class StreamBody(AskBody):
    """A question to be answered in sight."""

    steps: bool = Field(
        default=False,
        description="Also send what each step but the last gave: each is run once more, at most "
        "20 rows are sent.",
    )


class SqlBody(Body):
    """A statement to be run, read-only."""

    sql: Statement
    source: Text | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="The source that runs it; needed where several could.",
    )
    max_rows: MaxRows = None
    id: JobId = None


class FeedbackBody(Body):
    """What a person found of an answer."""

    id: str = Field(pattern=ID, description="The answer's id.")
    verdict: Literal["right", "wrong"] = Field(
        description='"right" keeps the question with its SQL as a learned pair. "wrong" with `sql` '
        "keeps the question with that; without it the verdict is noted only."
    )
    sql: Statement | None = Field(
        default=None, description="The SQL that answers the question; run once, read-only."
    )

    @model_validator(mode="before")
    @classmethod
    def _corrections_are_of_wrong_answers(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("verdict") == "right" and value.get("sql"):
            raise ValueError('a corrected sql belongs to the verdict "wrong"')
        return value


class LearnBody(Body):
    """A question and the SQL that answers it."""

    question: Question
    sql: Statement
    source: Text | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="The source that runs it; by default the one that has its tables.",
    )
