"""The talk of a lineage: messages of the user and the assistant, without calls, results and thinking.

Every message has its speaker and its record. It is quoted unchanged, except that a mark replaces
the middle of a long paste, code block or table. Secrets are removed before a message is shortened.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from resume_hooks.reading.digest import prose, replies
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import Kind, TalkMessage, redact_and_learn
from resume_hooks.reading.digest.facts import Quote, RecordPlace
from resume_hooks.reading.digest.open_calls import open_calls
from resume_hooks.reading.digest.reversals import corrected_sentences, is_change, superseded_places
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import plain_text

STORED = 120_000
"""The maximum characters of talk that a child stores for its own children: about 30,000 tokens,
which is all talk in 99 of 100 sessions."""

TYPED = 4_000  # a prompt with more characters does not count as typed by hand
TEMPLATE_SHOWN = 300  # characters of a command's template that identify the command
OPEN_TEMPLATE = 8_000  # the maximum characters of the template of a request without an answer
# the number of characters that are shown at the start and at the end of a paste
PASTE_SHOWN = (900, 500)
MESSAGE = 12_000  # the maximum characters of one message
NARRATION = 1_500  # the maximum characters of the assistant's words between two calls
# the minimum characters of such words; shorter ones are useless for continuing: "All tests pass."
SHORTEST_NARRATION = 60
ANNOUNCED = "[...]"  # stands for sentences that only announce the next step
REPORT = 4_000  # the maximum characters of a sub-agent's report that was answered
SUMMARY = 16_000  # the maximum characters of a client's summary
_FENCED = compile_lazily(
    r"^([ \t]*)(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\2[^\n]*$|\Z)", re.DOTALL | re.MULTILINE
)
# the number of lines that are shown at the start and at the end of a code block
FENCE_LINES = (8, 4)
TABLE_LINES = (8, 2)  # the number of lines that are shown at the start and at the end of a table
_TABLE_ROW = compile_lazily(r"\s*\|.*\|\s*")
_PASTED = compile_lazily(
    re.escape(prose.PASTE_BEGINS) + r"\n(.*?)\n" + re.escape(prose.PASTE_ENDS), re.DOTALL
)
_DIRECTIVE = compile_lazily(
    r"\s*::[a-z][a-z-]*\{.*\}\s*"
)  # a directive that Codex writes for its own screen
_SENTENCE = compile_lazily(r"(?<=[.!?])\s+(?=[A-Z`*(\"'])")
# two messages that are equal in this number of characters at the start count as repeated
LIKE = 160


class _Said(NamedTuple):
    """A message with its original text, as it is shown."""

    quote: Quote
    kind: Kind
    text: str


def collect_talk(facts: LineageFacts) -> tuple[TalkMessage, ...]:
    """Return as many messages of a lineage as fit into ``STORED``, oldest first, chosen as in ``fit_talk``."""
    found = sorted(_messages_said(facts), key=lambda said: said.quote.place.order)
    messages = [TalkMessage(said.kind, str(said.quote.place), said.text) for said in found]
    return tuple(_with_former_plans(_with_reversals(messages), facts.plans))


def count_remarks(facts: LineageFacts, messages: Sequence[TalkMessage]) -> int:
    """Return the number of records that have words of the user, the assistant or the client but are not quoted."""
    spoken = {
        str(quote.place)
        for quote in chain(facts.prompts.said, facts.assistant_quotes, facts.summaries)
    }
    return len(spoken.difference(message.ref for message in messages))


def fit_talk(messages: Sequence[TalkMessage], most: int) -> tuple[TalkMessage, ...]:
    """Return as many messages as fit: first the user's, then the last words of turns, then the other messages.

    For each kind of message the latest come first.
    """
    fitting: set[int] = set()
    room = most
    for kind in _BY_WEIGHT:
        for at in range(len(messages) - 1, -1, -1):
            if messages[at].kind is kind and (left := room - len(messages[at].text)) >= 0:
                room = left
                fitting.add(at)
    return tuple(messages[at] for at in sorted(fitting))


_BY_WEIGHT = (
    Kind.PENDING,
    Kind.REFUSED,
    Kind.RETURNED,
    Kind.REQUEST,
    Kind.CLOSING,
    Kind.SUMMARY,
    Kind.NARRATION,
    Kind.REPORT,
)
"""The kinds of messages, the most important first."""


def join_talk(
    older: Sequence[TalkMessage], newer: Sequence[TalkMessage]
) -> tuple[TalkMessage, ...]:
    """Return the talk of the ancestors and of the session. Statements that were later revoked are marked.

    An ancestor's call is open only until the next message.
    """
    former = list(older)
    if newer:
        former = []
        for each in older:
            if each.kind not in {Kind.PENDING, Kind.REFUSED, Kind.RETURNED}:
                former.append(each)
    return fit_talk(_with_reversals([*former, *newer]), STORED)


def _messages_said(facts: LineageFacts) -> list[_Said]:
    """Return as many messages as a child stores. No more are redacted, because redaction takes most of the time."""
    chosen: dict[RecordPlace, list[str]] = {}
    for quote in facts.answers:
        chosen.setdefault(quote.place, []).append(quote.text)
    asked = {quote.place for quote in facts.prompts.said}
    closing = [
        *facts.closing_quotes,
        *(plan for plan in facts.plans[-1:] if plan.place not in asked),
    ]
    if facts.words_since_prompt is not None:
        closing.append(facts.words_since_prompt)
    closing.sort(key=lambda quote: quote.place.order)
    ends_turn = {(quote.place, quote.text) for quote in closing}
    narration = (
        quote
        for quote in reversed(facts.assistant_quotes)
        if (quote.place, quote.text) not in ends_turn
    )

    def request_text(quote: Quote) -> str:
        asked = chosen.get(quote.place)
        if asked:
            return shown_prompt("\n".join(asked))
        if len(quote.full) <= replies.LONGEST:
            return shown_prompt(replies.with_answered_words(quote.full, _said_before(quote, facts)))
        return shown_prompt(quote.full, _template_room(quote, facts))

    if facts.last_words is not None:
        answered = facts.last_words.place.order
    else:
        answered = 0

    approved = _plans_in_prompts(facts)

    def closing_text(quote: Quote) -> str:
        return shown_text(_without_approved_plan(quote, approved), MESSAGE)

    def report_text(quote: Quote) -> str:
        return shown_text(quote.text, REPORT if quote.place.order < answered else MESSAGE)

    found = _Choice()
    found.add_messages(reversed(facts.prompts.said), Kind.REQUEST, request_text)
    for call in open_calls(facts):
        quote = Quote(call.text, call.place)
        found.add_messages([quote], call.kind, lambda quote: whole_text(quote.text, MESSAGE))
    found.add_messages(closing[-1:], Kind.CLOSING, lambda quote: whole_text(quote.text, MESSAGE))
    found.add_messages(reversed(closing[:-1]), Kind.CLOSING, closing_text)
    found.add_messages(
        reversed(facts.summaries), Kind.SUMMARY, lambda quote: shown_text(quote.text, SUMMARY)
    )
    found.add_messages(
        narration,
        Kind.NARRATION,
        lambda quote: _without_announcements(shown_text(quote.text, NARRATION)),
    )
    found.add_messages(reversed(facts.reports), Kind.REPORT, report_text)
    return found.said


def _plans_in_prompts(facts: LineageFacts) -> list[Quote]:
    """Return the approved plans that a prompt repeats in full."""
    prompts = {said.place: said.full for said in facts.prompts.said}
    plans = []
    for plan in facts.plans:
        if plan.text and plan.text in prompts.get(plan.place, ""):
            plans.append(plan)
    return plans


def _without_approved_plan(quote: Quote, plans: Sequence[Quote]) -> str:
    """Return the assistant's words with a reference in the place of a plan that a later prompt repeats."""
    text = quote.text
    for plan in plans:
        if plan.place.order > quote.place.order:
            text = text.replace(plan.text, f"[the plan in the prompt :{plan.place.number}]")
    return text


