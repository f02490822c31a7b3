"""Differences on the page: what an edit took away and what it put there, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache

from resume_hooks.reading.export.page.markup import Html, element, joined

MOST = 400  # lines on either side that are compared; of longer texts all goes and all comes
AROUND = 3  # equal lines that are shown on either side of a change

SIGNS = {"del": "-", "ins": "+", "same": " ", "gap": ""}


def difference(old: str, new: str) -> Html:
    """The change from one text to another."""
    rows = [element("span", f"{SIGNS[kind]} {line}\n" if SIGNS[kind] else f"{line}\n", class_=f"d-{kind}")
            for kind, line in _compared(old, new)]  # fmt: skip
    return element("div", element("pre", element("code", joined(rows)), tabindex="0"), class_="code diff")


def changed(old: str, new: str) -> tuple[int, int]:
    """How many lines went and how many came."""
    kinds = [kind for kind, _ in _compared(old, new)]
    return kinds.count("del"), kinds.count("ins")


@lru_cache(maxsize=8)  # a call asks for what changed, then for the change
def _compared(old: str, new: str) -> tuple[tuple[str, str], ...]:
    return tuple(_rows(_split(old), _split(new)))


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _rows(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    if max(len(old), len(new)) > MOST or not old:
        yield from (("del", line) for line in old)
        yield from (("ins", line) for line in new)
        return
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for place, group in enumerate(matcher.get_grouped_opcodes(AROUND)):
        if place:
            yield "gap", "⋯"
        for what, a, b, c, d in group:
            if what == "equal":
                yield from (("same", line) for line in old[a:b])
            else:
                yield from (("del", line) for line in old[a:b])
                yield from (("ins", line) for line in new[c:d])
