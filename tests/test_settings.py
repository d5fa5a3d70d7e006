"""Settings: arguments, then the environment, then the file, then defaults."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.options import ColumnNote, FileOptions, JoinOptions, SourceOptions, TableNote
from dbrag.settings import Settings, load_settings


def load(
    tmp_path: Path, arguments: dict[str, Any] | None = None, toml: str | None = None, **environ: str
) -> Settings:
    if toml is not None:
        (tmp_path / "dbrag.toml").write_text(toml, encoding="utf-8")
    return load_settings(arguments, environ=environ, directory=tmp_path)


def test_defaults(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()


def test_order(tmp_path: Path) -> None:
    toml = "top = 7\nvotes = 7\nk = 7\n"
    settings = load(tmp_path, {"top": 9}, toml, DBRAG_TOP="8", DBRAG_VOTES="8")
    assert (settings.top, settings.votes, settings.k) == (9, 8, 7)


def test_none_and_empty_count_as_not_given(tmp_path: Path) -> None:
    settings = load(tmp_path, {"top": None, "sources": ()}, "top = 7\nsources = ['a.db']\n")
    assert settings.top == 7
    assert len(settings.sources) == 1


def test_an_empty_variable_counts_as_not_given(tmp_path: Path) -> None:
    assert load(tmp_path, DBRAG_MODEL="").model == Settings().model


def test_the_file_is_found_upwards(tmp_path: Path) -> None:
    (tmp_path / "dbrag.toml").write_text("top = 3")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert load_settings(environ={}, directory=below).top == 3


def test_learned_questions_lie_beside_the_file(tmp_path: Path) -> None:
    assert load(tmp_path).learned is None
    assert load(tmp_path, toml="top = 3").learned == str(tmp_path / "learned.sql")
    assert load(tmp_path, toml="learned = 'team/known.sql'").learned == str(
        tmp_path / "team" / "known.sql"
    )
    assert load(tmp_path, toml="learned = 'off'").learned == "off"
    assert load(tmp_path, toml="top = 3", DBRAG_LEARNED="mine.sql").learned == "mine.sql"


def test_the_named_file_replaces_the_found_one(tmp_path: Path) -> None:
    (tmp_path / "dbrag.toml").write_text("top = 3\nk = 9")
    named = tmp_path / "other.toml"
    named.write_text("top = 4")
    settings = load_settings(config=str(named), environ={}, directory=tmp_path)
    assert (settings.top, settings.k) == (4, Settings().k)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("tpo = 3", ["unknown setting 'tpo'", "dbrag.toml"]),
        ("top = 'three'", ["top", "whole number", "'three'"]),
        ("top = 2.5", ["top", "whole number", "2.5"]),
        ("top = true", ["top", "whole number"]),
        ("top = 0", ["top", "at least 1", "0"]),
        ("max_rows = -1", ["max_rows", "-1"]),
        ("timeout_s = 0", ["timeout_s", "positive"]),
        ("timeout_s = 'soon'", ["timeout_s", "a number", "'soon'"]),
        ("offline = 'maybe'", ["offline", "true or false", "'maybe'"]),
        ("offline = 'true'", ["offline", "true or false", "'true'"]),
        ("membership = 1", ["membership", "true or false", "1"]),
        ("index = 5", ["index", "text", "5"]),
        ("sources = [5]", ["sources", "a list of sources", "[5]"]),
        ("redact = [['a']]", ["redact", "a list of names", "[['a']]"]),
        ("timeout_s = true", ["timeout_s", "a number", "True"]),
        ("timeout_s = '5'", ["timeout_s", "a number", "'5'"]),
        ("timeout_s = inf", ["timeout_s", "finite", "inf"]),
        ("profile_s = inf", ["profile_s", "finite", "inf"]),
        ("source_s = nan", ["source_s", "finite", "nan"]),
        ("answer_s = 0", ["answer_s", "positive", "0"]),
        ("answer_s = inf", ["answer_s", "finite", "inf"]),
        ("answer_tokens = 0", ["answer_tokens", "at least 1", "0"]),
        ("answer_tokens = 'many'", ["answer_tokens", "a whole number", "'many'"]),
        ("max_steps = 0", ["max_steps", "at least 1", "0"]),
        ("program_tokens = 0", ["program_tokens", "at least 1", "0"]),
        ("program = 'step'", ["program", 'one of "query", "steps"', "'step'"]),
        ("looks = true", ["looks", 'one of "auto", "on", "off"', "True"]),
        ("rerank = true", ["rerank", 'one of "auto", "on", "off"', "True"]),
        ("row_search = ['text']", ["row_search", 'one of "text"', "['text']"]),
        ("top =", ["not valid TOML"]),
        ("[table]\ntop = 1", ["unknown setting 'table'"]),
    ],
)
def test_a_wrong_file(tmp_path: Path, toml: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, toml=toml)
    for word in words:
        assert word in caught.value.message
    assert "\n" not in caught.value.message


def test_an_unknown_key_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, toml="tpo = 3")
    tables = {"source_options", "file_options"}  # set as [source.NAME] and [files."PATTERN"]
    names = {field.name for field in fields(Settings)} - tables
    assert all(name in caught.value.hint for name in names)


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="DBRAG_TOP must be a whole number, not 'x'"):
        load(tmp_path, DBRAG_TOP="x")


def test_a_foreign_variable_is_left_alone(tmp_path: Path) -> None:
    assert load(tmp_path, DBRAG_BENCH="/data", DBRAG_TPO="3") == Settings()


def test_a_missing_or_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the configuration"):
        load_settings(config=str(tmp_path / "none.toml"), environ={})
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"model = 'caf\xe9'")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_settings(config=str(latin), environ={})


def test_paths_of_the_file_are_relative_to_it(tmp_path: Path) -> None:
    url = "postgresql://host/db"
    (tmp_path / "dbrag.toml").write_text(
        f"sources = ['shop.db', 'x=sub/b.db', '/abs/c.db', '~/d.db', '{url}']\nindex = 'idx'"
    )
    below = tmp_path / "below"
    below.mkdir()
    settings = load_settings(environ={}, directory=below)
    assert settings.sources == (
        str(tmp_path / "shop.db"),
        f"x={tmp_path / 'sub' / 'b.db'}",
        "/abs/c.db",
        str(Path("~/d.db").expanduser()),
        url,
    )
    assert settings.index == str(tmp_path / "idx")
    named = load_settings({"sources": ("a.db",)}, environ={"DBRAG_INDEX": "i"}, directory=below)
    assert (named.sources, named.index) == (("a.db",), "i")


@pytest.mark.parametrize("text", ["1", "true", "YES", "on"])
def test_true(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, DBRAG_OFFLINE=text).offline is True


@pytest.mark.parametrize("text", ["0", "false", "No", "off"])
def test_false(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, DBRAG_OFFLINE=text).offline is False


def test_sources_of_the_environment(tmp_path: Path) -> None:
    both = load(tmp_path, DBRAG_SOURCES=os.pathsep.join(["a.db", "x=b.db"]))
    assert both.sources == ("a.db", "x=b.db")
    url = "postgresql://me:secret@host:5432/db"
    assert load(tmp_path, DBRAG_SOURCES=url).sources == (url,)


def test_every_setting_is_documented() -> None:
    for field in fields(Settings):
        assert f"{field.name}:" in (Settings.__doc__ or "")


def test_cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(cache=str(tmp_path)).cache_dir == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings(cache="~/x").cache_dir == tmp_path / "x"
    assert Settings().cache_dir.name == "dbrag"


@pytest.mark.parametrize(
    ("toml", "message", "hint"),
    [
        ("files = 3", "files in {} must be a table, not 3", 'write [files."PATTERN"]'),
        (
            '[files]\ndelimiter = ";"',
            "'delimiter' in [files] of {} names no files",
            'write [files."*.csv"], then delimiter',
        ),
        (
            '[files."*.csv"]\nskip = "yes"',
            "skip in [files.\"*.csv\"] must not be 'yes' (in {})",
            "it takes true or false",
        ),
        (
            '[files."*.csv"]\nskp = true',
            "unknown key 'skp' in [files.\"*.csv\"] (in {})",
            "did you mean skip? known keys: encoding, delimiter, header, decimal, thousands, "
            "dates, nulls, types, sheets, skip",
        ),
        (
            '[notes."a"]\npreferred = true\n[notes]\nmembership = true',
            "'membership' in [notes] must be a table or text, not True (in {})",
            "a setting stands above the first [table] of the file",
        ),
        ("notes = 3", "notes must be a table, not 3 (in {})", 'write [notes."TABLE"]'),
        (
            '[notes]\ndescription = "x"',
            "'description' in [notes] names no table (in {})",
            'write [notes."TABLE"], then description',
        ),
        (
            '[notes."a"]\nsynonym = ["x"]',
            "unknown key 'synonym' in [notes.\"a\"] (in {})",
            "did you mean synonyms? known keys: description, synonyms, preferred, columns",
        ),
        (
            '[notes.a.colums]\nx = "y"',
            "unknown key 'colums' in [notes.\"a\"] (in {})",
            "did you mean columns? known keys: description, synonyms, preferred, columns",
        ),
        (
            '[notes."a"]\npreferred = "yes"',
            "preferred in [notes.\"a\"] must not be 'yes' (in {})",
            "it takes true or false",
        ),
        (
            '[notes."a".columns]\nx = 3',
            'notes."a".columns."x" must be a table, not 3 (in {})',
            'write [notes."a".columns."x"]',
        ),
        (
            '[notes."a".columns.x]\npreferred = true',
            'unknown key \'preferred\' in [notes."a".columns."x"] (in {})',
            "known keys: description, synonyms",
        ),
        (
            '[notes."a"]\nsynonyms = [""]',
            "a synonym in [notes.\"a\"] must have 1 to 60 characters, not '' (in {})",
            "a longer text belongs into description",
        ),
        (
            f'[notes."a"]\nsynonyms = {["x"] * 21}',
            '[notes."a"] has 21 synonyms, at most 20 are used (in {})',
            "keep those that people ask with; a longer text belongs into description",
        ),
    ],
)
def test_wrong_tables(tmp_path: Path, toml: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, toml=toml)
    assert caught.value.message == message.format(tmp_path / "dbrag.toml")
    assert caught.value.hint == hint


def test_notes_as_people_write_them(tmp_path: Path) -> None:
    toml = """
        [notes."shop.customers"]
        description = "people who bought at least once"
        synonyms = ["clients", "buyers"]
        preferred = true
        [notes."shop.customers".columns]
        cust_nm = "full name"
        [notes."shop.customers".columns.st]
        synonyms = ["state"]
        [notes.shop.orders]
        preferred = true
        [notes]
        items = "what was sold"
    """
    notes = load(tmp_path, toml=toml).notes
    assert notes == {
        "shop.customers": TableNote(
            "people who bought at least once",
            ("clients", "buyers"),
            True,
            {"cust_nm": ColumnNote("full name"), "st": ColumnNote(synonyms=("state",))},
        ),
        "shop.orders": TableNote(preferred=True),
        "items": TableNote("what was sold"),
    }
    assert Settings(notes=notes).notes == notes


def test_notes_are_checked_however_they_come() -> None:
    with pytest.raises(UsageError, match="unknown key"):
        Settings(notes={"a": {"descriptoin": "x"}})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"names 'a\.b' twice"):
        Settings(notes={"a.b": "x", "a": {"b": {"preferred": True}}})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"joins": {"add": ["a.x = b.x"]}}, {"joins": JoinOptions(add=("a.x = b.x",))}),
        ({"joins": JoinOptions(remove=("a.x = b.x",))}, {}),
        ({"notes": {"a": "people"}}, {"notes": {"a": TableNote("people")}}),
        (
            {"source_options": {"shop": {"schemas": ["hr"]}}},
            {"source_options": {"shop": SourceOptions(schemas=("hr",))}},
        ),
        (
            {"file_options": {"*.csv": {"delimiter": ";"}}},
            {"file_options": {"*.csv": FileOptions(delimiter=";")}},
        ),
    ],
)
def test_tables_of_the_file_may_be_given_as_mappings(
    tmp_path: Path, given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    for settings in (load(tmp_path, given), Settings(**given)):
        for name, value in (wanted or given).items():
            assert getattr(settings, name) == value
        settings.open_options().schemas_of("shop")


@pytest.mark.parametrize(
    "given",
    [
        {"joins": 5},
        {"joins": {"add": "a.x = b.x"}},
        {"joins": {"added": ["a.x = b.x"]}},
        {"notes": {5: "people"}},
        {"notes": {"a": {5: {"b": {}}}}},
        {"notes": {"a": {5: 5}}},
        {"notes": {"a": {"columns": {5: "x"}}}},
        {"source_options": 5},
        {"source_options": {"shop": 5}},
        {"file_options": {"*.csv": {"delimiters": ";"}}},
        {"refresh_s": -1.0},
        {"refresh_s": float("nan")},
    ],
)
def test_wrong_tables_are_told_in_words(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        load(tmp_path, given)
    with pytest.raises(UsageError):
        Settings(**given)
