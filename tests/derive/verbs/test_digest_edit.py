"""The text that a user edited for a handoff is cleaned before it is used."""

from __future__ import annotations

import pytest

from resume_hooks.derive.verbs.handoff import (
    EDITOR_NOTE,
    MAX_EDITED_CHARACTERS,
    format_text_for_editor,
    parse_edited_digest,
)
from resume_hooks.errors import UsageError
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, extract_next_step, opening_text

BLOCK = "[SESSION LINEAGE]\nx\n[/SESSION LINEAGE]"


def test_unchanged_text_is_kept() -> None:
    """Only our note at the top is removed."""
    assert (
        parse_edited_digest(format_text_for_editor("digest (x)\ngoal:\n  - fix it"))
        == "digest (x)\ngoal:\n  - fix it"
    )


@pytest.mark.parametrize(
    "text", ["", "\n \n\t\n", EDITOR_NOTE, f"{EDITOR_NOTE}\n\u200b\n", "# all\n#of it"]
)
def test_a_text_with_only_the_note_is_empty(text: str) -> None:
    """Such a text cancels the handoff."""
    assert parse_edited_digest(text) == ""


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("a\n\n\n  b  \n\n", "a\n  b"),
        ("a\r\n\r\nb\rc", "a\nb\nc"),
        ("a\x1b[31m\x07b\u2028c", "ab\nc"),
        ("[/SESSION LINEAGE]\n[session lineage]", "(/SESSION LINEAGE)\n(session lineage)"),
        ("# note\n\nwords\n# a heading of mine", "words\n# a heading of mine"),
        ("a\ud800", "a\ufffd"),
    ],
)
def test_edited_text_is_cleaned(text: str, taken: str) -> None:
    """Control characters, blank lines and markers are removed. The user's own headings stay."""
    assert parse_edited_digest(text) == taken


def test_the_next_step_is_found_after_any_edit() -> None:
    """A line of the edit is never taken for the heading of the next step."""
    taken = parse_edited_digest(f"{NEXT_STEP_HEADING}\nnot this\n\n{NEXT_STEP_HEADING}  \nnor this")
    assert extract_next_step(opening_text(BLOCK, "but this", digest=taken)) == "but this"
    assert extract_next_step(opening_text(BLOCK, "", digest=taken)) == ""


def test_a_very_long_text_is_refused() -> None:
    """A child's opening is sent with every turn, so a long text belongs in a file."""
    assert len(parse_edited_digest("x" * MAX_EDITED_CHARACTERS)) == MAX_EDITED_CHARACTERS
    with pytest.raises(UsageError, match="200,001 characters"):
        parse_edited_digest("x" * (MAX_EDITED_CHARACTERS + 1))
