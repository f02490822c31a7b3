"""What was said, as entries: the goal, the user's constraints, decisions, what was told of failures, what is open.

Demands and setbacks are told by their words, precision before recall: what is found is told to the model as fact. A
question, a joke, a doubt, a line of code or of a log is no demand, whatever words it has; what would fail, what a test
guards against, and what is only feared, did not fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.digest import prose
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, entry, redacted
from resume_hooks.reading.digest.facts import Quote, RecordPlace
from resume_hooks.reading.digest.prose import cut, is_question
from resume_hooks.redaction.lazy_patterns import late

_FILLER = "and|but|or|please|then|so|also|ok|okay|yes|yeah|no|just|now|hm+"

_DEMAND = late(
    rf"""(?:\A\W*(?:/\S+\s+)?|[,;:.\u2013\u2014-]\s+|\b(?:{_FILLER})\b[ ,:.-]*)  # where a clause begins, an imperative
      (?:(?:do\s+not|don'?t|never|always|avoid|stop|prefer|ensure|make\s+sure|be\s+sure|remember|keep|stick\s+to|use|leave|
           no\s+longer|let'?s\s+(?:not|use|keep|only|set|rename|cut|leave|stick|avoid|prefer|drop|skip|call|go\s+with))\s+\S
      | (?:add|write|run|follow|create|do|fix|put|call|commit|push|check|delete|remove)\b[^?]*
        \b(?:only|first(?=\W*\Z|[,;.]|\s\()|instead|but\s+not|before\s+\w+ing|don'?t|for\s+now|no\s+\w+|never|always
           |as\s+\w+\s+as)\b)
    | \b(?:  # one look at a place inside of a word, where most are
        (?<!\bi\s)(?:must|should|shall|(?:has|have|ought|is|are)\s+to)(?:\s+(?:not|never|always|also|be))*\s+\w
      | (?:must|should)n'?t\b
      | (?:we|you|it|they|that|this)\s+(?:only\s+)?needs?\s+to\b
      | (?:we|you|i)\s+(?:\w+ly\s+)?(?:do\s+not|don'?t)\s+(?:want|need|use|allow|do|commit|push)\b
      | (?:we|i)\s+(?:\w+ly\s+)?(?:want|prefer|insist|require)\b(?!\s+to\s+(?:analy|see|know|understand|check|look|ask))
      | i(?:'d|\s+would)\s+(?:rather|prefer)\b | from\s+now\s+on\b | no\s+longer\s+(?:use|do|need|want)\b
      | as\s+\w+\s+as\s+possible\b | at\s+(?:most|least)\s+\d
      | (?:is|are)\s+(?:forbidden|not\s+allowed|required|mandatory)\b
      | (?:instead\s+of|rather\s+than)\b | instead\W*\Z
      | (?:nunca|siempre|jamais|toujours|niemals|immer|muss|sempre|nicht|kein\w*|nie|mai)\b)
    | \A\W*only\s+\w | ,\s+not\s+\w+[\w\s]*\W*\Z
    | 반드시 | 하지\s?마 | 말고 | 항상 | 절대 | 해야 | 不要 | 必须 | 总是 | 只能 | 務必 | 必ず | しないで
    """,
    re.VERBOSE,
)
"""In lower case, as those below whose searches take long: without regard to case they would take twice as long."""

_NOT_MEANT = late(
    r"""[\U0001F600-\U0001F606\U0001F61C\U0001F61D\U0001F923\U0001F643] | [;:]-?[)DP](?!\w)
    | \b(?:lol|lmao|rofl|ha(?:ha)+|hehe|jk|just\ kidding|i\ wonder|wondering|i\ guess|maybe|perhaps|not\ sure|we\ could
        |i\ don'?t\ (?:understand|know|think|see|get)|(?:is|are)\ never)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What makes of a demand a joke, a doubt, or no demand at all."""

_ASKS = late(
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

_MACHINE = late(
    r"""\s*(?://|/\*|(?:agent|assistant|user|human):|[\u00d7✗✓✖➜\u276f$>|│└├]|=>|\d+[.:]\d|\[[+\d]|"[\w-]+":
         |(?:error|warn|warning|npm)\b|at\s\S+\()
    | .*(?:\bnpm\ err|[{;]\s*\Z) | .*(?:[,(\u2013\u2014]|\s(?:the|or|and|to|a|of|that))\s*\Z
    | ["'\u201c].*["'\u201d]\W*\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A line of code or of a log, half a sentence as a paste has it, a quote of somebody else's."""

SHORTEST_SETBACK = 24
"""Bytes below which a sentence does not say what failed: "Still failing."."""

_SETBACK = late(
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
    re.VERBOSE,
)

_UNREAL = late(
    r"""\A\W*(?:(?:now|first|next|also|and|but|so|then)\W+)*
      (?:let\ me|let's|i'll|i\ will|i\ need\ to|i'm\ going|to\ |line\ \d|step\b|given\b)
    | \b(?:if|unless|whether|when|would|might|may|could|should|will|must|so\ that|in\ case|ensures?|confirm|make\ sure
        |prevents?|guards?|proves?|proven|passes|passing|now\ pass|not\ evidence|don't\ rely)\b
    | \A(?!.*\b(?:but|still|however|yet|except)\b|.*지만).*
      (?:\b(?:succeed(?:s|ed)|successful(?:ly)?|resolved|(?:is|are|it|all|now)\ (?:fixed|green|working|works?))\b
        |✅|통과|성공)
    | \b(?:nothing|never|without|nor?|not)\ (?:\w+\ )?(?:fail\w*|br[eo]\w+|wrong)
    | \A\W*["\u201c].*["\u201d]\W*\Z | :\W*\Z | 하겠습니다
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What is not so, not yet or no longer: a plan, a condition, a safeguard, a success, a quote, the head of a list."""

_AGREES = re.compile(
    r"""\W*(?:(?:yes|yep|yeah|ok|okay|sure|please|go|ahead|on|do|it|that|continue|proceed|great|perfect|good|nice|cool|fine
      |thanks|thank\ you|lgtm|ja|si|sí|oui|네|예|응|좋아요?|진행해?|계속|好的?|可以|はい|\d)\b\W*){0,6}""",
    re.IGNORECASE | re.VERBOSE,
)
"""A prompt that does not say what it is about."""

AGREES = 100  # characters of a prompt beyond which it says something

PROMPT = 1_500  # characters of a prompt that a digest quotes: of what people type by hand nearly all
LAST = 1_200  # characters of the assistant's last words
PLAN = 20_000  # characters of a plan that are looked at

TYPED = 4_000
"""Characters of a prompt up to which it counts as typed; of a longer one, a pasted document, the two ends do."""

PROSE = 60_000
"""Characters of what the assistant said in which decisions and failures are looked for, the latest first: 25 ms.
As many of what the user said are searched for constraints."""

MOST = 300  # entries of a kind that are made at all; no digest has room for more
AGE = 200  # messages after which a sentence weighs one word less
SHORT = 20  # bytes below which nothing is decided: a heading, a cell of a table
CLOSES = 2  # words that a sentence weighs more where it ends a turn: there the assistant says what it did, and why

NAMED = 120  # characters of what a refused call was about
_STEP = late(r"#{1,3} |\d+[.)] |[-*] \[")


def demands(sentence: str) -> bool:
    """Whether a sentence has the words of a demand."""
    return _DEMAND.search(sentence.lower()) is not None


def is_aside(sentence: str) -> bool:
    """Whether a sentence demands nothing, whatever its words: a question, a joke, a doubt, a line of a machine's."""
    asked = is_question(sentence) or _ASKS.match(sentence) is not None
    return asked or _MACHINE.match(sentence) is not None or _NOT_MEANT.search(sentence) is not None


def fails(sentence: str) -> int:
    """How many words for something that did not work a sentence has, 0 where it tells of no failure."""
    if len(sentence.encode()) < SHORTEST_SETBACK or is_question(sentence):
        return 0
    words = {*_SETBACK.findall(sentence.lower())}
    return 0 if words and _UNREAL.search(sentence) else len(words)


class Sentence(NamedTuple):
    """A sentence of the assistant's: the record it was ``said`` in, how many messages ago, which one there."""

    text: str
    said: RecordPlace
    age: int
    place: int


def goal(facts: LineageFacts) -> Iterator[DigestEntry]:
    """The first prompt, then the others from the latest on; of these none that only agrees."""
    later = [one for one in facts.prompts.said[1:] if not _agrees(one.text)]
    prompts = [*facts.prompts.said[:1], *later[-MOST:]]
    for note, said in zip(("first", "latest"), (*prompts[:1], *prompts[:0:-1]), strict=False):
        yield entry(said.text, said.place, note, PROMPT)
    for said in prompts[-2:0:-1]:
        yield entry(said.text, said.place, most=PROMPT)


def _agrees(text: str) -> bool:
    return len(text) <= AGREES and _AGREES.fullmatch(text) is not None


def constraints(facts: LineageFacts) -> Iterator[DigestEntry]:
    """What the user said of how the work is to be done, the latest first; a correction says so in any words."""
    for said in _latest(facts.prompts.said, _both_ends):
        for sentence in prose.sentences(said.text):
            if (said.correcting or demands(sentence)) and not is_aside(sentence):
                yield entry(sentence, said.place)


def _both_ends(text: str) -> str:
    if len(text) <= TYPED:
        return redacted(text)
    return f"{redacted(text[:TYPED])[: TYPED // 2]}\n{redacted(text[-TYPED:])[-TYPED // 2 :]}"


def plan(facts: LineageFacts) -> Iterator[DigestEntry]:
    """The latest plan that was approved: its title and its steps."""
    for said in facts.plans[-1:]:
        text = redacted(said.text[:PLAN])
        yield entry(next(prose.sentences(text), ""), said.place, "approved")
        rows = (row.strip() for row in text.split("\n"))
        yield from (entry(row.lstrip("#*- "), said.place) for row in rows if _STEP.match(row))


def todos(facts: LineageFacts) -> Iterator[DigestEntry]:
    """What was still to be done."""
    yield from (entry(text, place, status) for text, status, place in facts.open_list.left())


def latest_sentences(facts: LineageFacts) -> list[Sentence]:
    """The sentences of what the assistant said last, as far as they are looked at."""
    return [
        Sentence(text, said.place, age, place)
        for age, said in enumerate(_latest(facts.said))
        for place, text in enumerate(prose.sentences(said.text))
    ]


def decisions(facts: LineageFacts, sentences: Sequence[Sentence]) -> Iterator[DigestEntry]:
    """The user's answers to questions, then sentences of the assistant's; what ends a turn counts before the rest."""
    answers = sorted(facts.answers, key=lambda said: -said.place.order)
    yield from (entry(said.text, said.place, "answered by the user") for said in answers)
    closing = {said.place for said in (*facts.closing, *([facts.last_said] if facts.last_said else []))}

    def weigh(one: Sentence) -> int:
        if len(one.text.encode()) < SHORT or prose.is_question(one.text) or prose.is_announcement(one.text):
            return 0
        words, closes = prose.decides(one.text), one.said in closing
        return words + CLOSES * closes if words or prose.says_something(one.text) else 0

    yield from _ranked(sentences, weigh)


def stated_failures(sentences: Sequence[Sentence]) -> Iterator[DigestEntry]:
    """What the assistant said did not work."""
    yield from _ranked(sentences, lambda one: fails(one.text))


def refusals(facts: LineageFacts, *, with_words: bool) -> Iterator[DigestEntry]:
    """The calls that the user refused and said why; or the others, refused without a word or by a rule."""
    for call, said, by_user in reversed(facts.refusals):
        if (by_user and bool(said.text)) == with_words:
            what = cut(call.text("command", "file_path", "plan"), NAMED)
            named = f"refused by {'the user' if by_user else 'a rule'}: {call.tool} {what}".rstrip()
            yield entry(f"{named}: {said.text}".rstrip(": "), said.place)


def turns_ago(facts: LineageFacts, count: int) -> int:
    """The order of the prompt that began the turn so many turns ago; 0 if there were not as many."""
    prompts = facts.prompts.said
    return prompts[-count].place.order if len(prompts) > count else 0


def last(facts: LineageFacts) -> Iterator[DigestEntry]:
    """The assistant's last words."""
    if said := facts.last_said:
        yield entry(said.text, said.place, most=LAST)


def questions(facts: LineageFacts) -> Iterator[DigestEntry]:
    """What the assistant asked and nobody answered."""
    yield from (entry(said.text, said.place) for said in facts.questions)
    if said := facts.unanswered:
        asked = filter(prose.is_question, prose.sentences(redacted(said.text[-PROSE:])))
        yield from (entry(sentence, said.place) for sentence in asked)


def _ranked(sentences: Sequence[Sentence], weigh: Callable[[Sentence], int]) -> Iterator[DigestEntry]:
    """Sentences that weigh anything, the weightiest first, of these the latest."""
    rows = [(one.age / AGE - weight, one) for one in sentences if (weight := weigh(one)) > 0]
    rows.sort(key=lambda row: (row[0], row[1].age, row[1].place))
    yield from (entry(one.text, one.said) for _, one in rows[:MOST])


def _whole(text: str) -> str:
    """A text without its secrets, as much of it as is looked at."""
    return redacted(text[-2 * PROSE :])


def _latest(said: list[Quote], shown: Callable[[str], str] = _whole) -> Iterator[Quote]:
    """What was said, the latest first, as much of it as is looked at; secrets go before anything is cut."""
    room = PROSE
    for one in reversed(said):
        if room <= 0:
            return
        text = shown(one.text)
        yield one._replace(text=text[-room:])
        room -= len(text)
