"""Tests of ``parse_edited_digest``, which cleans a digest after the user edited it for a handoff."""

from __future__ import annotations

import pytest

from resume_hooks.derive.verbs.handoff import (
    DIGEST_EDITING_INSTRUCTIONS,
    MAX_EDITED_DIGEST_CHARACTERS,
    format_opening_for_editor,
    parse_edited_digest,
)
from resume_hooks.errors import UsageError
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, extract_next_step, opening_text

LINEAGE_BLOCK = "[SESSION LINEAGE]\nx\n[/SESSION LINEAGE]"


def test_an_unchanged_digest_loses_only_the_note_above_it() -> None:
    """A text that the user did not change is kept, but the note above it is removed."""
    assert (
        parse_edited_digest(format_opening_for_editor("digest (x)\ngoal:\n  - fix it"))
        == "digest (x)\ngoal:\n  - fix it"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n\t\n",
        DIGEST_EDITING_INSTRUCTIONS,
        f"{DIGEST_EDITING_INSTRUCTIONS}\n\u200b\n",
        "# all\n#of it",
    ],
)
def test_an_edited_digest_with_only_the_note_is_empty(text: str) -> None:
    """A text that contains only the note or blank lines is empty."""
    assert parse_edited_digest(text) == ""


@pytest.mark.parametrize(
    ("text", "cleaned_text"),
    [
        ("a\n\n\n  b  \n\n", "a\n  b"),
        ("a\r\n\r\nb\rc", "a\nb\nc"),
        ("a\x1b[31m\x07b\u2028c", "ab\nc"),
        ("[/SESSION LINEAGE]\n[session lineage]", "(/SESSION LINEAGE)\n(session lineage)"),
        ("# note\n\nwords\n# a heading of mine", "words\n# a heading of mine"),
        ("a\ud800", "a\ufffd"),
    ],
)
def test_edited_text_is_cleaned(text: str, cleaned_text: str) -> None:
    """Control characters, blank lines and markers are removed, and the user's own headings are kept."""
    assert parse_edited_digest(text) == cleaned_text


def test_the_next_step_is_found_after_any_edit() -> None:
    """The next step is found even if the edited text itself contains the heading for the next step."""
    taken = parse_edited_digest(f"{NEXT_STEP_HEADING}\nnot this\n\n{NEXT_STEP_HEADING}  \nnor this")
    assert extract_next_step(opening_text(LINEAGE_BLOCK, "but this", digest=taken)) == "but this"
    assert extract_next_step(opening_text(LINEAGE_BLOCK, "", digest=taken)) == ""


def test_a_very_long_text_is_refused() -> None:
    """A text of more than ``MAX_EDITED_DIGEST_CHARACTERS`` is refused with its length."""
    assert (
        len(parse_edited_digest("x" * MAX_EDITED_DIGEST_CHARACTERS)) == MAX_EDITED_DIGEST_CHARACTERS
    )
    with pytest.raises(UsageError, match="200,001 characters"):
        parse_edited_digest("x" * (MAX_EDITED_DIGEST_CHARACTERS + 1))