def _said_before(quote: Quote, facts: LineageFacts) -> str:
    """Return the assistant's last words before a message of the user, or ``""``."""
    at = bisect_left(facts.assistant_quotes, quote.place.order, key=lambda said: said.place.order)
    if at:
        return redact_and_learn(facts.assistant_quotes[at - 1].text)
    return ""


def _without_announcements(text: str) -> str:
    """Return words between two calls, with a mark for sentences that only announce the next step."""
    rows: list[str] = []
    length = 0
    for row in text.split("\n"):
        sentences: list[str] = []
        for sentence in _SENTENCE.split(row):
            if not prose.is_announcement(sentence):
                sentences.append(sentence)
                length += len(sentence) + 1
            elif sentences[-1:] != [ANNOUNCED]:
                sentences.append(ANNOUNCED)
        shown = " ".join(sentences)
        if shown.strip() and not (shown == ANNOUNCED and rows and rows[-1].endswith(ANNOUNCED)):
            rows.append(shown)
    if length > SHORTEST_NARRATION:
        return "\n".join(rows)
    return ""


class _Choice:
    """Chooses messages of one kind after another, the latest first, up to the size that a child stores."""

    def __init__(self) -> None:
        self.said: list[_Said] = []
        self._room = STORED
        self._known: set[tuple[Kind, str]] = set()

    def add_messages(
        self, quotes: Iterable[Quote], kind: Kind, worded: Callable[[Quote], str]
    ) -> None:
        """Add the messages of a kind, without messages that a later one repeats."""
        looked_at = 0
        for quote in quotes:
            if self._room < LIKE or looked_at > STORED:
                return
            text = worded(quote)
            looked_at += len(text)
            key = kind, _likeness_key(text, kind)
            if text and len(text) <= self._room and key not in self._known:
                self._known.add(key)
                self._room -= len(text)
                self.said.append(_Said(quote, kind, text))


