"""Tests that a redaction starts and ends at whole characters and keeps the neighboring text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.redaction import indicator_words, positional_secrets, program_options
from resume_hooks.redaction.json_lines import redact_bytes, redact_line
from resume_hooks.redaction.notations import NOTATIONS
from resume_hooks.redaction.texts import redact
from tests.redaction.examples import Example, examples

EXAMPLE_SHARE_COUNT = 8
"""The examples are divided among this many tests, so that several workers can run them."""


def clean_in_record(text: str, clean: Callable[[bytes], bytes], *, is_ascii: bool) -> str:
    """Put the text in a record, redact the record with ``clean``, and return the text from the result."""
    line = json.dumps({"message": {"content": text}}, ensure_ascii=is_ascii).encode()
    content = json.loads(clean(line).decode())["message"]["content"]
    assert isinstance(content, str)
    return content


CleanText = Callable[[str], str]


@pytest.fixture(scope="module")
def clean_functions() -> list[CleanText]:
    """Return functions that redact a text directly, in a file, in a line of JSON, or inside JSON in JSON."""
    return [
        lambda text: redact(text)[0],
        lambda text: redact_bytes(text.encode())[0].decode(),
        lambda text: clean_in_record(text, lambda line: redact_line(line)[0], is_ascii=True),
        lambda text: clean_in_record(text, lambda line: redact_line(line)[0], is_ascii=False),
        lambda text: json.loads(redact(json.dumps(text))[0]),
    ]


NEIGHBOR_CHARACTERS = "…—“”•→·\u00a0\u2028漢。🔑é\u0301"
PASSWORD_CHARACTERS = "é\u0301"
"""Characters that a password may contain. They are not tried next to a secret that may be a
password."""

ESCAPE_CHARACTER = "\x1b"
"""A terminal hides this character together with the space after it.

The text before the character then touches the secret.
"""


@pytest.mark.parametrize("share_index", range(EXAMPLE_SHARE_COUNT))
def test_every_rule_keeps_neighboring_characters(
    clean_functions: list[CleanText], share_index: int
) -> None:
    """Every rule keeps the characters directly before and after a secret.

    These characters have two, three or four bytes.
    """
    for one in examples()[share_index::EXAMPLE_SHARE_COUNT]:
        letters = "".join(
            sign
            for sign in NEIGHBOR_CHARACTERS
            if not (one.allows_any_letter and sign in PASSWORD_CHARACTERS)
        )
        for clean in clean_functions:
            alone = clean(one.text)
            assert alone != one.text, one.name
            for sign in letters:
                assert clean(f"{sign}{one.text}{sign}") == f"{sign}{alone}{sign}", one.name


@given(
    st.deferred(lambda: st.sampled_from(examples())),
    st.text(st.characters(codec="utf-8", exclude_characters=ESCAPE_CHARACTER), max_size=3),
    st.text(st.characters(codec="utf-8", min_codepoint=0x2000), min_size=1, max_size=3),
)
@settings(max_examples=300)
def test_any_neighboring_characters_are_kept(
    clean_functions: list[CleanText], example: Example, before: str, after: str
) -> None:
    """Redaction keeps any characters before and after a secret."""
    for clean in clean_functions:
        text = clean(f"{before} {example.text}{after}")
        assert text.startswith(before)
        assert text.endswith(after)


def test_every_indicator_word_and_pattern_has_an_example() -> None:
    """Every indicator word and every pattern has an example.

    Whoever adds a word must therefore add a form to ``planted``.
    """
    texts = [one.text.encode() for one in examples() if one.allows_any_letter]
    assert all(
        any(word in text.lower() for text in texts) for word in indicator_words.HANDLERS_BY_WORD
    )
    patterns = [
        *(row.argument_pattern for row in program_options.PASSWORD_OPTIONS),
        *positional_secrets.COMMAND_PATTERNS.values(),
        *positional_secrets.PHRASE_PATTERNS.values(),
        *program_options.SECRET_WORD_COMMAND_PATTERNS,
        *(way.value_pattern for way in NOTATIONS),
    ]
    assert not [pattern for pattern in patterns if not any(pattern.search(text) for text in texts)]


@given(
    st.lists(
        st.sampled_from([*indicator_words.HANDLERS_BY_WORD, b"=", b" ", b"s", b"1234"]), max_size=12
    ).map(b"".join)
)
def test_one_search_finds_all_indicator_words(lower_case_text: bytes) -> None:
    """One search for all indicator words finds the same positions as a separate search for each word."""
    alone = [
        place
        for text, word in indicator_words.HANDLERS_BY_WORD.items()
        for place in word.find_candidate_positions(
            lower_case_text,
            [match.start() for match in re.finditer(b"(?=%b)" % re.escape(text), lower_case_text)],
        )
    ]
    assert list(indicator_words.positions_of_indicator_words(lower_case_text)) == alone
