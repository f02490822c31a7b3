"""The trigger table: which prompts are ours, and what they ask for.

A prompt is ours only from its very first character; everything else passes untouched. Standard library, Python 3.9.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

from resume_hooks import seam

PLUGIN = "resume-hooks"

BROUGHT = seam.triggers()
"""The triggers of parts."""

ALIASES = {
    "continue": "resume",
    "session-id": "session",
    **{alias: each.name for each in BROUGHT for alias in each.aliases},
}
_ALONE = frozenset({"session", "lineage", "help", "recover-context", *(each.name for each in BROUGHT if each.alone)})
VERBS = frozenset({"resume", "handoff", "rollover", "trim", "search", *_ALONE, *(each.name for each in BROUGHT)})
UNASKED = "fsck"
"""What the module inside the client asks by itself, with nobody having typed it; who fails there is silent."""
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_TRIGGER = re.compile(rf"(?:>|/{PLUGIN}:)([a-z-]+?)(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)
_PASTE_TAG = re.compile(r"\s*</?pasted_content\b[^<>]*>")
"""What recent clients put around a long paste; what stands in it is the user's."""
_TAIL = rf"(?:/resume\s+{_UUID}|claude --resume {_UUID}|/clear)\s*\Z"
_PASTED = re.compile(_TAIL, re.IGNORECASE)
_ALONE_NAMES = "|".join(sorted(_ALONE | {alias for alias, verb in ALIASES.items() if verb in _ALONE}))
_PASTED_ALONE = re.compile(rf"(?:>|/{PLUGIN}:)(?:{_ALONE_NAMES})\s*{_TAIL}", re.IGNORECASE)
_PASTED_ID = re.compile(rf"(?:>|/{PLUGIN}:)(?:resume|continue|session|session-id)({_UUID})\s*\Z", re.IGNORECASE)
_SIGN = rf"(?:>|/{PLUGIN}:)"
_ASKING = "|".join(["trim", *(each.name for each in BROUGHT if each.asks)])
_RETYPED = re.compile(rf"{_SIGN}({_ASKING})(?=[\s>/]|\Z)", re.IGNORECASE)
_NAMES = "|".join(sorted({*VERBS, *ALIASES}, key=len, reverse=True))
_STACKED = re.compile(rf"(?:{_SIGN}(?:{_NAMES}))+(?={_SIGN}(?:{_NAMES})(?:\s|\Z))", re.IGNORECASE)
_WORDS = re.compile(r"(?!(?:yes|no|cancel|help)\b)[^\W\d_]+[,:;]?\s+[^\W\d_]", re.IGNORECASE)
_YES = re.compile(r"\S+\s+yes\s*\Z", re.IGNORECASE)


class Trigger(NamedTuple):
    """A recognised prompt.

    ``verb`` is one of ``VERBS``; ``text`` what followed it; ``slash`` whether the slash form was used;
    ``pasted`` whether the prompt ends in a command that was pasted over left-over text; ``hooked`` whether a hook asks,
    and not the body of a slash command where hooks are off.
    """

    verb: str
    text: str
    slash: bool
    pasted: bool
    hooked: bool = True


def recognise(prompt: str) -> Optional[Trigger]:
    """The trigger that a prompt is, or None: then it is the user's and passes."""
    slash = prompt[:1] == "/"
    stacked = _STACKED.match(prompt)  # typed behind a bare trigger that came back into the box
    prompt = _last_typed(prompt[stacked.end() :] if stacked else prompt)
    if _PASTED_ID.match(prompt):
        return Trigger("resume", "", slash, pasted=True)
    if _is_pasted_over(prompt):
        return Trigger(_verb_of(prompt), _text_before_paste(prompt), slash, pasted=True)
    found = _TRIGGER.match(prompt)
    if found is None:
        return None
    verb = _canonical(found.group(1))
    text = _PASTE_TAG.sub("", found.group(2) or "").strip()
    if verb not in VERBS or (text and verb in _ALONE) or (text and not slash and _is_prose(verb, text, prompt)):
        return None
    return Trigger(verb, text, slash, pasted=False)


def _is_prose(verb: str, text: str, prompt: str) -> bool:
    """Whether what begins like a ``>`` trigger is a sentence, ``>resume the work``, or a quote of several lines."""
    if verb in {"resume", "trim"} and _WORDS.match(text):
        return True
    others = [line for line in prompt.split("\n")[1:] if line.strip()]
    return bool(others) and all(line.startswith(">") for line in others)


def _last_typed(prompt: str) -> str:
    """Of a trigger that asks, typed over the same one that came back into the box, the last; others as they are.

    Options of a trim hold no trigger; the text of others may speak of one: behind a space only the exact yes counts.
    """
    found = _RETYPED.match(prompt)
    if found is None:
        return prompt
    verb = found.group(1).lower()
    again = re.finditer(rf"{_SIGN}{verb}(?=\s|\Z)", prompt, re.IGNORECASE)
    starts = [one.start() for one in again]
    if verb != "trim":
        starts = [start for start in starts if _is_typed_over(prompt, start)]
    return prompt[starts[-1] :] if starts else prompt


def _is_typed_over(prompt: str, start: int) -> bool:
    """Whether a trigger within a prompt was typed behind it, and is no word of it."""
    return start == 0 or not prompt[start - 1].isspace() or _YES.match(prompt, start) is not None


def _is_pasted_over(prompt: str) -> bool:
    """Whether a command of ours or ``/clear`` was pasted behind a trigger.

    A trigger that fires only alone is no trigger before other words: ``>help me understand /clear`` passes.
    """
    verb = _verb_of(prompt)
    if verb in _ALONE:
        return _PASTED_ALONE.match(prompt) is not None
    return verb in VERBS and _PASTED.search(prompt[-120:]) is not None


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
    return ALIASES.get(word, word)
