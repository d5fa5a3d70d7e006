"""The file of learned pairs: what is read, and that nothing else of it changes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import UsageError
from dbrag.reasoning.learned_file import Pair, fold, parse, read, remove_pairs, write_pair

TEXT = """\
-- about this file

-- question: How many customers?
-- source: shop
SELECT COUNT(*)
FROM customers -- all of them
;
-- my own remark

--  Question : Which cities?
SELECT DISTINCT city FROM customers;
"""


def test_pairs_remarks_and_lines() -> None:
    first, second = parse(TEXT).pairs
    assert first == Pair(
        "How many customers?", "SELECT COUNT(*)\nFROM customers -- all of them", "shop", 3, 8
    )
    assert (second.question, second.source) == ("Which cities?", "")
    assert second.sql == "SELECT DISTINCT city FROM customers"
    assert parse(TEXT).problems == ()
    assert parse(TEXT.replace("\n", "\r\n")).pairs == (first, second)


def test_what_is_no_pair_is_told_with_its_line() -> None:
    text = "SELECT 1;\n-- question:\nSELECT 2\n-- question: a?\n\n-- question: B\nSELECT 3\n"
    text += "-- question: b ?\nSELECT 4\n"
    found = parse(text)
    assert [pair.sql for pair in found.pairs] == ["SELECT 3"]
    assert [line for line, _ in found.problems] == [1, 2, 4, 8]
    assert "line 6" in found.problems[-1][1]


def test_fold() -> None:
    assert fold("  How   MANY customers ?!") == fold("how many customers") == "how many customers"
    assert fold("\uff28ow") == "how"
    assert fold("a-b") != fold("a b")
    assert fold(" ? ") == "?" != fold("...") == "..."


def test_learn_replace_and_forget_leave_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "learned.sql"
    path.write_text(TEXT)
    assert write_pair(path, Pair("New?", "SELECT 9;", "shop")) is None
    assert path.read_text().startswith(TEXT)
    old = write_pair(path, Pair("how many customers", "SELECT 8", "shop"))
    assert old is not None
    assert old.sql.startswith("SELECT COUNT")
    text = path.read_text()
    assert "-- my own remark" in text
    assert "-- about this file" in text
    assert [p.sql for p in read(path).pairs] == [
        "SELECT 8",
        "SELECT DISTINCT city FROM customers",
        "SELECT 9",
    ]
    remove_pairs(path, [p for p in read(path).pairs if p.sql != "SELECT 9"])
    assert [p.sql for p in read(path).pairs] == ["SELECT 9"]
    assert "-- my own remark" in path.read_text()
    assert not list(tmp_path.glob(".learned*"))


def test_a_new_file_explains_itself_and_line_ends_stay(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "learned.sql"
    write_pair(path, Pair("a", "SELECT 1", "s"))
    write_pair(path, Pair("b", "SELECT 2 -- two\n-- end\n", "s"))
    assert path.read_text().startswith("-- Questions and the SQL")
    assert [p.sql for p in read(path).pairs] == ["SELECT 1", "SELECT 2 -- two"]
    path.write_bytes(b"\xef\xbb\xbf-- question: a\r\nSELECT 1\r\n-- question: b\r\nSELECT 2")
    write_pair(path, Pair("c", "SELECT 3"))
    remove_pairs(path, [read(path).pairs[0]])
    assert path.read_bytes() == b"-- question: b\r\nSELECT 2\n\n-- question: c\nSELECT 3;\n\n"


@pytest.mark.skipif(os.name != "posix", reason="links and modes")
def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real.sql", tmp_path / "learned.sql"
    real.write_text(TEXT)
    real.chmod(0o640)
    link.symlink_to(real)
    remove_pairs(link, [read(link).pairs[0]])
    assert link.is_symlink()
    assert len(read(real).pairs) == 1
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    assert read(tmp_path / "none.sql").pairs == ()
    bad = tmp_path / "bad.sql"
    bad.write_bytes(b"-- question: \xff\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        read(bad)
    with pytest.raises(UsageError, match="cannot read"):
        read(tmp_path)
    with pytest.raises(UsageError, match="cannot read"):
        write_pair(bad / "x.sql", Pair("a", "SELECT 1"))


def test_a_statement_that_would_be_read_as_a_pair_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "learned.sql"
    with pytest.raises(UsageError, match="cannot be written") as caught:
        write_pair(path, Pair("a", "SELECT '\n-- question: b\nSELECT 2'", "s"))
    assert "looks like the beginning of a pair" in caught.value.hint
    assert not path.exists()


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.text(st.sampled_from("SELECT x1;'\"\n\r -:question\t\u2028*"), min_size=1, max_size=60),
    st.sampled_from(["", "shop", "a b"]),
)
def test_what_is_written_is_read_again(question: str, sql: str, source: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learned.sql"
        path.write_text(TEXT)
        try:
            write_pair(path, Pair(question, sql, source))
        except UsageError:
            assert path.read_text() == TEXT
            return
        pairs = read(path).pairs
        new = next(p for p in pairs if p.key == (fold(question), source))
        assert new.sql.split() == _bare(sql)
        assert len(pairs) == 3 or fold(question) in (fold(p.question) for p in parse(TEXT).pairs)


def _bare(sql: str) -> list[str]:
    lines = sql.replace("\r\n", "\n").strip().split("\n")
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("--")):
        lines.pop()
    return "\n".join(lines).rstrip().rstrip(";").rstrip().split()


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = parse(text)
    for pair in found.pairs:
        assert pair.sql
        assert pair.question
        assert 1 <= pair.line < pair.end
