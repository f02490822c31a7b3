"""Which sentences of the assistant's say that something did not work.

Precision before recall: what would fail, what a test guards against, and what is only feared, did not fail.
"""

from __future__ import annotations

import re

from resume_hooks.reading.digest.prose import is_question

LEAST = 24
"""Bytes below which a sentence does not say what failed: "Still failing."."""

_SETBACK = re.compile(
    r"""\b(?:
        root\ cause(?:\ (?:is|was|of)|:) | culprit | known\ bug | turn(?:s|ed)\ out | gave\ up | dead\ end
      | already\ tried | broke\ \w+ | timed\ out | circular\ dependency
      | failed\ (?:again|because|with|due|on|at|in|for)\b
      | (?:commit|push|build|run|check|job|merge|install|command|tests?|attempt|approach|fix|it)\ failed
      | (?:still|are|is|also|always)\ (?:\w+\ )?failing | (?:still|always|also)\ fails\b(?!\ (?:gracefully|loudly))
      | fails\ (?:with|because|due|even)
      | (?:do|does|did|is|was|are|were)(?:n't|\ not)\ (?:\w+ly\ |yet\ |being\ )?(?:work(?:ing)?|help|enough|hit
          |recognized|resolvable|reachable|supported|available|allowed|possible|installed|on\ \w+|stale
          |the\ (?:cause|reason))\b
      | (?:was|were|is|are)\ (?:now\ |just\ |also\ )?wrong\b | i\ (?:assumed|misread) | my\ (?:mistake|error)\b
      | (?:was|were|got)\ (?:\w+ly\ )?(?:blocked|denied|rejected|reverted|abandoned) | (?:is|are)\ (?:flaky|blocked)
      | the\ (?:issue|problem|bug)\ (?:is|was)\ (?:that|with|in|on|the|duplicate|npm|`\w+)\b
      | (?:since|because)\ [^,]+,\ (?:i|we|it)\ (?:can't|cannot|couldn't)
      | (?:i|we)\ (?:can't|cannot|couldn't)\ [^.;]+(?:\(|\b(?:because|since|here)\b) | option\ \w+\W+cannot\ work
      | couldn't\ be\ \w+
    ) | `\ (?:can't|cannot|couldn't)\ \w+ | 불가 | 실패 | 누락 | 오류 | 失败 | 失敗 | エラー
    """,
    re.IGNORECASE | re.VERBOSE,
)

_UNREAL = re.compile(
    r"""\A\W*(?:(?:now|first|next|also|and|but|so|then)\W+)*
      (?:let\ me|let's|i'll|i\ will|i\ need\ to|i'm\ going|to\ |line\ \d|step\b|given\b)
    | \b(?:if|unless|whether|when|would|might|may|could|should|will|must|so\ that|in\ case|ensures?|confirm|make\ sure
        |prevents?|guards?|proves?|proven|passes|passing|now\ pass|not\ evidence|don't\ rely)\b
    | \b(?:nothing|never|without|nor?|not)\ (?:\w+\ )?(?:fail\w*|br[eo]\w+|wrong)
    | \A\W*["\u201c].*["\u201d]\W*\Z | :\W*\Z | 하겠습니다
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What is not so, or not yet: a plan, a condition, a safeguard, a quote, the head of a list."""


def fails(sentence: str) -> int:
    """How many words for something that did not work a sentence has, 0 where it tells of no failure."""
    if len(sentence.encode()) < LEAST or is_question(sentence) or _UNREAL.search(sentence):
        return 0
    return len({found.lower() for found in _SETBACK.findall(sentence)})
