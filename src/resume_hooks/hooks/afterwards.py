"""What follows an answer that changed a setting for good: the change is told, and one key takes it back.

Invariant: what no answer means takes it back, so that no key that was meant for something else decides for ever.
"""

from __future__ import annotations

from typing import Any

KEEP, UNDO = "keep ", "undo "
"""What stands before the word of the answer that is told."""

CHOICES = (("Keep it", KEEP), ("Undo it (Esc does, too)", UNDO))


def keep_or_undo(told: str, word: str) -> dict[str, Any]:
    """The question once the setting is stored: ``told`` says what it does now, ``word`` was the answer."""
    return {"ask": told, "choices": [[label, before + word] for label, before in CHOICES]}


def decided(word: str) -> tuple[str, str]:
    """``KEEP`` or ``UNDO`` and the word that it is about; two empty strings for any other word."""
    for before in (KEEP, UNDO):
        if word.startswith(before):
            return before, word.removeprefix(before)
    return "", ""
