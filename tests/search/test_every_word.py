"""Tests with real sessions: any word of a message finds the message."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tantivy import Query

from resume_hooks.paths import Where
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.tokenize import forms_of_word
from resume_hooks.search.query import COMMON_WORDS
from resume_hooks.search.record_text import MAX_SEARCHED_CHARACTERS, make_display_text
from resume_hooks.search.result import SearchResult
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from resume_hooks.search.sources import Sources
from tests.needs import corpus_sessions

MAX_SESSION_BYTES = 400_000  # Maximum size in bytes of the sessions that the tests use.
RECORD_COUNT = 400  # Number of records whose words the tests use.
EXAMPLE_COUNT = 60 if os.environ.get("RUN_ALL") == "1" else 15
UNKNOWN_WORDS = ("xqzvwk", "vvqqjx7", "qjxqjxq")
"""Words that no text contains and that resemble no other word."""


class RealMessages:
    """A home with real sessions, and the words of some of their records."""

    def __init__(self, where: Where, texts: list[list[str]]) -> None:
        self.where = where
        self.texts = texts

    def search(self, *words: str, other_wordings: Sequence[str] = ()) -> SearchResult:
        """Search all messages for the words."""
        return search_index(
            [" ".join(words)],
            Scope(include_helpers=True),
            self.where,
            other_wordings=other_wordings,
        )


@pytest.fixture(scope="module")
def real_messages(tmp_path_factory: pytest.TempPathFactory) -> RealMessages:
    """Index the small sessions of the corpus and return the words of random records."""
    home = tmp_path_factory.mktemp("said")
    where = Where({"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")})
    for number, folder in enumerate(sorted({path.parent for path in corpus_sessions()})):
        for path in sorted(folder.glob("*.jsonl")):
            if path.stat().st_size <= MAX_SESSION_BYTES:
                project = Path(where.projects, f"-corpus-{number}")
                project.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, project)
    with open_index(where) as index:
        records = index.postings.find_records(Query.all_query(), 100_000)
        sources = Sources(index, (), where)
        drawn = [
            sources.read_text(record) for record in random.Random(3).sample(records, RECORD_COUNT)
        ]
    texts = [make_display_text(text).displayed_text for text in drawn if text]
    words = [text[: MAX_SEARCHED_CHARACTERS // 2].split() for text in texts]
    assert len(words) > RECORD_COUNT // 2
    return RealMessages(where, [found for found in words if found])


def indexed_words(words: list[str]) -> list[str]:
    """Return the words that the index accepts and that are not too frequent."""
    plain = (word for text in words for word in re.findall(r"\w+", text))
    return [word for word in plain if word.casefold() not in COMMON_WORDS and forms_of_word(word)]


@settings(max_examples=EXAMPLE_COUNT, deadline=None)
@given(data=st.data())
def test_any_word_gives_a_hit(real_messages: RealMessages, data: st.DataObject) -> None:
    """A search finds any indexed word, even if the query also has unknown and frequent words."""
    words = indexed_words(data.draw(st.sampled_from(real_messages.texts)))
    if not words:
        return
    word = data.draw(st.sampled_from(words))
    others = data.draw(st.lists(st.sampled_from([*UNKNOWN_WORDS, *COMMON_WORDS]), max_size=9))
    place = data.draw(st.integers(0, len(others)))
    found = real_messages.search(*others[:place], word, *others[place:])
    assert found.hits, word


def test_unknown_words_find_nothing(real_messages: RealMessages) -> None:
    """Unknown words find nothing and do not hide the hits of other wordings."""
    assert not real_messages.search(*UNKNOWN_WORDS).hits
    assert real_messages.search(*UNKNOWN_WORDS, other_wordings=real_messages.texts[0][:3]).hits


@settings(max_examples=EXAMPLE_COUNT, deadline=None)
@given(text_index=st.integers(0, RECORD_COUNT), word_index=st.integers(0, 1_000))
def test_a_quoted_phrase_gives_a_strong_hit(
    real_messages: RealMessages, text_index: int, word_index: int
) -> None:
    """A phrase of four consecutive words of a text gives a strong first hit."""
    words = real_messages.texts[text_index % len(real_messages.texts)]
    start = word_index % len(words)
    phrase = " ".join(words[start : start + 4])
    if not forms_of_word(phrase) or re.search('["\u201c-\u201f\u00ab\u00bb]', phrase):
        return
    found = real_messages.search(f'"{phrase}"')
    assert found.hits, phrase
    assert all(hit.missing_words == () for hit in found.hits)
    assert found.hits[0].strength == "strong"
