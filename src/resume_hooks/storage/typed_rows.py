"""Convert rows in this plugin's own files to named tuples. Rows with unexpected types are ignored."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def parse_row(kind: Callable[..., T], row: object) -> T | None:
    """Convert a JSON value to an instance of the named tuple class ``kind``.

    Return None if a field has the wrong type, or if a field without a default is missing. Unknown
    keys of an object are ignored.
    """
    try:
        value: T = _make_row_parser(kind)(row)
    except (KeyError, TypeError, ValueError):
        return None
    return value


@functools.cache
def _make_row_parser(hint: Any) -> Callable[[Any], Any]:
    """Return a function that converts a JSON value to the type ``hint``.

    If ``hint`` is a named tuple class, objects and lists are converted to it. If ``hint`` is a
    tuple type, lists are converted to tuples. Any other value must already have the type ``hint``
    and is returned unchanged.
    """
    if get_origin(hint) is tuple:
        item = _make_row_parser(get_args(hint)[0])
        return lambda rows: tuple(map(item, _require_type(list, rows)))
    if not hasattr(hint, "_fields"):
        return lambda value: _require_type(hint, value)
    fields = {}
    for name, field_type in get_type_hints(hint).items():
        fields[name] = _make_row_parser(field_type)

    def make_named_tuple(row: Any) -> Any:
        values: Mapping[str, Any] = (
            dict(zip(fields, row, strict=True)) if type(row) is list else _require_type(dict, row)
        )
        return hint(
            **{name: field(values[name]) for name, field in fields.items() if name in values}
        )

    return make_named_tuple


def _require_type(kind: type[T], value: object) -> T:
    """Return a value if its type is exactly ``kind``, else raise TypeError. True is not an int."""
    if type(value) is not kind:
        raise TypeError
    return value
