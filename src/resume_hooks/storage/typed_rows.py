"""Rows of our own notes read by the type hints of a value; a row of another form is ignored."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read_as(kind: Callable[..., T], row: object) -> T | None:
    """A value of JSON as a named tuple; None where a field is missing or of another type.

    It may have more fields.
    """
    try:
        value: T = _reader(kind)(row)
    except (KeyError, TypeError, ValueError):
        return None
    return value


@functools.cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Reads what a hint says: a named tuple out of an object or a list, a tuple out of a list, a plain value itself."""
    if get_origin(hint) is tuple:
        item = _reader(get_args(hint)[0])
        return lambda rows: tuple(map(item, _exactly(list, rows)))
    if not hasattr(hint, "_fields"):
        return lambda value: _exactly(hint, value)
    fields = {}
    for name, each in get_type_hints(hint).items():
        fields[name] = _reader(each)

    def read(row: Any) -> Any:
        named: Mapping[str, Any] = (
            dict(zip(fields, row, strict=True)) if type(row) is list else _exactly(dict, row)
        )
        return hint(**{name: field(named[name]) for name, field in fields.items() if name in named})

    return read


def _exactly(kind: type[T], value: object) -> T:
    """A value of exactly this type: True is not a number."""
    if type(value) is not kind:
        raise TypeError
    return value
