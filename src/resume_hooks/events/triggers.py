"""The trigger table: which prompts are ours, and what they ask for.

A prompt is ours only from its very first character; everything else passes untouched. Standard library, Python 3.9.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

PLUGIN = "resume-hooks"

_ALIASES = {"continue": "resume", "session-id": "session"}
_ALONE = frozenset({"session", "lineage", "help", "recover-context"})
_VERBS = frozenset({"resume", "handoff", "rollover", "trim", "checkpoint", "rewind", "search", *_ALONE})
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TRIGGER = re.compile(rf"(?:>|/{PLUGIN}:)([a-z-]+?)(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)
_TAIL = rf"(?:/resume\s+{_UUID}|claude --resume {_UUID}|/clear)\s*\Z"
_PASTED = re.compile(_TAIL, re.IGNORECASE)
_PASTED_ALONE = re.compile(
    rf"(?:>|/{PLUGIN}:)(?:session|session-id|lineage|help|recover-context)\s*{_TAIL}", re.IGNORECASE
)
_PASTED_ID = re.compile(rf"(?:>|/{PLUGIN}:)(?:resume|continue|session|session-id)({_UUID})\s*\Z", re.IGNORECASE)
_TRIM = re.compile(rf"(?:>|/{PLUGIN}:)trim(?=\s|\Z)", re.IGNORECASE)


class Trigger(NamedTuple):
    """A recognised prompt.

    ``verb`` is one of ``_VERBS``; ``text`` what followed it; ``slash`` whether the slash form was used;
    ``pasted`` whether the prompt ends in a command that was pasted over left-over text.
    """

    verb: str
    text: str
    slash: bool
    pasted: bool


def recognise(prompt: str) -> Optional[Trigger]:
    """The trigger that a prompt is, or None: then it is the user's and passes."""
    slash = prompt[:1] == "/"
    prompt = _last_trim(prompt)
    if _PASTED_ID.match(prompt):
        return Trigger("resume", "", slash, pasted=True)
    if _is_pasted_over(prompt):
        return Trigger(_verb_of(prompt), _text_before_paste(prompt), slash, pasted=True)
    found = _TRIGGER.match(prompt)
    if found is None:
        return None
    verb = _canonical(found.group(1))
    text = (found.group(2) or "").strip()
    if verb not in _VERBS or (text and verb in _ALONE):
        return None
    return Trigger(verb, text, slash, pasted=False)


def _last_trim(prompt: str) -> str:
    """Of several ``>trim`` in a row the last: the answer to a preview, typed over the one that came back into the box.

    Any other prompt as it is.
    """
    if not re.match(rf"(?:>|/{PLUGIN}:)trim(?=[\s>/]|\Z)", prompt, re.IGNORECASE):
        return prompt
    starts = [found.start() for found in _TRIM.finditer(prompt)]
    return prompt[starts[-1] :] if starts else prompt


def _is_pasted_over(prompt: str) -> bool:
    """Whether a command of ours or ``/clear`` was pasted behind a trigger.

    A trigger that fires only alone is no trigger before other words: ``>help me understand /clear`` passes.
    """
    verb = _verb_of(prompt)
    if verb in _ALONE:
        return _PASTED_ALONE.match(prompt) is not None
    return verb in _VERBS and _PASTED.search(prompt[-120:]) is not None


def _text_before_paste(prompt: str) -> str:
    """What stands between the verb and the pasted command."""
    rest = re.sub(rf"\A(?:>|/{PLUGIN}:)[a-z-]+", "", prompt, count=1, flags=re.IGNORECASE)
    return _PASTED.sub("", rest).strip()


def _verb_of(prompt: str) -> str:
    """The verb at the start, also where a pasted ``/command`` follows it without a space."""
    found = re.match(rf"(?:>|/{PLUGIN}:)([a-z-]+)(?=[\s/])", prompt, re.IGNORECASE)
    return _canonical(found.group(1)) if found else ""


def _canonical(word: str) -> str:
    word = word.lower()
    return _ALIASES.get(word, word)
