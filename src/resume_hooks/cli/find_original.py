"""``find-original``: where a lineage began."""

from __future__ import annotations

from resume_hooks.cli.lineage import line
from resume_hooks.cli.verbs.sessions import FindOriginalOptions
from resume_hooks.sessions.lineage import Family


def find_original(options: FindOriginalOptions) -> None:
    """Print the oldest ancestor."""
    root = Family(options.where).lineage(options.located().path)[0]
    options.emit(root, lambda: line(root))
