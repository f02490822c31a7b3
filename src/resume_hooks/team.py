"""``PostgresSessionStore``: the public name of a team's session store for programs of the Agent SDK.

A part supplies the class as its answer to ``questions.session_store``. Without such a part the
import fails.
"""

from __future__ import annotations

from typing import Any

from resume_hooks import questions, seam


def __getattr__(name: str) -> Any:
    """Load the store on first access. Raise AttributeError for any other name."""
    if name == "PostgresSessionStore":
        for store in seam.find_answers(questions.session_store):
            return store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
