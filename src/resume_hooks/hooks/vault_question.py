"""The vault's one question, inside the client: whether to copy what Claude Code deletes."""

from __future__ import annotations

from typing import Any

from resume_hooks import settings
from resume_hooks.archive.vault import first_use_notice
from resume_hooks.paths import Where
from resume_hooks.storage.stored_settings import store
from resume_hooks.system.invocation import typed

QUESTION = (
    "Claude Code is about to delete sessions for their age. Shall resume-hooks keep copies of what it deletes, up to "
    "{room}, in a private folder?"
)
ANSWERS = {"Keep copies": "vault on", "Keep none": "vault off", "Not now: links hold them meanwhile": "later"}
"""What answers it, and the word that says it; the last one is also what no answer means."""


def answer(word: str, where: Where) -> dict[str, Any]:
    """The question, or what came of its answer; ``{}`` where there is none. ResumeHooksError, OSError."""
    if word.startswith("vault "):
        value = store("vault", word.split()[1], where)
        first_use_notice.settle(where)
        other = "off" if value != "off" else "on"
        return {"text": f"vault is {value}. To change it, in a shell: {typed(f'config vault {other}')}"}
    if word or not first_use_notice.take(where):
        return {}
    return {
        "ask": QUESTION.format(room=settings.VAULT.replace("G", " GB")),
        "choices": [list(row) for row in ANSWERS.items()],
    }
