"""Exit codes, and errors as text and as JSON: the same for every command."""

from __future__ import annotations

import inspect
import logging

import pytest

from dbrag import errors
from dbrag.errors import DbragError
from dbrag.interfaces.cli.app import OnceFilter
from dbrag.types import IndexReport, SourceReport

ERRORS = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, DbragError)
]
COMMANDS = [
    ("ask", "how many?"),
    ("sql", "SELECT 1"),
    ("search", "orders"),
    ("index",),
    ("status",),
    ("index", "--drop", "shop"),
]
ASK_KEYS = {
    "schema", "question", "status", "columns", "rows", "row_count", "truncated", "text", "steps",
    "sql", "dialect", "tables", "agreement", "confidence", "votes", "warnings", "evidence",
    "readings", "error",
    "seconds", "tokens", "model",
}  # fmt: skip
SQL_KEYS = ASK_KEYS - {"text", "votes", "tokens"}


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_error_of_every_command(cli, fake, command, error) -> None:
    fake.result = error("no 'x' here", "type y")
    plain = cli(*command, "-s", "shop.db")
    assert (plain.code, plain.out) == (error.exit_code, "")
    assert plain.err == "error: no 'x' here\n  try: type y\n"
    value = cli(*command, "-s", "shop.db", "--json")
    assert value.code == error.exit_code
    assert value.json["error"] == {"code": error.code, "message": "no 'x' here", "hint": "type y"}
    assert value.err == ""
    assert fake.closed


def test_a_failed_ask_has_all_keys(cli, fake) -> None:
    fake.result = errors.LimitReached("too slow")
    assert set(cli("ask", "-s", "a.db", "how many?", "--json").json) == ASK_KEYS
    assert set(cli("sql", "-s", "a.db", "SELECT 1", "--json").json) == SQL_KEYS
    value = cli("ask", "-s", "a.db", "how many?", "--json", "--model", "x:y").json
    assert (value["question"], value["status"]) == ("how many?", "failed")
    fake.result = errors.Unanswerable("nothing here")
    assert cli("ask", "-s", "a.db", "how many?", "--json").json["status"] == "unanswerable"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask"], "Missing argument 'QUESTION'"),
        (["ask", "q", "--foo"], "No such option"),
        (["ask", "q", "--votes", "0"], "--votes"),
        (["ask", "q", "--votes", "many"], "'many' is not a valid integer"),
        (["ask", "q", "--max-rows", "-1"], "--max-rows"),
        (["ask", "q", "more"], "unexpected extra argument"),
        (["sql"], "Missing argument 'STATEMENT'"),
        (["serch", "q"], "No such command 'serch'"),
        (["search", "q", "--top", "0"], "--top"),
        (["eval", "retrieval"], "Missing option"),
        (["models", "steal"], "No such command 'steal'"),
        (["ask", "q", "-s"], "-s"),
        (["--index"], "--index"),
    ],
)
def test_usage_errors(cli, fake, arguments, words) -> None:
    plain = cli(*arguments)
    assert plain.code == 2
    assert plain.out == ""
    assert words in plain.err
    assert "--help" in plain.err
    assert len(plain.err.splitlines()) == 2
    value = cli(*arguments, "--json") if "-s" not in arguments[-1:] else cli("--json", *arguments)
    assert value.code == 2
    assert value.json["error"]["code"] == "usage"
    if arguments[0] == "ask":
        assert set(value.json) == ASK_KEYS


def test_json_before_or_after_the_command(cli, fake) -> None:
    assert cli("--json", "ask", "q", "-s", "a.db").json["status"] == "answered"
    assert cli("ask", "--json", "q", "-s", "a.db").json["status"] == "answered"


def test_json_after_two_dashes_is_text(cli, fake) -> None:
    done = cli("ask", "-s", "a.db", "--", "--json")
    assert fake.calls[0][1]["question"] == "--json"
    assert done.out.startswith("name")


