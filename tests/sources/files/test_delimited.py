from __future__ import annotations

import pytest

from dbrag.errors import UsageError

from .conftest import Folder


def test_a_plain_file(folder: Folder) -> None:
    read = folder.read("Sales.csv", "id,name\n1,Ann\n2,Bob\n")
    assert read.table.name == "Sales"
    assert read.columns == {"id": "int64", "name": "string"}
    assert read.rows == [(1, "Ann"), (2, "Bob")]
    assert "delimiter ','" in read.guessed
    assert not read.warned


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_marks_of_encodings_are_no_part_of_the_first_name(folder: Folder, encoding: str) -> None:
    read = folder.read("a.csv", "id,näme\n1,Zoë\n2,Bob\n".encode(encoding))
    assert list(read.columns) == ["id", "näme"]
    assert read.rows[0] == (1, "Zoë")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Straße,Größe\nMünchen – „Süd“,5\nKöln,7\n"),
        ("cp1251", "Город,Число\nМосква,5\nСанкт-Петербург,7\nНовосибирск,9\n"),
        ("shift_jis", "名前,値\n東京都千代田区,1\n大阪府大阪市,2\n北海道札幌市,3\nカタカナ,4\n"),
        ("gb18030", "城市,人口\n北京市朝阳区,5\n上海市浦东新区,7\n广州市天河区,9\n"),
        ("cp850", "Straße,n\nMüllerweg,1\nÄußere Gasse,2\nKöln,3\nDüsseldorf,4\n"),
        ("cp1250", "imię,n\nŁukasz,1\nStanisław,2\nŚwiętosław,3\nWrocław,4\n"),
        ("latin-1", "ville,n\nÉvry,1\nOrléans,2\n"),
    ],
)
def test_other_encodings_are_found(folder: Folder, encoding: str, text: str) -> None:
    read = folder.read("a.csv", text.encode(encoding))
    header, *rows = [line.split(",") for line in text.splitlines()]
    assert list(read.columns) == header
    assert [row[0] for row in read.rows] == [row[0] for row in rows]
    assert "encoding" in read.guessed


def test_an_encoding_can_be_named(folder: Folder) -> None:
    read = folder.read("a.csv", "a,b\nž,1\n".encode("iso8859-2"), encoding="iso8859-2")
    assert read.rows == [("ž", 1)]
    with pytest.raises(UsageError, match="'klingon'"):
        folder.read("a.csv", encoding="klingon")
    with pytest.raises(UsageError, match="not in encoding 'ascii'"):
        folder.read("a.csv", encoding="ascii")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(folder: Folder, delimiter: str) -> None:
    text = "id,name,when\n1,Ann and co,2024-01-02\n2,Bob,2024-01-03\n".replace(",", delimiter)
    assert folder.read("a.csv", text).rows[0][1] == "Ann and co"


def test_a_comma_in_text_is_no_delimiter(folder: Folder) -> None:
    read = folder.read("a.csv", "name;price\nSmith, John;1,50\nDoe, Jane, Ms;2,75\n")
    assert list(read.columns) == ["name", "price"]
    assert read.rows[1][0] == "Doe, Jane, Ms"


def test_numbers_with_decimal_commas_between_semicolons(folder: Folder) -> None:
    read = folder.read("a.csv", "a;b;c\n1,5;2,5;3,5\n4,5;5,5;6,5\n")
    assert [str(cell) for cell in read.rows[0]] == ["1.5", "2.5", "3.5"]


def test_one_column(folder: Folder) -> None:
    read = folder.read("a.csv", "word\nalpha\nbeta\n\ngamma\n")
    assert read.rows == [("alpha",), ("beta",), ("gamma",)]


def test_the_delimiter_that_a_spreadsheet_announces(folder: Folder) -> None:
    assert folder.read("a.csv", "sep=;\r\na;b\r\n1;2\r\n").rows == [(1, 2)]


def test_quotes(folder: Folder) -> None:
    text = 'a,b\r\n"x\r\ny","q""z"\r\n"1, 2",w\r\n,""\r\n'
    read = folder.read("a.csv", text)
    assert read.rows == [("x\r\ny", 'q"z'), ("1, 2", "w"), (None, "")]


