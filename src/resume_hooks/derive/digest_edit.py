"""The opening of a digest in an editor: what the user sees there, and what is taken of what they saved."""

from __future__ import annotations

from resume_hooks.errors import UsageError
from resume_hooks.sessions.lineage_block import unmarked
from resume_hooks.sessions.opening_records import NEXT_STEP
from resume_hooks.system.text import plain

LONGEST = 20_000
"""Characters of an edited opening: more than five times what we would write, and the child stays quick to read."""

NOTE = """\
# What the fresh session is told of the work so far, after its lineage and before your next step.
# Change it as you like and save. These lines at the top, which begin with #, and blank lines are left out.
# To cancel, save nothing but them, or end the editor with an error: then no session is made.
"""


def to_edit(opening: str) -> str:
    """The text that the editor opens."""
    return f"{NOTE}\n{opening}\n"


def saved(text: str) -> str:
    """What is taken of a saved text; ``""`` where it cancels. UsageError where it is too long.

    No control characters, no marker of a lineage block, no blank line, and no line that would pass for the head of
    the next step: a reader of the child finds that behind the first blank line after the digest.
    """
    rows = [row.rstrip() for row in plain(text).split("\n")]
    first = next((at for at, row in enumerate(rows) if row and not row.startswith("#")), len(rows))
    kept = [unmarked(row) for row in rows[first:] if row]
    found = "\n".join(f" {row}" if row == NEXT_STEP else row for row in kept)
    if len(found) > LONGEST:
        raise UsageError(
            f"The text has {len(found):,} characters, more than {LONGEST:,}, so no session was made",
            "Put what is long into a file and name the file.",
        )
    return found
