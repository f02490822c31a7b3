"""What was said, as entries: the goal, the user's constraints, decisions, what was told of failures, what is open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from resume_hooks.reading.digest import constraint_words, prose, setbacks
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, entry
from resume_hooks.reading.digest.facts import Quote, RecordPlace
from resume_hooks.reading.digest.prose import cut
from resume_hooks.redaction.texts import redact

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
_STEP = re.compile(r"#{1,3} |\d+[.)] |[-*] \[")


class Sentence(NamedTuple):
    """A sentence of the assistant's: the record it was ``said`` in, how many messages ago, which one there."""

    text: str
    said: RecordPlace
    age: int
    place: int


def goal(facts: LineageFacts) -> Iterator[DigestEntry]:
    """The first prompt, then the others from the latest on."""
    prompts = [*facts.prompts.said[:1], *facts.prompts.said[1:][-MOST:]]
    for note, said in zip(("first", "latest"), (*prompts[:1], *prompts[:0:-1]), strict=False):
        yield entry(said.text, said.place, note, PROMPT)
    for said in prompts[-2:0:-1]:
        yield entry(said.text, said.place, most=PROMPT)


def constraints(facts: LineageFacts) -> Iterator[DigestEntry]:
    """What the user said of how the work is to be done, the latest first; a correction says so in any words."""
    for said in _latest(facts.prompts.said, _both_ends):
        for sentence in prose.sentences(said.text):
            if not constraint_words.is_aside(sentence) and (said.correcting or constraint_words.demands(sentence)):
                yield entry(sentence, said.place)


def _both_ends(text: str) -> str:
    if len(text) <= TYPED:
        return redact(text)[0]
    return f"{redact(text[:TYPED])[0][: TYPED // 2]}\n{redact(text[-TYPED:])[0][-TYPED // 2 :]}"


def plan(facts: LineageFacts) -> Iterator[DigestEntry]:
    """The latest plan that was approved: its title and its steps."""
    for said in facts.plans[-1:]:
        text = redact(said.text[:PLAN])[0]
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

    yield from _ranked(sentences, weigh, 1)


def stated_failures(sentences: Sequence[Sentence]) -> Iterator[DigestEntry]:
    """What the assistant said did not work."""
    yield from _ranked(sentences, lambda one: setbacks.fails(one.text), 1)


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
        asked = filter(prose.is_question, prose.sentences(redact(said.text[-PROSE:])[0]))
        yield from (entry(sentence, said.place) for sentence in asked)


def _ranked(sentences: Sequence[Sentence], weigh: Callable[[Sentence], int], least: int) -> Iterator[DigestEntry]:
    """Sentences that weigh at least so much, the weightiest first, of these the latest."""
    rows = [(one.age / AGE - weight, one) for one in sentences if (weight := weigh(one)) >= least]
    rows.sort(key=lambda row: (row[0], row[1].age, row[1].place))
    yield from (entry(one.text, one.said) for _, one in rows[:MOST])


@lru_cache(maxsize=512)
def _whole(text: str) -> str:
    """A text without its secrets, as much of it as is looked at; several sections ask for the same."""
    return redact(text[-2 * PROSE :])[0]


def _latest(said: list[Quote], shown: Callable[[str], str] = _whole) -> Iterator[Quote]:
    """What was said, the latest first, as much of it as is looked at; secrets go before anything is cut."""
    room = PROSE
    for one in reversed(said):
        if room <= 0:
            return
        text = shown(one.text)
        yield one._replace(text=text[-room:])
        room -= len(text)