def test_empty_cells_in_rows_read_with_care(folder: Folder) -> None:
    read = folder.read("a.csv", 'a,b,c\nx,"",\n,"a,"",b",""\nshort\n')
    assert read.rows == [("x", "", None), (None, 'a,",b', ""), ("short", None, None)]


def test_backslashes_before_quotes(folder: Folder) -> None:
    text = 'a,b\n"say \\"hi\\", ok",2\n"C:\\temp",3\n'
    assert folder.read("a.csv", text).column("a") == ['say "hi", ok', "C:\\temp"]
    text = 'a,b\n"C:\\dir\\",2\n"D:\\other\\",3\n'
    assert folder.read("b.csv", text).column("a") == ["C:\\dir\\", "D:\\other\\"]


def test_blanks_after_delimiters(folder: Folder) -> None:
    text = 'a, b, c\n1, "x, y", 3\n2, "z", 4\n'
    assert folder.read("a.csv", text).rows == [(1, "x, y", 3), (2, "z", 4)]


def test_a_blank_after_each_delimiter(folder: Folder) -> None:
    assert folder.read("a.csv", "id, name\n1, Ann\n2, Bob\n").rows == [(1, "Ann"), (2, "Bob")]
    assert folder.read("b.csv", "id,name\n1, Ann\n2, Bob\n").column("name") == [" Ann", " Bob"]


def test_quotes_that_mean_nothing(folder: Folder) -> None:
    text = 'size\tname\n5" pipe\tx\n"odd\ty\n3\' bar\tz\n'
    read = folder.read("a.tsv", text)
    assert read.column("size") == ['5" pipe', '"odd', "3' bar"]


def test_a_quote_that_is_never_closed(folder: Folder) -> None:
    body = "".join(f"{i},text {i}\n" for i in range(40_000))
    read = folder.read("a.csv", 'id,name\n"0","zero"\n' + body + '7,"open\n8,last\n')
    assert len(read.rows) == 40_003 or "never closed" in read.warned
    assert read.rows[-1][1] is not None


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(folder: Folder, end: str) -> None:
    text = f"a,b{end}1,x{end}{end}2,y"
    assert folder.read("a.csv", text).rows == [(1, "x"), (2, "y")]


def test_ragged_rows_lose_nothing(folder: Folder) -> None:
    read = folder.read("a.csv", "a,b\n1,2\n3\n4,5,6,7\n8,9,\n")
    assert read.rows == [
        (1, 2, None, None),
        (3, None, None, None),
        (4, 5, 6, 7),
        (8, 9, None, None),
    ]
    assert list(read.columns) == ["a", "b", "column_3", "column_4"]
    assert "1 row has fewer cells than 2 (first in line 3)" in read.warned
    assert "1 row has more cells than 2 (first in line 4)" in read.warned


def test_a_delimiter_at_the_end_of_each_line(folder: Folder) -> None:
    read = folder.read("a.csv", "a,b,\n1,2,\n3,4,\n")
    assert list(read.columns) == ["a", "b"]
    read = folder.read("b.csv", "a,b\n1,2,\n3,4,\n")
    assert list(read.columns) == ["a", "b"]
    assert not read.warned


def test_nul_bytes_and_long_cells_are_kept(folder: Folder) -> None:
    long = "x" * 500_000
    read = folder.read("a.csv", f"a,b\n1,p\0q\n2,{long}\n")
    assert read.column("b") == ["p\0q", long]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,a,A", ["a", "a_2", "A_3"]),
        ("a,,b", ["a", "column_2", "b"]),
        ("a_2,a,a", ["a_2", "a", "a_3"]),
        (" a , b,c ", ["a", "b", "c"]),
        ("编号,from,x-y z", ["编号", "from", "x-y z"]),
    ],
)
def test_column_names(folder: Folder, header: str, names: list[str]) -> None:
    assert list(folder.read("a.csv", f"{header}\n1,u,2\n3,v,4\n").columns) == names


