"""The plan from the client's plan mode, as it appears in the opening of a fresh child."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from resume_hooks.paths import Where, open_regular
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.lineage import Ancestor
from resume_hooks.sessions.lineage_block import remove_block_markers
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS, HeadTail

# a folder in the config home with one Markdown file per plan; a session's records contain the
# plan's slug
PLANS_FOLDER = "plans"
_SLUG = re.compile(r"[a-z0-9-]{1,200}")
# the maximum number of ancestors that are searched; a fresh child has no plan of its own until it
# enters plan mode
MAX_ANCESTORS = 5
_MAX_HEAD_BYTES = 4096  # the number of bytes of a plan that are searched for its first line


def find_plan_note(ends: HeadTail, ancestors: Sequence[Ancestor], where: Where) -> str:
    """Return the line for the plan of a session, or for the plan of its latest ancestor that has one.

    ``ancestors`` start with the oldest.
    """
    if note := format_plan_note(ends, where):
        return note
    paths = []
    for ancestor in reversed(ancestors):
        if ancestor.session_file != ends.path:
            paths.append(ancestor.session_file)
    existing_paths = [path for path in paths if os.path.isfile(path)][:MAX_ANCESTORS]
    return next(
        (note for path in existing_paths if (note := format_plan_note(HeadTail(path), where))), ""
    )


def format_plan_note(ends: HeadTail, where: Where) -> str:
    """Return a line with the file and the title of a session's plan, or ``""`` if the session has no plan."""
    if not _SLUG.fullmatch(ends.slug):
        return ""
    path = os.path.join(where.config, PLANS_FOLDER, f"{ends.slug}.md")
    try:
        with open_regular(path, follow=False) as stream:
            head = stream.read(_MAX_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    title = next((line for row in head.split("\n") if (line := plain_line(row).lstrip("# "))), "")
    if title:
        title_in_brackets = (
            f" ({redact(remove_block_markers(collapse_line(title, MAX_TITLE_CHARACTERS)))[0]})"
        )
    else:
        title_in_brackets = ""
    return (
        f"The plan of this work{title_in_brackets} is the file {remove_block_markers(plain_line(path))}: read it "
        "before you continue."
    )
