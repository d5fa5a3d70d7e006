"""Every error tells what to do next: raised with a hint, or of a class that has one."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import dbrag
from dbrag.errors import DbragError, ExecutionError, UsageError
from dbrag.execution.run import MEND
from dbrag.reasoning.answerable import cannot
from dbrag.settings import Settings

SRC = Path(dbrag.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
ENGINE = "what an engine says of any statement: run_admitted adds the hint for those of users"
PROGRAM = "a program of the model, which mends it; answerable.cannot adds the hint for the user"
RECORD = "a line of records.jsonl: what the model did is no mistake of the user"
PLACE = "one of the places that weights were sought at: the error that tells of all has the hint"
WITHOUT = {
    "evaluation/baselines/naive.py": RECORD,
    "evaluation/baselines/readtable.py:ReadTable._prompt": RECORD,
    "index/run.py:Run._read_source": "a bug, not a mistake of the user",
    "models/download.py": PLACE,
    "models/package_index.py": PLACE,
    "models/transfer.py": PLACE,
    "reasoning/attempt.py:Workshop.failure": PROGRAM,
    "reasoning/chain.py": PROGRAM,
    "reasoning/program.py:_statement": PROGRAM,
    "reasoning/reasoner.py": "caught at once: only its message is told, as a warning",
    "reasoning/steps.py": PROGRAM,
    "sources/duck/errors.py:statement_error": ENGINE,
    "sources/servers/mysql_errors.py:translate": ENGINE,
    "sources/servers/other_errors.py:translate": ENGINE,
    "sources/servers/postgresql_errors.py:_without_code": ENGINE,
    "sources/sqlite.py:translate": ENGINE,
}
"""Where a hint would be silly, by file or by function, and why."""
FILLER = {"try again", "check it", "see the docs", "read the documentation", "fix it", "mend it"}
MOST_CHARACTERS = 160


def error_classes() -> dict[str, type[DbragError]]:
    """Every class of error by its name; the modules of those outside ``errors`` are loaded."""
    found = {"DbragError"}
    modules = {"dbrag.errors"}
    while True:
        before = len(found)
        for path, tree in TREES.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and found & {ast.unparse(b) for b in node.bases}:
                    found.add(node.name)
                    name = ".".join(path.relative_to(SRC.parent).with_suffix("").parts)
                    modules.add(name.removesuffix(".__init__"))
        if len(found) == before:
            break
    members = [m for name in modules for m in vars(importlib.import_module(name)).values()]
    return {
        one.__name__: one for one in members if inspect.isclass(one) and issubclass(one, DbragError)
    }


def calls(tree: ast.AST, where: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Every call below a node, with the names of the classes and functions around it."""
    for node in ast.iter_child_nodes(tree):
        inner = where
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{where}.{node.name}".lstrip(".")
        if isinstance(node, ast.Call):
            yield where, node
        yield from calls(node, inner)


def hint_of(call: ast.Call) -> ast.expr | None:
    """The argument that is the hint; None where there is none."""
    given = [one.value for one in call.keywords if one.arg == "hint"] + call.args[1:2]
    return given[0] if given else None


def texts(hint: ast.expr) -> Iterator[str]:
    """The texts that a hint may be, as far as they are written down: "" of ``x if y else ""``."""
    if isinstance(hint, ast.IfExp):
        yield from texts(hint.body)
        yield from texts(hint.orelse)
    elif isinstance(hint, ast.Constant):
        yield str(hint.value)
    elif isinstance(hint, ast.JoinedStr):
        yield "".join(str(part.value) for part in hint.values if isinstance(part, ast.Constant))


TREES = {path: ast.parse(path.read_text("utf-8"), str(path)) for path in FILES}
CLASSES = error_classes()
RAISED = [
    (path.relative_to(SRC).as_posix(), where, call)
    for path, tree in TREES.items()
    for where, call in calls(tree)
    if isinstance(call.func, ast.Name) and call.func.id in CLASSES
]


def allowed(file: str, where: str) -> set[str]:
    """The entries of ``WITHOUT`` that a place falls under."""
    return WITHOUT.keys() & {file, f"{file}:{where}"}


def is_bare(call: ast.Call) -> bool:
    """Whether an error is made without a word on what to do."""
    assert isinstance(call.func, ast.Name)
    if CLASSES[call.func.id].default_hint:
        return False
    hint = hint_of(call)
    return hint is None or "" in texts(hint)


def test_every_error_tells_what_to_do() -> None:
    assert len(RAISED) > 400  # the walk finds them at all
    bare = [
        f"{file}:{call.lineno} ({where}): {ast.unparse(call)}"
        for file, where, call in RAISED
        if is_bare(call) and not allowed(file, where)
    ]
    assert not bare


def test_exceptions_are_still_needed() -> None:
    used = [allowed(file, where) for file, where, call in RAISED if is_bare(call)]
    assert set(WITHOUT) == set().union(*used)


@pytest.mark.parametrize(
    ("code", "bare"),
    [
        ("UsageError('what')", True),
        ("UsageError('what', '')", True),
        ("UsageError('what', 'this' if x else '')", True),
        ("UsageError('what', hint='')", True),
        ("UsageError('what', 'do this')", False),
        ("UsageError('what', hint=one)", False),
        ("UnknownName('what')", False),
    ],
)
def test_the_walk_tells_errors_without_a_hint(code: str, bare: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert is_bare(call) is bare


def test_hints_are_one_short_line_and_no_filler() -> None:
    wrong = [
        f"{file}:{call.lineno}: {text}"
        for file, _, call in RAISED
        if (hint := hint_of(call)) is not None
        for text in texts(hint)
        if len(text) > MOST_CHARACTERS or "\n" in text or text in FILLER or text.endswith(".")
    ]
    assert not wrong


def test_the_hint_of_a_class_stands_in() -> None:
    one = CLASSES["UnknownName"]
    assert one("what").hint == one("what", "").to_dict()["hint"] == one.default_hint != ""
    assert one("what", "do this").hint == "do this"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"k": 0}, "leave k (DBRAG_K) out for the default, 50"),
        ({"rerank_k": 1}, "leave rerank_k (DBRAG_RERANK_K) out for the default"),
        ({"rounds": -1}, "leave rounds (DBRAG_ROUNDS) out for the default, 3"),
    ],
)
def test_a_setting_out_of_range_tells_its_default(given: dict[str, int], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Settings(**given)  # type: ignore[arg-type]
    assert caught.value.hint == hint


def test_what_an_engine_says_of_a_users_statement_gets_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE items (name TEXT)")
        connection.execute("INSERT INTO items VALUES ('a{')")
        connection.commit()
    with (
        dbrag.connect(str(file), index=str(tmp_path / "index")) as database,
        pytest.raises(ExecutionError) as caught,
    ):
        database.sql("SELECT json_extract(name, '$') FROM items")
    assert "JSON" in caught.value.message
    assert caught.value.hint == MEND


def test_where_no_program_came_to_a_result_the_user_is_told_what_to_do() -> None:
    failure = ExecutionError("the program has no step")
    assert cannot(failure, [failure], "shop", ()).hint.endswith("--tables NAME")
    told = ExecutionError("no right", "GRANT SELECT")
    assert cannot(told, [told], "shop", ()).hint == "GRANT SELECT"
