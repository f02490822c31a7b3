"""The text that a user edited for a handoff is cleaned before it is used."""

from __future__ import annotations

import pytest

from resume_hooks.derive.verbs.handoff import (
    EDITOR_NOTE,
    MAX_EDITED_CHARACTERS,
    digest_from_editor,
    text_for_editor,
)
from resume_hooks.errors import UsageError
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, extract_next_step, opening_text

BLOCK = "[SESSION LINEAGE]\nx\n[/SESSION LINEAGE]"


def test_unchanged_text_is_kept() -> None:
    """Only our note at the top is removed."""
    assert (
        digest_from_editor(text_for_editor("digest (x)\ngoal:\n  - fix it"))
        == "digest (x)\ngoal:\n  - fix it"
    )


@pytest.mark.parametrize(
    "text", ["", "\n \n\t\n", EDITOR_NOTE, f"{EDITOR_NOTE}\n\u200b\n", "# all\n#of it"]
)
def test_a_text_with_only_the_note_is_empty(text: str) -> None:
    """Such a text cancels the handoff."""
    assert digest_from_editor(text) == ""


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
    assert digest_from_editor(text) == taken


def test_the_next_step_is_found_after_any_edit() -> None:
    """A line of the edit is never taken for the heading of the next step."""
    taken = digest_from_editor(f"{NEXT_STEP_HEADING}\nnot this\n\n{NEXT_STEP_HEADING}  \nnor this")
    assert extract_next_step(opening_text(BLOCK, "but this", digest=taken)) == "but this"
    assert extract_next_step(opening_text(BLOCK, "", digest=taken)) == ""


def test_a_very_long_text_is_refused() -> None:
    """A child's opening is sent with every turn, so a long text belongs in a file."""
    assert len(digest_from_editor("x" * MAX_EDITED_CHARACTERS)) == MAX_EDITED_CHARACTERS
    with pytest.raises(UsageError, match="200,001 characters"):
        digest_from_editor("x" * (MAX_EDITED_CHARACTERS + 1))
