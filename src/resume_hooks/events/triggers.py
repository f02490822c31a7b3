"""The trigger table: which prompts are ours, and what they ask for.

A prompt is ours only from its very first character; everything else passes untouched. Standard library, Python 3.9.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

PLUGIN = "resume-hooks"

_ALIASES = {"continue": "resume", "session-id": "session"}
_ALONE = frozenset({"session", "lineage", "help"})
_VERBS = frozenset({"resume", "handoff", *_ALONE})
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TRIGGER = re.compile(rf"(?:>|/{PLUGIN}:)([a-z-]+?)(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)
_PASTED = re.compile(rf"(?:/resume\s+{_UUID}|/clear)\s*\Z", re.IGNORECASE)
_PASTED_ID = re.compile(rf"(?:>|/{PLUGIN}:)(?:resume|continue|session|session-id)({_UUID})\s*\Z", re.IGNORECASE)


class Trigger(NamedTuple):
    """A recognised prompt.

    ``verb`` is resume, handoff, session, lineage or help; ``text`` what followed it; ``slash`` whether the slash
    form was used; ``pasted`` whether the prompt ends in a command that was pasted over left-over text.
    """

    verb: str
    text: str
    slash: bool
    pasted: bool


def recognise(prompt: str) -> Optional[Trigger]:
    """The trigger that a prompt is, or None: then it is the user's and passes."""
    slash = prompt[:1] == "/"
    pasted_id = _PASTED_ID.match(prompt)
    if pasted_id:
        return Trigger("resume", "", slash, pasted=True)
    if _starts_like_one(prompt) and _PASTED.search(prompt[-120:]):
        return Trigger(_verb_of(prompt), "", slash, pasted=True)
    found = _TRIGGER.match(prompt)
    if found is None:
        return None
    verb = _canonical(found.group(1))
    text = (found.group(2) or "").strip()
    if verb not in _VERBS or (text and verb in _ALONE):
        return None
    return Trigger(verb, text, slash, pasted=False)


def _starts_like_one(prompt: str) -> bool:
    return _verb_of(prompt) in _VERBS


def _verb_of(prompt: str) -> str:
    """The verb at the start, also where a pasted ``/command`` follows it without a space."""
    found = re.match(rf"(?:>|/{PLUGIN}:)([a-z-]+)(?=[\s/])", prompt, re.IGNORECASE)
    return _canonical(found.group(1)) if found else ""


def _canonical(word: str) -> str:
    word = word.lower()
    return _ALIASES.get(word, word)
