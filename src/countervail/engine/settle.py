"""One form for each value before rows are compared: the same in every engine.

Whole numbers are 64 bits wide and fractions double; NaN is missing and -0.0 is 0.0; text, days, times and truth values
stay what they are. Spellings of one value (composed letters, `1` for `True`) are brought together later, on distinct
values, by `core.canonical`.
"""

from __future__ import annotations

from typing import Any

from countervail.core.errors import SchemaError


def settled_type(name: str, given: Any) -> Any:
    """The Arrow type of a column once it is settled."""
    import pyarrow as pa

    kind = given.value_type if pa.types.is_dictionary(given) else given
    if pa.types.is_uint64(kind):
        return pa.uint64()
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind):
        return kind
    if pa.types.is_date(kind):
        return pa.date32()
    raise SchemaError(
        f"Column '{name}' holds values of the type {kind}, which cannot be grouped. Unpack or drop it, or make it text."
    )


def settle_column(values: Any, kind: Any) -> Any:
    """An Arrow array or chunked array in its settled form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_decimal(values.type) and pa.types.is_floating(kind):
        values = values.cast(pa.string())  # Arrow's own way from decimals rounds twice
    values = values if values.type == kind else values.cast(kind, safe=False)
    if not pa.types.is_floating(kind):
        return values
    return pc.add(pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values), pa.scalar(0.0, kind))