def test_headers_of_digits(folder: Folder) -> None:
    read = folder.read("a.csv", "2019,2020,2021\n5,60,700\n8,1,2\n")
    assert list(read.columns) == ["2019", "2020", "2021"]
    read = folder.read("b.csv", "国家,2019,2020\n中国,5,60\n日本,1,2\n")
    assert list(read.columns) == ["国家", "2019", "2020"]
    assert read.column("国家") == ["中国", "日本"]


def test_no_header(folder: Folder) -> None:
    read = folder.read("a.csv", "Ann,23,100.5\nBob,25,120.0\nCid,31,99.1\n")
    assert list(read.columns) == ["column_1", "column_2", "column_3"]
    assert len(read.rows) == 3
    assert "no header" in read.guessed
    assert len(folder.read("b.csv", "1,2\n3,4\n5,7\n").rows) == 3


def test_a_header_can_be_named(folder: Folder) -> None:
    text = "x,y\nfirst,second\n1,2\n"
    assert list(folder.read("a.csv", text, header=2).columns) == ["first", "second"]
    assert folder.read("a.csv", text, header=2).rows == [(1, 2)]
    assert len(folder.read("a.csv", text, header=0).rows) == 3
    assert "no header in line 9" in folder.reason("a.csv", text, header=9)


def test_titles_and_comments_above_the_header(folder: Folder) -> None:
    text = "Report of 2024\n\nname,qty,ok\nx,1,true\ny,2,false\n"
    read = folder.read("a.csv", text)
    assert list(read.columns) == ["name", "qty", "ok"]
    assert "header in line 3" in read.guessed
    read = folder.read("b.csv", "# made by x, on Monday\n# v2\nid,name\n1,a\n2,b\n")
    assert list(read.columns) == ["id", "name"]
    read = folder.read("c.csv", "#,name\n1,a\n2,b\n")
    assert list(read.columns) == ["#", "name"]
    read = folder.read("d.csv", "Report;;;\nname;a;b;c\nx;1;2;3\ny;4;5;6\n")
    assert list(read.columns) == ["name", "a", "b", "c"]


def test_only_a_header(folder: Folder) -> None:
    read = folder.read("a.csv", "id,name\n")
    assert read.columns == {"id": "string", "name": "string"}
    assert read.rows == []


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"   \n"])
def test_empty_files(folder: Folder, content: bytes) -> None:
    assert folder.reason("a.csv", content) == "is empty"


def test_binary_data_is_no_table(folder: Folder) -> None:
    assert "binary" in folder.reason("a.csv", bytes(range(256)) * 100)
    # Short files without a NUL fit some encoding, too.
    assert "binary" in folder.reason("b.csv", bytes(range(1, 256)))
    # A few control characters in a text do not make it binary.
    assert folder.read("c.csv", b"a,b\n1,caf\xe9 \x02\n2,x\n").rows[1] == (2, "x")


def test_rows_beyond_the_sample_are_read_in_full(folder: Folder) -> None:
    body = "".join(f"{i},x{i}\n" for i in range(60_000))
    read = folder.read("a.csv", "id,name\n" + body + 'late,"a\nb"\n')
    assert read.columns["id"] == "string"
    assert len(read.rows) == 60_001
    assert read.rows[-1] == ("late", "a\nb")


def test_the_first_escape_may_come_late(folder: Folder) -> None:
    body = "".join(f'"{i}","x{i}"\n' for i in range(40_000))
    read = folder.read("a.csv", '"id","t"\n' + body + '"7","say \\"hi\\", ok"\n')
    assert read.rows[-1] == (7, 'say "hi", ok')
    assert len(read.rows) == 40_001


def test_a_line_without_end_is_not_read_into_memory(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dbrag.sources.files import encoding

    monkeypatch.setattr(encoding, "_MAX_LINE", 1000)
    monkeypatch.setattr(encoding, "_BLOCK", 600)
    for name in ("a.csv", "a.jsonl"):
        assert "has a line" in folder.reason(name, "x" * 5000)
        assert "has a line" in folder.reason(name, ("é" * 5000).encode("latin-1"))
