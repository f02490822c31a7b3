"""The public name of a team's store for programs of the Agent SDK, ``PostgresSessionStore``.

The class is what a part answers to ``questions.session_store``; where none does, its import fails.
"""

from __future__ import annotations

from typing import Any

from resume_hooks import questions, seam


def __getattr__(name: str) -> Any:
    """The store, loaded when it is asked for. AttributeError for any other name."""
    if name == "PostgresSessionStore":
        for store in seam.answers(questions.session_store):
            return store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
