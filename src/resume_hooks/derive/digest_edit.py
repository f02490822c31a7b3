"""A digest that the user edits before a handoff: the text for the editor, and the saved result."""

from __future__ import annotations

from resume_hooks.errors import UsageError
from resume_hooks.sessions.lineage_block import remove_block_markers
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING
from resume_hooks.system.text import plain_text

MAX_EDITED_CHARACTERS = 200_000  # the maximum number of characters: about 50,000 tokens

EDITOR_NOTE = """\
# The digest of the work so far. The new session reads it after its lineage and before your next step.
# Edit it and save. These lines at the top, which begin with #, and blank lines are removed.
# To cancel, delete the rest and save, or quit the editor with an error: then no session is made.
"""


def text_for_editor(opening: str) -> str:
    """Return the text for the editor."""
    return f"{EDITOR_NOTE}\n{opening}\n"


def digest_from_editor(text: str) -> str:
    """Return the digest from a saved text, or ``""`` if the user cancelled.

    Raises UsageError if the text is too long. Control characters, lineage block markers and blank
    lines are removed. A line that looks like the heading of the next step is indented, because a
    reader of the child expects that heading after the first blank line.
    """
    rows = [row.rstrip() for row in plain_text(text).split("\n")]
    first_index = next(
        (index for index, row in enumerate(rows) if row and not row.startswith("#")), len(rows)
    )
    used_rows = []
    for row in rows[first_index:]:
        if row:
            used_rows.append(remove_block_markers(row))
    edited_digest = "\n".join(f" {row}" if row == NEXT_STEP_HEADING else row for row in used_rows)
    if len(edited_digest) > MAX_EDITED_CHARACTERS:
        raise UsageError(
            (
                f"The text has {len(edited_digest):,} characters, more than {MAX_EDITED_CHARACTERS:,}, so no "
                "session was made"
            ),
            "Move the long part into a file and name the file.",
        )
    return edited_digest
