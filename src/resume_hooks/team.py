"""``PostgresSessionStore``: a team's session store for programs of the Agent SDK.

A part provides the class by answering ``questions.session_store``. If no installed part answers
this question, the import fails.
"""

from __future__ import annotations

from typing import Any

from resume_hooks import questions, seam


def __getattr__(name: str) -> Any:
    """Load ``PostgresSessionStore`` when it is first used.

    Raise AttributeError if ``name`` is any other name, or if no installed part has the session
    store.
    """
    if name == "PostgresSessionStore":
        for store in seam.find_answers(questions.session_store):
            return store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
