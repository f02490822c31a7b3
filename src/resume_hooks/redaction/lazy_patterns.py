"""Compile regular expressions when they are first used, so that the program starts quickly."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """A substitute for a pattern. It compiles the pattern when one of its methods is first used."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method


def compile_lazily(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled when it is first used."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))