def test_no_command(cli) -> None:
    assert cli().code == 0  # what to do next: test_start.py
    assert cli("--json").json["error"]["code"] == "usage"
    done = cli("models")
    assert done.code == 2
    assert "Commands:" in done.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_source(cli, command) -> None:
    done = cli(*command, "--json")
    assert done.code == 2
    assert done.json["error"]["message"] == "no source is named"
    assert "dbrag demo" in done.json["error"]["hint"]


def test_a_bug_says_so(cli, fake) -> None:
    fake.result = ZeroDivisionError("division by zero")
    plain = cli("ask", "-s", "a.db", "q")
    assert plain.code == 1
    assert plain.err.startswith("error: this is a bug in dbrag: ZeroDivisionError")
    assert "Traceback" not in plain.err
    assert "Traceback" in cli("ask", "-s", "a.db", "q", "-v").err
    assert cli("ask", "-s", "a.db", "q", "--json").json["error"]["code"] == "bug"


def test_verbose_shows_the_cause_of_an_error(cli, fake) -> None:
    fake.result = errors.SourceBusy("'a.db' is locked")
    fake.result.__cause__ = OSError("resource\nbusy")
    done = cli("ask", "-s", "a.db", "q", "-v")
    assert done.err == "cause: OSError: resource busy\nerror: 'a.db' is locked\n"
    assert "cause" not in cli("ask", "-s", "a.db", "q").err


def test_no_memory(cli, fake) -> None:
    fake.result = MemoryError()
    done = cli("ask", "-s", "a.db", "q", "--json")
    assert (done.code, done.json["error"]["code"]) == (6, "limit")


def test_interrupted(cli, fake) -> None:
    fake.result = KeyboardInterrupt()
    plain = cli("ask", "-s", "a.db", "q")
    assert plain.code == 130
    assert plain.err.strip() == "error: interrupted"
    assert cli("ask", "-s", "a.db", "q", "--json").json["error"]["code"] == "interrupted"
    assert fake.closed


def test_a_stray_print_does_not_reach_the_json(cli, fake) -> None:
    def noisy(_: object) -> object:
        print("loading model …")
        from tests.interfaces.conftest import an_answer

        return an_answer()

    fake.result = noisy
    done = cli("ask", "-s", "a.db", "q", "--json")
    assert done.json["status"] == "answered"
    assert "loading model" in done.err


def test_a_wrong_setting(cli, fake, monkeypatch) -> None:
    monkeypatch.setenv("DBRAG_TOP", "few")
    done = cli("search", "-s", "a.db", "q")
    assert done.code == 2
    assert "DBRAG_TOP must be a whole number, not 'few'" in done.err


def test_help_of_every_command(cli) -> None:
    for command in ("", "ask", "sql", "search", "index", "status", "models", "eval", "demo"):
        done = cli(*command.split(), "--help")
        assert done.code == 0
        assert done.out.startswith(f"Usage: dbrag {command}".rstrip())
    assert cli("-h").out == cli("--help").out


def test_version(cli) -> None:
    import dbrag

    assert cli("--version").out == f"dbrag {dbrag.__version__}\n"


def test_a_warning_is_told_once() -> None:
    told = OnceFilter()
    records = [
        logging.LogRecord("x", logging.WARNING, "", 1, "no right to %s", (name,), None)
        for name in ("a", "a", "b")
    ]
    assert [told.filter(record) for record in records] == [True, False, True]


@pytest.mark.parametrize(("statuses", "code"), [(("skipped",), 3), (("skipped", "built"), 0)])
def test_an_index_run_that_could_read_nothing_fails(cli, fake, statuses, code) -> None:
    reports = tuple(SourceReport(f"s{i}", status, "why") for i, status in enumerate(statuses))
    fake.result = IndexReport(reports, 1.0, 1.0, 1)
    shown = cli("index", "-s", "shop.db")
    assert (shown.code, "why" in shown.out) == (code, True)
    assert cli("index", "-s", "shop.db", "--json").code == code
