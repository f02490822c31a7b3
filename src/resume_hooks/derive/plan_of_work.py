"""The plan that the client's plan mode wrote for a session's work, as a fresh child is told of it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from resume_hooks.paths import Where, open_regular
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions.lineage import Ancestor
from resume_hooks.sessions.lineage_block import without_block_markers
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.head_tail import TITLE_LENGTH, HeadTail

PLANS = "plans"  # in the config home: a Markdown file a plan, which a session's records name by their slug
_SLUG = re.compile(r"[a-z0-9-]{1,200}")
GENERATIONS = 5  # ancestors whose plan is looked for: a fresh child has none of its own until it enters plan mode
_REACH = 4096  # bytes of a plan in which its first line is looked for


def plan_of_work(ends: HeadTail, ancestors: Sequence[Ancestor], where: Where) -> str:
    """The line for the plan of a session, else of its latest ancestor with one; ``ancestors`` stand oldest first."""
    if note := plan_note(ends, where):
        return note
    paths = []
    for row in reversed(ancestors):
        if row.session_file != ends.path:
            paths.append(row.session_file)
    there = [path for path in paths if os.path.isfile(path)][:GENERATIONS]
    return next((note for path in there if (note := plan_note(HeadTail(path), where))), "")


def plan_note(ends: HeadTail, where: Where) -> str:
    """One line that names the plan of a session by its file and its title; ``""`` where it has none."""
    if not _SLUG.fullmatch(ends.slug):
        return ""
    path = os.path.join(where.config, PLANS, f"{ends.slug}.md")
    try:
        with open_regular(path, follow=False) as stream:
            head = stream.read(_REACH).decode("utf-8", "replace")
    except OSError:
        return ""
    title = next((line for row in head.split("\n") if (line := plain_line(row).lstrip("# "))), "")
    if title:
        named = f" ({redact(without_block_markers(one_line(title, TITLE_LENGTH)))[0]})"
    else:
        named = ""
    return (
        f"The plan of this work{named} is the file {without_block_markers(plain_line(path))}: read it "
        "before you go on."
    )
