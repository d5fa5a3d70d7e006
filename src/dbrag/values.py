"""Values of any engine, exactly: as JSON and as Arrow."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    import pyarrow as pa

_EXACT_INTEGER = 2**53


def json_value(value: object) -> object:
    """A cell as JSON without loss: what JSON cannot hold exactly becomes a string.

    Decimals, integers beyond 2^53, UUIDs, dates and times become text (ISO 8601),
    binary becomes base64, NaN and infinities (no JSON) become their names.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _EXACT_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal() | UUID():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
        case Mapping():
            return {str(k): json_value(v) for k, v in value.items()}
        case Sequence():
            return [json_value(v) for v in value]
        case _:
            return str(value)


def arrow_array(pa: Any, values: list[Any], type_text: str) -> pa.Array:
    """Values as an Arrow array; falls back to text where no single type holds them."""
    try:
        return pa.array(values, type=None if type_text == "mixed" else pa.type_for_alias(type_text))
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError):
        return pa.array([None if v is None else str(json_value(v)) for v in values], pa.string())