def _likeness_key(text: str, kind: Kind) -> str:
    """Return a key that is equal for repeated messages: all words of a request, or the start of another message."""
    # If a form is filled in again, it begins like the last one.
    if kind is Kind.REQUEST:
        return text
    return " ".join(text[: 2 * LIKE].lower().split())[:LIKE]


def _with_reversals(messages: Sequence[TalkMessage]) -> list[TalkMessage]:
    """Return the messages with a mark on each sentence of the user or the assistant that the user later revoked."""
    own = _collect_sentences(messages, Kind.REQUEST)
    marks: dict[int, list[tuple[str, str]]] = {}
    for old, new in superseded_places([sentence for _, sentence in own]).items():
        if own[old][0] != own[new][0]:
            marks.setdefault(own[old][0], []).append((own[old][1], messages[own[new][0]].ref))
    # Most talk contains no corrections, and most of it is the assistant's.
    if any(is_change(sentence) for _, sentence in own):
        answers = _collect_sentences(messages, Kind.CLOSING)
    else:
        answers = []
    for place, new in corrected_sentences(answers, own):
        marks.setdefault(answers[place][0], []).append(
            (answers[place][1], messages[own[new][0]].ref)
        )
    rows = list(messages)
    for at, found in marks.items():
        rows[at] = rows[at]._replace(superseded=tuple(found))
    return rows


def _with_former_plans(
    messages: Sequence[TalkMessage], plans: Sequence[Quote]
) -> Iterator[TalkMessage]:
    """Return the messages with a mark on each plan that a newer approved plan replaced."""
    newer: dict[str, str] = {}
    for old, new in pairwise(plans):
        if old.text.strip() != new.text.strip():
            newer[str(old.place)] = str(new.place)
    for message in messages:
        ref = newer.get(message.ref)
        title = ""
        if ref is not None and message.kind is Kind.REQUEST:
            title = next(prose.split_sentences(message.text), "")
        if ref is not None and title:
            yield message._replace(superseded=(*message.superseded, (title, ref)))
        else:
            yield message


def _collect_sentences(messages: Sequence[TalkMessage], kind: Kind) -> list[tuple[int, str]]:
    """Return the sentences of messages of a kind, each with its message's index, without those of documents."""
    typed = []
    for at, message in enumerate(messages):
        if message.kind is kind and len(message.text) <= TYPED:
            typed.append((at, message))
    found: list[tuple[int, str]] = []
    for at, message in typed:
        own = replies.without_answered_words(message.text)
        for sentence in prose.split_sentences(own):
            found.append((at, sentence))
    return found


def _template_room(quote: Quote, facts: LineageFacts) -> int:
    """Return the maximum number of characters of the template around the words of a request."""
    if quote is facts.prompts.said[-1] and facts.words_since_prompt is None:
        return OPEN_TEMPLATE
    return TEMPLATE_SHOWN


def shown_prompt(text: str, most_template: int = TEMPLATE_SHOWN) -> str:
    """Return a user's message as it is stored: every typed word, and pasted texts, which are marked.

    ``most_template`` is the maximum number of characters of the template around a command's words.
    """
    cleaned = redact_and_learn(text)
    filled_in = prose.FILLED_IN.fullmatch(cleaned)
    if filled_in is None:
        return shown_text(_with_paste_marks(cleaned), MESSAGE)
    template = filled_in[2].strip()
    beginning = keep_beginning(template, most_template).rstrip()
    left = len(template) - len(beginning)
    rows = [_with_paste_marks(filled_in[1].strip()), "[command's template:]", beginning]
    if left:
        rows.append(f"[... {left:,} characters of the template ...]")
    return shown_text("\n".join(filter(None, rows)), MESSAGE)


def _with_paste_marks(text: str) -> str:
    """Return a text that is too long to be typed as a pasted one."""
    if len(text) <= TYPED or prose.PASTE_BEGINS in text:
        return text
    return f"{prose.PASTE_BEGINS}\n{text.strip()}\n{prose.PASTE_ENDS}"


def with_short_pastes(text: str) -> str:
    """Return a user's message in which only the start and the end of each long pasted text are kept."""
    if prose.PASTE_BEGINS in text:
        return _PASTED.sub(lambda paste: _paste_ends(paste[1]), text)
    return text


