"""What runs took: milliseconds, tokens, and money where prices are given."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from dbrag.errors import UsageError
from dbrag.evaluation.reports.document import DASH, Block, Paragraph, plain, table
from dbrag.evaluation.reports.runs import Run
from dbrag.evaluation.summary import quantile
from dbrag.models.registry import LOCAL

FORMAT = 'prices look like: ["openai:gpt-3.5-turbo"] prompt = 0.5, completion = 1.5, cached = 0.25'
_KINDS = ("prompt", "cached", "completion")


@dataclass(frozen=True, slots=True)
class Price:
    """Of a remote model, per million tokens.

    ``cached`` is that of prompt tokens which the provider remembered; None: that of others.
    """

    prompt: float
    completion: float
    cached: float | None = None
    currency: str = "USD"


def read_prices(path: Path) -> dict[str, Price]:
    """Prices by model from a TOML file, a table for each ``"provider:name"``.

    Raises:
        UsageError: it cannot be read, or says something else.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the prices {str(path)!r}: {error}", FORMAT) from error
    return {model: _price(model, told) for model, told in data.items()}


def parse_price(text: str) -> tuple[str, Price]:
    """``MODEL=PROMPT,COMPLETION[,CACHED]``, per million tokens.

    Raises:
        UsageError: it is written otherwise.
    """
    model, equals, rest = text.rpartition("=")
    numbers = rest.split(",")
    if not equals or not model or len(numbers) not in (2, 3):
        raise UsageError(f"no price but {text!r}", "write MODEL=PROMPT,COMPLETION[,CACHED]")
    keys = ("prompt", "completion", "cached")
    try:
        told = {key: float(number) for key, number in zip(keys, numbers, strict=False)}
    except ValueError as error:
        raise UsageError(
            f"no price but {text!r}", "write MODEL=PROMPT,COMPLETION[,CACHED]"
        ) from error
    return model, _price(model, told)


def _price(model: str, told: Any) -> Price:
    if not isinstance(told, dict) or not {"prompt", "completion"} <= told.keys():
        raise UsageError(f"the price of {model!r} is not told but {told!r:.80}", FORMAT)
    unknown = told.keys() - {"prompt", "completion", "cached", "currency"}
    if unknown:
        raise UsageError(f"the price of {model!r} has no {min(unknown)!r}", FORMAT)
    for key in _KINDS:
        value = told.get(key, 0.0)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not (0 <= value < math.inf)
        ):
            raise UsageError(f"the price {key} of {model!r} is {value!r}", FORMAT)
    cached = told.get("cached")
    return Price(
        float(told["prompt"]),
        float(told["completion"]),
        None if cached is None else float(cached),
        str(told.get("currency", "USD")),
    )


def tokens_of(run: Run) -> dict[str, int]:
    """Tokens of the whole run: ``prompt`` (with those that are ``cached``) and ``completion``.

    ``cache_hits`` counts replies that dbrag remembered: they took none.
    """
    kinds = (*_KINDS, "cache_hits")
    told = [record.get("tokens") or {} for record in run.records]
    return {kind: sum(int(one.get(kind, 0)) for one in told) for kind in kinds}


def cost(run: Run, prices: Mapping[str, Price]) -> tuple[float, str] | None:
    """What the chat model of a run cost, with the currency; None where nobody told the price.

    A local model costs 0, and so does a run that asks none.
    """
    if run.model is None or run.model.startswith(LOCAL):
        return 0.0, ""
    price = prices.get(run.model)
    if price is None:
        return None
    tokens = tokens_of(run)
    cached = price.prompt if price.cached is None else price.cached
    fresh = tokens["prompt"] - tokens["cached"]
    total = fresh * price.prompt + tokens["cached"] * cached
    return (total + tokens["completion"] * price.completion) / 1e6, price.currency


def cost_blocks(runs: Sequence[Run], prices: Mapping[str, Price]) -> list[Block]:
    """Time, tokens and money of every run."""
    header = ["run", "model", "n", "ms, median", "ms, 95th percentile", "prompt tokens", "cached"]
    header += ["completion", "remembered replies", "cost of the run", "of 1,000 questions"]
    rows = [_row(run, prices) for run in runs if run.records]
    blocks: list[Block] = [table(header, rows, "Time and tokens are those of a question")]
    stages = _stages([run for run in runs if run.records])
    blocks.append(Paragraph(_TOLD))
    return [*blocks, *stages]


_TOLD = (
    "Tokens are means. A local model costs 0, as does a run that asks none; “unknown”: no price "
    "was given (`--price`, `--prices`). Not in it: what a remote encoder costs, and the tokens of "
    "questions that failed before they told them. Remembered replies cost neither tokens nor time "
    "in this run. Seconds of two runs can only be compared where the machine was equally busy."
)


def _row(run: Run, prices: Mapping[str, Price]) -> list[str]:
    seconds = [float(record["seconds"]) for record in run.records if "seconds" in record]
    n, tokens = len(run.records), tokens_of(run)
    asked = any(tokens.values())
    paid = cost(run, prices)
    return [
        plain(run.name),
        plain(run.model or "none"),
        f"{n:,}",
        _ms(median(seconds)) if seconds else DASH,
        _ms(quantile(seconds, 0.95)) if seconds else DASH,
        *(f"{tokens[kind] / n:,.0f}" if asked else "0" for kind in _KINDS),
        f"{tokens['cache_hits']:,}",
        _money(paid),
        _money(paid and (1000 * paid[0] / n, paid[1])),
    ]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f}" if seconds >= 0.01 else f"{1000 * seconds:.2g}"


def _money(paid: tuple[float, str] | None) -> str:
    if paid is None:
        return "unknown"
    amount, currency = paid
    return f"{amount:.4g} {currency}".strip() if amount else "0"


def _stages(runs: Sequence[Run]) -> list[Block]:
    names = list(
        dict.fromkeys(n for run in runs for r in run.records for n in r.get("stages") or ())
    )
    if not names:
        return []
    rows = []
    for run in runs:
        told = {
            name: [r["stages"][name] for r in run.records if name in (r.get("stages") or {})]
            for name in names
        }
        if any(told.values()):
            means = [_ms(fmean(s)) if s else DASH for s in told.values()]
            rows.append([plain(run.name), *means])
    return [table(["run", *names], rows, "Milliseconds by stage, means")]
