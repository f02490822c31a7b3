"""A title for a session that nobody named: what its first prompts ask for, in the user's words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from resume_hooks.reading.digest.prose import cut, sentences, typed_text

MOST = 5  # sentences of a prompt that are looked at
READ = 4_000  # characters of it
SHORTEST = 5  # bytes of a title; "hello" and "go on" say nothing of the work

_COMMAND = re.compile(r"\s*/\S+\s*")
_HEADING = re.compile(r"^#{1,3}[ \t]+(?:plan|goal|task)?(?:[ \t]*:[ \t]*|\b)(\S[^\n]*)", re.IGNORECASE | re.MULTILINE)
_ASKING = re.compile(
    r"""\A(?:
      (?:hi|hello|hey)(?:[ ]+(?:claude|there|again))?\b | (?:good[ ])?morning\b | thanks?(?:[ ]you)?\b
    | please\b | ok(?:ay)?\b | so\b | well\b | now\b | first\b(?!\s+\w+:) | alright\b
    | (?:can|could|would|will)[ ](?:you|we|i)\b(?:[ ]help(?:[ ]me)?\b)?
    | (?:i|we)(?:'d[ ]like|[ ]would[ ]like|[ ]want|[ ]need)(?:[ ]you)?(?:[ ]to)?\b
    | (?:i[ ]think[ ])?we[ ]should\b | let.?s\b | help[ ]me\b | your[ ](?:task|job|goal)[ ]is[ ]to\b
    )[\s,.!:;-]*""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a request begins that says nothing of what is asked."""


def goal_title(prompts: Iterable[str]) -> str:
    """What the first prompt that asks for something asks for; ``""`` where none does.

    Of a plan that was pasted behind a colon it is the heading; what the client put into a prompt and the polite
    beginning of a request go, and a command without a word behind it says nothing.
    """
    for prompt in prompts:
        typed = typed_text(prompt[:READ])
        if _COMMAND.fullmatch(typed):
            continue
        for sentence, _ in zip(sentences(typed), range(MOST), strict=False):
            heading = _HEADING.search(typed) if sentence.endswith(":") else None
            words = _bare(heading[1] if heading else sentence)
            if len(words.encode()) > SHORTEST:
                return cut(words)
    return ""


def _bare(sentence: str) -> str:
    """A request without what says nothing of it."""
    words = re.sub(r"https?://(?:www\.)?", "", sentence).strip()
    while begun := _ASKING.match(words):
        words = words[begun.end() :].rstrip("?")
    return words.rstrip(" .:;,")