def _paste_ends(text: str) -> str:
    first, last = PASTE_SHOWN
    if len(text) <= first + last + 200:
        return f"{prose.PASTE_BEGINS}\n{text}\n{prose.PASTE_ENDS}"
    head, tail = keep_beginning(text, first), keep_ending(text, last)
    left = len(text) - len(head) - len(tail)
    return (
        f"{prose.PASTE_BEGINS}\n{head}\n[... {left:,} characters of the paste "
        f"...]\n{tail}\n{prose.PASTE_ENDS}"
    )


def shown_text(text: str, most: int) -> str:
    """Return a text as it is shown: without secrets, control characters and blank lines.

    Code blocks and tables are shortened.
    """
    return _shortened_rows(with_short_blocks(_clean_text(text)), most)


def whole_text(text: str, most: int) -> str:
    """Return a text as it is shown, but with whole code blocks and tables, because the reader must act on it."""
    return _shortened_rows(_clean_text(text), most)


def _clean_text(text: str) -> str:
    """Return a text without secrets, control characters and the client's insertions."""
    cleaned = plain_text(
        redact_and_learn(prose.typed_text(text) if "<system-reminder>" in text else text)
    )
    return cleaned.replace("\t", "    ").strip()


def with_short_blocks(text: str) -> str:
    """Return a text in which only the start and the end of each long code block or table are kept."""
    if "```" in text or "~~~" in text:
        text = _FENCED.sub(_cut_fence, text)
    if "|" in text:
        text = "\n".join(_with_short_tables(text.split("\n"))).rstrip("\n")
    return text


def _shortened_rows(text: str, most: int) -> str:
    """Return a text without blank lines, in about ``most`` characters."""
    rows = []
    for row in text.split("\n"):
        if row.strip():
            rows.append(row.rstrip())
    if "::" in text:
        rows = [row for row in rows if _DIRECTIVE.fullmatch(row) is None]
    shown = "\n".join(rows)
    if len(shown) <= most:
        return shown
    return shorten_text(shown, most)


def _cut_fence(block: re.Match[str]) -> str:
    rows = block[0].rstrip("\n").split("\n")
    first, last = FENCE_LINES
    if len(rows) <= first + last + 2:
        return block[0]
    return "\n".join([*rows[:first], f"[... {len(rows) - first - last} lines ...]", *rows[-last:]])


def _with_short_tables(rows: Sequence[str]) -> Iterator[str]:
    table: list[str] = []
    for row in [*rows, ""]:
        if _TABLE_ROW.fullmatch(row):
            table.append(row)
            continue
        first, last = TABLE_LINES
        if len(table) > first + last + 2:
            yield from table[:first]
            yield f"[... {len(table) - first - last} rows ...]"
            yield from table[-last:]
        else:
            yield from table
        table = []
        yield row


def shorten_text(text: str, most: int) -> str:
    """Return both ends of a text in about ``most`` characters, as whole sentences, with a mark between."""
    head, tail = keep_beginning(text, most * 2 // 3), keep_ending(text, most // 3)
    left = len(text) - len(head) - len(tail)
    mark = f"[... {left:,} characters ...]"
    if left > len(mark):
        return f"{head}\n{mark}\n{tail}"
    return text


_STOP = compile_lazily(r"(?<=[.!?:;。\uff01\uff1f])[\"')*_`\]]*(?:\s+|\Z)|\n+")


def keep_beginning(text: str, most: int) -> str:
    """Return the first sentences of a text that fit into ``most`` characters.

    If not even the first sentence fits, return a part of it.
    """
    if len(text) <= most:
        return text
    stops = [stop.end() for stop in _STOP.finditer(text, 0, most)]
    if stops:
        return text[: stops[-1]].rstrip()
    return f"{text[: max(1, most - 1)].rstrip()}…"


def keep_ending(text: str, most: int) -> str:
    """Return the last sentences of a text that fit into ``most`` characters.

    If not even the last sentence fits, return a part of it.
    """
    if len(text) <= most:
        return text
    start = len(text) - most
    stop = _STOP.search(text, start)
    if stop and stop.end() < len(text):
        return text[stop.end() :]
    return f"…{text[start + 1 :]}"


# the minimum characters of a message's conclusion (if the message is that long), and the maximum
CONCLUSION = (800, 1_600)


def find_conclusion(text: str) -> str:
    """Return the last paragraph of a message. While the result is short, add the paragraph before it."""
    least, most = CONCLUSION
    rows = text.split("\n")
    first = len(rows)
    length = 0
    while first > 0 and length < least and length + len(rows[first - 1]) <= most:
        first -= 1
        length += len(rows[first]) + 1
    if first < len(rows):
        return "\n".join(rows[first:])
    return keep_ending(text, most)
