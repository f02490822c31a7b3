"""Expressions that are compiled when they are first used: a reader of few secrets waits for few of them."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    """Stands in for a pattern until one of its methods is asked for."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._text), name)
        setattr(self, name, method)
        return method


def late(text: bytes) -> re.Pattern[bytes]:
    """The pattern of an expression, compiled when it is first used."""
    return cast("re.Pattern[bytes]", _Late(text))
