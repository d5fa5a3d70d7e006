"""Which Arrow type DuckDB gets for a column, where files disagree or it lacks the type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.sources.statements import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_DUCKDB_DIGITS = 38
_INTEGER_DIGITS = 20
"""Of the largest 64-bit number."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How one column is read.

    Attributes:
        type: Arrow type asked of the files; None: it cannot be read at all.
        sql: what DuckDB makes of it; None: nothing. Filters on it stay in DuckDB:
            Arrow cannot compare it as it lies in the file.
        comment: for people, where it is not read as it is written.
    """

    type: Any
    sql: str | None = None
    comment: str = ""


def reading(name: str, types: Sequence[Any]) -> Reading:
    """How to read a column that has these types in its files, each once.

    Args:
        name: of the column.
        types: Arrow types.
    """
    import pyarrow as pa

    # A column without any value agrees with every type.
    types = [one for one in types if not pa.types.is_null(one)] or types[:1]
    targets = [readable(one) for one in types]
    if any(target is None for target in targets):
        kind = next(one for one, target in zip(types, targets, strict=True) if target is None)
        return Reading(None, comment=f"left out: DuckDB has no type for {kind}")
    target, comment = targets[0], ""
    for other in targets[1:]:
        target = _common(target, other)
        if target is None:
            kinds = ", ".join(map(str, types))
            return Reading(None, comment=f"left out: its files disagree on its type: {kinds}")
    if len(set(targets)) > 1:
        comment = f"types differ between its files ({', '.join(map(str, types))})"
    own = quoted(name)
    extensions = {one.extension_name for one in types if isinstance(one, pa.BaseExtensionType)}
    if extensions == {"arrow.uuid"} and len(types) == 1:
        return Reading(target, f"CAST(hex({own}) AS UUID)")
    if extensions == {"arrow.json"} and len(types) == 1:
        return Reading(target, f"CAST({own} || '' AS JSON)")
    if extensions == {"arrow.bool8"} and len(types) == 1:
        return Reading(target, f"({own} + 0 <> 0)")
    if _is_text(target) and not all(_is_text(one) or pa.types.is_null(one) for one in types):
        if not comment:
            comment = f"{types[0]}, read as text"
        return Reading(target, f"({own} || '')", comment)
    if extensions:
        return Reading(target, _barrier(target, own), comment)
    return Reading(target, comment=comment)


def readable(kind: Any) -> Any:
    """The Arrow type, changed where DuckDB cannot read it; None if it never can."""
    import pyarrow as pa
    import pyarrow.types as t

    if isinstance(kind, pa.BaseExtensionType):
        return readable(kind.storage_type)
    if t.is_null(kind):
        return pa.string()
    if t.is_float16(kind):
        return pa.float32()
    if t.is_decimal256(kind):
        fits = kind.precision <= _DUCKDB_DIGITS
        return pa.decimal128(kind.precision, kind.scale) if fits else pa.string()
    if t.is_dictionary(kind):
        return readable(kind.value_type)
    if t.is_run_end_encoded(kind) or t.is_union(kind) or kind == pa.month_day_nano_interval():
        return None
    return _nested(kind)


def _nested(kind: Any) -> Any:
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_map(kind):
        key, item = readable(kind.key_type), readable(kind.item_type)
        if (key, item) == (kind.key_type, kind.item_type):
            return kind
        return None if key is None or item is None else pa.map_(key, item)
    if t.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        types = [readable(field.type) for field in fields]
        if any(one is None for one in types):
            return None
        return pa.struct([f.with_type(one) for f, one in zip(fields, types, strict=True)])
    if t.is_nested(kind):  # the kinds of lists
        value = readable(kind.value_type)
        if value == kind.value_type:
            return kind
        if value is None:
            return None
        if t.is_fixed_size_list(kind):
            return pa.list_(value, kind.list_size)
        return pa.large_list(value) if t.is_large_list(kind) else pa.list_(value)
    return kind


def _common(one: Any, other: Any) -> Any:
    """A type that holds both without loss, or text; None if there is none."""
    import pyarrow as pa
    import pyarrow.types as t

    if one == other:
        return one
    pair = (one, other)
    if any(map(t.is_uint64, pair)) and any(map(t.is_signed_integer, pair)):
        return pa.decimal128(20, 0)
    if any(map(t.is_decimal, pair)) and all(t.is_decimal(k) or t.is_integer(k) for k in pair):
        return _common_decimal(pair)
    if any(map(t.is_date, pair)) and any(t.is_timestamp(k) and k.tz is None for k in pair):
        return next(k for k in pair if t.is_timestamp(k))
    try:
        merged = pa.unify_schemas(
            [pa.schema([("c", kind)]) for kind in pair], promote_options="permissive"
        )
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None if any(map(_has_no_text, pair)) else pa.string()
    return merged.field("c").type


def _common_decimal(pair: Sequence[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.types as t

    scale = max(kind.scale if t.is_decimal(kind) else 0 for kind in pair)
    whole = max(
        kind.precision - kind.scale if t.is_decimal(kind) else _INTEGER_DIGITS for kind in pair
    )
    fits = scale + whole <= _DUCKDB_DIGITS
    return pa.decimal128(scale + whole, scale) if fits else pa.string()


def _has_no_text(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(t.is_nested(kind) or _is_binary(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(
        t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_binary_view(kind)
        or t.is_fixed_size_binary(kind)
    )


def _barrier(kind: Any, own: str) -> str:
    """The column itself, written so that DuckDB does not hand filters on it to Arrow."""
    if _is_text(kind):
        return f"({own} || '')"
    return f"({own} || ''::BLOB)" if _is_binary(kind) else f"coalesce({own}, NULL)"
