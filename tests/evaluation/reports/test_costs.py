from __future__ import annotations

from pathlib import Path

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.reports.costs import Price, parse_price, read_prices


def test_prices_of_a_file_and_of_a_flag(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(
        '["openai:a"]\nprompt = 0.5\ncompletion = 1.5\n'
        '["x:b"]\nprompt = 1\ncompletion = 2\ncached = 0\ncurrency = "EUR"\n'
    )
    assert read_prices(file) == {
        "openai:a": Price(0.5, 1.5),
        "x:b": Price(1.0, 2.0, 0.0, "EUR"),
    }
    assert parse_price("ollama:m:7b=0,0.25") == ("ollama:m:7b", Price(0.0, 0.25))
    assert parse_price("openai:a=2,8,0.5") == ("openai:a", Price(2.0, 8.0, 0.5))


@pytest.mark.parametrize(
    "text", ["openai:a", "openai:a=1", "=1,2", "openai:a=1,x", "openai:a=1,2,3,4", "a=-1,2",
             "a=nan,1", "a=inf,1"]
)  # fmt: skip
def test_wrong_flags_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="price"):
        parse_price(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"a" = 1', "price of 'a' is not told but 1"),
        ('["a"]\nprompt = 1', "price of 'a' is not told but"),
        ('["a"]\nprompt = 1\ncompletion = "2"', "price completion of 'a' is '2'"),
        ('["a"]\nprompt = true\ncompletion = 2', "price prompt of 'a' is True"),
        ('["a"]\nprompt = 1\ncompletion = 2\ninput = 3', "has no 'input'"),
        ("[", "cannot read the prices"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(UsageError, match=told):
        read_prices(tmp_path / "p.toml")
    with pytest.raises(UsageError, match="cannot read the prices"):
        read_prices(tmp_path / "none.toml")
