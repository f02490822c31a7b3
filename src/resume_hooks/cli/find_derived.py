"""``find-derived``: what came from a session."""

from __future__ import annotations

import io

from resume_hooks.cli.lineage import line
from resume_hooks.cli.verbs.sessions import FindDerivedOptions
from resume_hooks.sessions.lineage import Descendant, Family

WIDEST_LABEL = 160  # columns of a title of wide letters and its kind


def find_derived(options: FindDerivedOptions) -> None:
    """Print the descendants."""
    session = options.located(foreign=True)
    family = Family(options.where)
    found = family.descendants(session.session_id)
    if not options.everything:
        parents = {child.parent_session_id for child in found}
        found = [c for c in found if c.row.session_id in parents or not family.is_given_up(c.row)]
    data = {"session_id": session.session_id, "rows": [child.row for child in found]}

    def text() -> str:
        if not found:
            return f"Nothing came from {session.session_id} yet."
        return _tree(session.session_id, found) if options.tree else "\n".join(line(child.row) for child in found)

    options.emit(data, text)


def _tree(root_id: str, found: list[Descendant]) -> str:
    # rich draws the tree; it loads only for this view.
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    branches = {root_id: Tree(Text(root_id))}
    for child in found:
        label = Text(f"{child.row.title} · {child.row.kind}\n{child.row.session_id}")
        branches[child.row.session_id] = branches[child.parent_session_id].add(label)
    out = io.StringIO()
    # Never wrapped: an id cut in two can't be copied. A generation is four columns deeper than its parent.
    width = WIDEST_LABEL + 4 * len(found)
    Console(file=out, width=width, no_color=True).print(branches[root_id])
    return out.getvalue().rstrip("\n")
