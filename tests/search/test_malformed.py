"""Whatever is typed is words: no query raises anything but a UsageError, and none reaches SQLite as syntax."""

from __future__ import annotations

import os
import random

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.search import engine
from resume_hooks.search.engine import SearchResult, find
from resume_hooks.search.index.connect import OpenIndex, opened_index
from resume_hooks.search.query import parse
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome
from tests.search.asking import search, talk

PIECES = [
    '"', "'", "\u201c", "AND", "OR", "NOT", "NEAR", "NEAR(linter tuned, 3)", "*", "lint*", "^", "^linter", "(", ")",
    ":", "prompt:", "words : linter", "{prompt reply}:", "-", "--", "+", "-linter", '-"the linter"', "\x00", "\ud800",
    "\udfff", "\n", "\t", " ", "linter", "tuned", '"the linter"', '""', '"a', "%", "_", ";", "/*", "*/",
    "' OR 1=1 --", "\\", "$(x)", "`", "\u200f", "\x1b[31m", "\u00e9", "日本", "\U0001f389", "\u0130", "\u00df",
    "a.b.c", "x" * 70, "x" * 300, "C++", "#1",
]  # fmt: skip


QUERIES = 1_000 if os.environ.get("RUN_ALL") == "1" else 200


def test_many_queries(config_home: ConfigHome) -> None:
    """Each is answered, or refused as holding no word; the index is used as it is, and lasts."""
    talk(config_home, 1, "the linter is tuned", "OR NOT near prompt: reply")
    chance = random.Random(4)
    with opened_index(config_home.where) as index:
        for _ in range(QUERIES):
            words = [chance.choice(PIECES) + chance.choice(["", " "]) for _ in range(chance.randrange(1, 10))]
            _ask(index, words if chance.random() < 0.5 else ["".join(words)])
    assert search(config_home, "linter").total == 1


def _ask(index: OpenIndex, words: list[str]) -> SearchResult | None:
    try:
        query = parse(words)
    except UsageError:
        return None
    # The index is opened once: what is asked about here is what comes after that.
    return engine._search(index, query, Scope(), 5, Where()) if query.terms else None


@pytest.mark.parametrize(
    "query",
    [
        "linter " * 15_000,
        '"' + "the linter is " * 8_000 + '"',
        '"a" ' * 25_000,
        "-a " * 30_000 + "linter",
        "linter." * 15_000,
        "\u65e5\u672c" * 16_000,
        " ".join(f'"w{number} linter"' for number in range(6_000)),
        " ".join(f"-w{number}" for number in range(12_000)) + " linter",
        '"' * 100_001 + "linter",
        "(" * 100_000 + "linter" + ")" * 10,
    ],
    ids=lambda query: query[:12],
)
def test_a_hundred_kilobytes(config_home: ConfigHome, query: str) -> None:
    """A pasted page is answered by the index that there is: not too deep for SQLite, nothing thrown away."""
    talk(config_home, 1, "the linter is tuned")
    found = find([query], Scope(), config_home.where)
    assert found.notes == []
    assert len(found.how) < 6_000
