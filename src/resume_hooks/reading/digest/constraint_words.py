"""Which sentences of the user's say how the work is to be done.

Precision before recall: what is found is told to the model as fact. A question, a joke, a doubt, a line of code or of a
log is none, whatever words it has; neither is a sentence that never asks for anything.
"""

from __future__ import annotations

import re

from resume_hooks.reading.digest.prose import is_question

_FILLER = "and|but|or|please|then|so|also|ok|okay|yes|yeah|no|just|now|hm+"

_DEMAND = re.compile(
    rf"""(?:\A\W*(?:/\S+\s+)?|[,;:.\u2013\u2014-]\s+|\b(?:{_FILLER})\b[ ,:.-]*)  # where a clause begins, an imperative
      (?:(?:do\s+not|don'?t|never|always|avoid|stop|prefer|ensure|make\s+sure|be\s+sure|remember|keep|stick\s+to|use|leave|
           no\s+longer|let'?s\s+(?:not|use|keep|only|set|rename|cut|leave|stick|avoid|prefer|drop|skip|call|go\s+with))\s+\S
      | (?:add|write|run|follow|create|do|fix|put|call|commit|push|check|delete|remove)\b[^?]*
        \b(?:only|first(?=\W*\Z|[,;.]|\s\()|instead|but\s+not|before\s+\w+ing|don'?t|for\s+now|no\s+\w+|never|always
           |as\s+\w+\s+as)\b)
    | (?<!\bi\s)\b(?:must|should|shall|(?:has|have|ought|is|are)\s+to)(?:\s+(?:not|never|always|also|be))*\s+\w
    | \b(?:must|should)n'?t\b
    | \b(?:we|you|it|they|that|this)\s+(?:only\s+)?needs?\s+to\b
    | \b(?:we|you|i)\s+(?:\w+ly\s+)?(?:do\s+not|don'?t)\s+(?:want|need|use|allow|do|commit|push)\b
    | \b(?:we|i)\s+(?:\w+ly\s+)?(?:want|prefer|insist|require)\b(?!\s+to\s+(?:analy|see|know|understand|check|look|ask))
    | \bi(?:'d|\s+would)\s+(?:rather|prefer)\b | \bfrom\s+now\s+on\b | \bno\s+longer\s+(?:use|do|need|want)\b
    | \bas\s+\w+\s+as\s+possible\b | \bat\s+(?:most|least)\s+\d | \A\W*only\s+\w
    | \b(?:is|are)\s+(?:forbidden|not\s+allowed|required|mandatory)\b
    | \b(?:instead\s+of|rather\s+than)\b | \binstead\W*\Z | ,\s+not\s+\w+[\w\s]*\W*\Z
    | \b(?:nunca|siempre|jamais|toujours|niemals|immer|muss|sempre|nicht|kein\w*|nie|mai)\b
    | 반드시 | 하지\s?마 | 말고 | 항상 | 절대 | 해야 | 不要 | 必须 | 总是 | 只能 | 務必 | 必ず | しないで
    """,
    re.IGNORECASE | re.VERBOSE,
)

_NOT_MEANT = re.compile(
    r"""[\U0001F600-\U0001F606\U0001F61C\U0001F61D\U0001F923\U0001F643] | [;:]-?[)DP](?!\w)
    | \b(?:lol|lmao|rofl|ha(?:ha)+|hehe|jk|just\ kidding|i\ wonder|wondering|i\ guess|maybe|perhaps|not\ sure|we\ could
        |i\ don'?t\ (?:understand|know|think|see|get)|(?:is|are)\ never)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What makes of a demand a joke, a doubt, or no demand at all."""

_ASKS = re.compile(
    rf"""\W*(?:(?:{_FILLER}|sure|q|question)\b[,:.\s]*)*
    (?:(?:can|could|should|shall|would|will|do|does|did|are|is|was|were|have|has)(?:n'?t)?\s+
         (?:i|we|you|it|they|there|this|that|the|these|those)\b
      |(?:why|what|how|where|which|who|when)(?:'s)?\s+
         (?:is|are|do|does|did|was|were|would|should|can|could|exactly|hard|many|much|happens)\b
      |(?:tell|show|explain|remind)\s+(?:to\s+)?me\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""How a question begins that nobody ended in a question mark."""

_MACHINE = re.compile(
    r"""\s*(?://|/\*|(?:agent|assistant|user|human):|[\u00d7✗✓✖➜\u276f$>|│└├]|=>|\d+[.:]\d|\[[+\d]|"[\w-]+":
         |(?:error|warn|warning|npm)\b|at\s\S+\()
    | .*(?:\bnpm\ err|[{;]\s*\Z) | .*(?:[,(\u2013\u2014]|\s(?:the|or|and|to|a|of|that))\s*\Z
    | ["'\u201c].*["'\u201d]\W*\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A line of code or of a log, half a sentence as a paste has it, a quote of somebody else's."""


def demands(sentence: str) -> bool:
    """Whether a sentence has the words of a demand."""
    return _DEMAND.search(sentence) is not None


def is_aside(sentence: str) -> bool:
    """Whether a sentence demands nothing, whatever its words: a question, a joke, a doubt, a line of a machine's."""
    asked = is_question(sentence) or _ASKS.match(sentence) is not None
    return asked or _MACHINE.match(sentence) is not None or _NOT_MEANT.search(sentence) is not None
