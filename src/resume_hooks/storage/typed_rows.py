"""Parse rows of our own notes by a type's hints; rows of another form are ignored."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read_as(kind: Callable[..., T], row: object) -> T | None:
    """Convert a JSON value to a named tuple; return None if a field is missing or of another type.

    Extra fields are ignored.
    """
    try:
        value: T = _reader(kind)(row)
    except (KeyError, TypeError, ValueError):
        return None
    return value


@functools.cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return a parser for a type: a named tuple from an object or a list, a tuple from a list, a plain value as is."""
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
    """Return a value of exactly this type (True is not a number). Raise TypeError otherwise."""
    if type(value) is not kind:
        raise TypeError
    return value
