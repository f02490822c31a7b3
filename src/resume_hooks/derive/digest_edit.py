"""A digest that the user edits before a handoff is made: the text that the editor opens, and what is used of it."""

from __future__ import annotations

from resume_hooks.errors import UsageError
from resume_hooks.sessions.lineage_block import without_block_markers
from resume_hooks.sessions.opening_layout import NEXT_STEP
from resume_hooks.system.text import plain_text

MAX_EDITED = 200_000  # characters: about as many as a context of 50,000 tokens holds

NOTE = """\
# What the fresh session is told of the work so far, after its lineage and before your next step.
# Change it as you like and save. These lines at the top, which begin with #, and blank lines are left out.
# To cancel, save nothing but them, or end the editor with an error: then no session is made.
"""


def digest_to_edit(opening: str) -> str:
    """The text that the editor opens."""
    return f"{NOTE}\n{opening}\n"


def edited_digest(text: str) -> str:
    """What is used of a saved text; ``""`` if it cancels. UsageError if it is too long.

    Without control characters, markers of a lineage block, blank lines, and lines that would pass
    for the head of the next step: a reader of the child finds that behind the first blank line
    after the digest.
    """
    rows = [row.rstrip() for row in plain_text(text).split("\n")]
    first = next((at for at, row in enumerate(rows) if row and not row.startswith("#")), len(rows))
    used = []
    for row in rows[first:]:
        if row:
            used.append(without_block_markers(row))
    edited = "\n".join(f" {row}" if row == NEXT_STEP else row for row in used)
    if len(edited) > MAX_EDITED:
        raise UsageError(
            (
                f"The text has {len(edited):,} characters, more than {MAX_EDITED:,}, so no "
                "session was made"
            ),
            "Put what is long into a file and name the file.",
        )
    return edited
