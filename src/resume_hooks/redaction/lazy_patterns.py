"""Expressions that are compiled when they are first used: whoever uses few waits for few."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Late:
    """Stands in for a pattern until one of its methods is asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method


def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The pattern of an expression, compiled when it is first used."""
    return cast("re.Pattern[AnyStr]", _Late(text, flags))
