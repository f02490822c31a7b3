"""Tests of finding the claims in a sentence, such as names, numbers and quotes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.reading.summary_check import ANY_RECORD_WORD, find_claims, split_text_into_words


def claims_of(sentence: str) -> list[str]:
    """Return the claims of a sentence, each claim once."""
    return list(dict.fromkeys(claim.shown_text for claim in find_claims(sentence)))


def has_all_claims(sentence: str, text: str) -> bool:
    """Check whether a sentence has claims and a text contains all of them."""
    low = text.lower().encode()
    claims = find_claims(sentence)
    assert claims
    return all(
        {*claim.words} & {ANY_RECORD_WORD, *split_text_into_words(text)}
        and (claim.pattern is None or claim.pattern.search(low))
        for claim in claims
    )


@pytest.mark.parametrize(
    ("sentence", "claims"),
    [
        ("Mended src/parser.py and its tests.", ["src/parser.py"]),
        ("Renamed parseLine to parse_line in `Lexer`.", ["Lexer", "parseLine", "parse_line"]),
        ("Ran `pytest -k tabs -q` twice.", ["pytest -k tabs -q", "pytest", "tabs"]),
        ("All 212 tests pass in 3.4 s.", ["212", "3.4"]),
        ('The user said "keep the tabs".', ["keep the tabs"]),
        (
            "Merged as 0a1b2c3d, see https://example.org/pull/72.",
            ["0a1b2c3d", "https://example.org/pull/72"],
        ),
        ("Two of 3 attempts, e.g. the first, took about 120 s and ~40 MB (lines 12-30).", []),
        ('A "dry run" is no quote; nothing to look up and/or to find here.', []),
    ],
)
def test_names_numbers_and_quotes_are_claims(sentence: str, claims: list[str]) -> None:
    """Names, files, commands, numbers, quotes and addresses are claims.

    Prose, small or round numbers, and line numbers are not.
    """
    assert claims_of(sentence) == claims


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Mended `src/parser.py`.", "edited /home/me/proj/src/Parser.py"),
        ("Mended `/home/me/src/parser.py:12`.", "M src/parser.py"),
        ("Calls `parse_line()`.", "def parse_line(text):"),
        ("`SessionStates` are kept.", "type SessionState struct"),
        ("It has 12,345 rows.", "rows=12345"),
        ("It has 12345 rows.", "12,345 rows"),
        ("It took 120 ms.", "in 120ms"),
        ("It took 3.45s.", "3.45 s, 3.45s"),
        ("It is 77em wide.", "width: 77em"),
        ('They asked to "Keep the tabs, please".', "keep the\n  tabs: please!"),
        ('They said "keep the tabs ... in every file".', "keep the tabs; and spaces in every file"),
        ("Committed as 0a1b2c3d4e.", "[main 0a1b2c3] wip"),
        ("`git add -A && git commit -m wip` worked.", "$ git add -A\n$ git commit -m 'wip'"),
    ],
)
def test_equal_forms_of_a_claim_match(sentence: str, text: str) -> None:
    """A claim is found in a text even if the letter case, folder, separator or line break differs."""
    assert has_all_claims(sentence, text)


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Mended `src/parser.py`.", "src/parser.pyc my-parser.py src/parser.ts"),
        ("All 212 tests pass.", "2120 tests, 1.212, 212\tdef f(): and 212→x"),
        ('The user said "drop the tabs".', "drop all the tabs"),
        ("Committed as 0a1b2c3d4e.", "[main 10a1b2c3] wip"),
        ("`git push --force origin` worked.", "git push origin --force"),
        ("`make docs` worked.", "make the docs"),
    ],
)
def test_different_claims_do_not_match(sentence: str, text: str) -> None:
    """A claim is not found in a text that contains only a similar file, number, word or command."""
    assert not has_all_claims(sentence, text)


@given(st.text(max_size=300))
def test_a_sentence_supports_its_own_claims(sentence: str) -> None:
    """Each claim of a sentence is found in that sentence, whatever the sentence contains."""
    words = {*split_text_into_words(sentence)}
    for claim in find_claims(sentence):
        assert {*claim.words} & {ANY_RECORD_WORD, *words}
        assert claim.shown_text


@pytest.mark.parametrize(
    "piece", ["`", '"', "a/", "[", "(:1", ".", "*", "1,", "a_b ", '"a b c" ', "`a b` ", "::", "~1 "]
)
def test_hostile_sentences_are_read_quickly(piece: str) -> None:
    """The claims in a hostile sentence of 16,000 characters are found within two seconds."""
    begun = time.perf_counter()
    find_claims(piece * (16_000 // len(piece)))
    assert time.perf_counter() - begun < 2
