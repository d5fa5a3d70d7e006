"""The budget of a program prompt, and the estimate it is kept by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.models.testing import FunctionModel
from dbrag.reasoning.token_budget import LOCAL_TOKENS, REMOTE_TOKENS, prompt_budget, tokens_of
from dbrag.settings import Settings

# Counted with the vocabulary and merges of Qwen2.5-Coder-1.5B-Instruct.
COUNTED = [
    ("CREATE TABLE singer (\n  singer_id INTEGER PRIMARY KEY,\n  name TEXT\n)", 16),
    ("-- 1 | Joe Sharp | Netherlands | You | 1992 | 52 | F", 22),
    ("How many singers do we have from Lisbon?", 9),
    ("FOREIGN KEY (stadium_id) REFERENCES stadium (stadium_id)", 15),
    ("cust_id_nm_qty_amt_dt_xref_flg_cd_addr_ln", 12),
    ("KpVvBzXqIdNmZtKpVvBzXqIdNm", 22),
    ("qwzxkvbnrtplmdghsjcf", 10),
    ("a3f09bc2e1d477604ffab8", 19),
    ("550e8400-e29b-41d4-a716-446655440000", 34),
    ("TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5", 25),
    ("\u7576\u6211\u5011\u4e00\u8d77\u8d70\u904e\u9577\u8def", 7),
    ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", 5),
    ("\U0001f600\U0001f680\U0001f9ff", 3),
    ("2024-03-05 17:45:09.123456", 26),
    ("!#%&*()-=+[]{};:,.<>/?", 15),
]
"""(text, tokens)."""


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_the_estimate_is_not_below_what_the_default_model_counts(text: str, tokens: int) -> None:
    assert tokens <= tokens_of(text) <= 4 * tokens


@given(st.text(max_size=300))
def test_the_estimate_is_never_more_than_the_bytes(text: str) -> None:
    assert tokens_of(text) <= len(text.encode("utf-8", "replace"))


@given(st.text(max_size=300))
def test_the_estimate_is_never_less_than_a_third_of_the_letters(text: str) -> None:
    assert 3 * tokens_of(text) >= len("".join(text.split()).encode("utf-8", "replace"))


@given(st.text(max_size=80), st.text(max_size=80))
def test_parts_take_at_least_what_they_take_together(one: str, other: str) -> None:
    assert tokens_of(f"{one}\n{other}") == tokens_of(one) + 1 + tokens_of(other)


def budget(settings: Settings, *, remote: bool = False, context: int = 8192) -> int:
    model = FunctionModel(lambda _: "", remote=remote, context_tokens=context)
    return prompt_budget(settings, model)


def test_the_default_depends_on_the_model() -> None:
    assert budget(Settings()) == LOCAL_TOKENS == 3000
    assert budget(Settings(), remote=True, context=128_000) == REMOTE_TOKENS == 12_000


def test_a_reply_and_a_repair_find_room_in_the_context() -> None:
    settings = Settings(prompt_tokens=50_000, program_tokens=800)
    assert budget(settings) == 8192 - 2 * 800 - 300
    assert budget(settings, context=2048) == 1024


def test_the_setting_wins() -> None:
    assert budget(Settings(prompt_tokens=1234)) == 1234
    assert budget(Settings(prompt_tokens=20_000), remote=True, context=128_000) == 20_000
