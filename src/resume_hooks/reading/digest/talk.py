"""Collect the talk of a lineage: messages of the user and the assistant, without calls and results.

Each message comes with its speaker and its record. It is quoted unchanged, except that a row such
as ``[... 20 lines ...]`` replaces the middle of a long paste, code block or table. Secrets are
removed before a message is shortened.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from resume_hooks.reading.digest import prose, replies
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import (
    MessageKind,
    TalkMessage,
    redact_and_remember_secrets,
)
from resume_hooks.reading.digest.facts import Quote, RecordPosition
from resume_hooks.reading.digest.open_calls import find_open_calls
from resume_hooks.reading.digest.repeated_prompts import LaterPrompts
from resume_hooks.reading.digest.reversals import (
    announces_change,
    find_indexes_of_corrected_sentences,
    find_indexes_of_revoked_statements,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import plain_text

MAX_STORED_CHARACTERS = 120_000
"""The maximum number of characters in the talk that a child stores for its own children. This is
about 30,000 tokens, which is enough for the whole talk in 99 of 100 sessions."""

# The maximum number of characters in a typed prompt. A longer prompt is assumed to be pasted.
MAX_TYPED_CHARACTERS = 4_000
# This many characters are kept from a command's template to identify the command.
MAX_TEMPLATE_CHARACTERS = 300
# At most this many characters are kept from a command's template if the request has no answer yet.
MAX_UNANSWERED_TEMPLATE_CHARACTERS = 8_000
# The numbers of characters that are kept at the start and at the end of a pasted text.
KEPT_PASTE_CHARACTERS = (900, 500)
MAX_MESSAGE_CHARACTERS = 12_000  # The maximum number of characters in one message.
# At most this many characters of the assistant's words between two calls are shown.
MAX_NARRATION_CHARACTERS = 1_500
# The minimum number of characters in the words between two calls. Shorter words are left out,
# because a text such as "All tests pass." does not help to continue the work.
MIN_NARRATION_CHARACTERS = 60
ANNOUNCEMENT_MARK = "[...]"  # The mark that replaces sentences that only announce the next step.
# At most this many characters of a client's summary are shown.
MAX_SUMMARY_CHARACTERS = 16_000
_CODE_BLOCK_PATTERN = compile_lazily(
    r"^([ \t]*)(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\2[^\n]*$|\Z)", re.DOTALL | re.MULTILINE
)
# The numbers of lines that are kept at the start and at the end of a code block.
KEPT_CODE_BLOCK_LINES = (8, 4)
# The numbers of lines that are kept at the start and at the end of a table.
KEPT_TABLE_LINES = (8, 2)
_TABLE_ROW_PATTERN = compile_lazily(r"\s*\|.*\|\s*")
_PASTED_TEXT_PATTERN = compile_lazily(
    re.escape(prose.PASTE_START) + r"\n(.*?)\n" + re.escape(prose.PASTE_END), re.DOTALL
)
# A directive that Codex writes for its own user interface.
_CODEX_DIRECTIVE_PATTERN = compile_lazily(r"\s*::[a-z][a-z-]*\{.*\}\s*")
_SENTENCE_BREAK_PATTERN = compile_lazily(r"(?<=[.!?])\s+(?=[A-Z`*(\"'])")
# This many characters at the start of two messages are compared. If they are the same, the messages
# are treated as equal.
MAX_COMPARED_CHARACTERS = 160


class _ChosenMessage(NamedTuple):
    """A message: its original ``quote``, and the ``text`` that is stored."""

    quote: Quote
    kind: MessageKind
    text: str


def collect_talk(facts: LineageFacts) -> tuple[TalkMessage, ...]:
    """Return as many messages of a lineage as ``MAX_STORED_CHARACTERS`` allows, oldest first."""
    chosen = sorted(_choose_messages(facts), key=lambda message: message.quote.position.order)
    messages = [
        TalkMessage(message.kind, str(message.quote.position), message.text) for message in chosen
    ]
    return tuple(_mark_former_plans(_mark_revoked_sentences(messages), facts.plans))


def count_omitted_remarks(facts: LineageFacts, messages: Sequence[TalkMessage]) -> int:
    """Return the number of remarks in the talk that are not in ``messages``.

    The remarks in the talk are the user's prompts, the assistant's messages and the client's
    summaries.
    """
    spoken_refs = {
        str(quote.position)
        for quote in chain(facts.prompts.quotes, facts.assistant_quotes, facts.summaries)
    }
    return len(spoken_refs.difference(message.ref for message in messages))


def select_fitting_messages(
    messages: Sequence[TalkMessage], max_characters: int
) -> tuple[TalkMessage, ...]:
    """Return as many messages as fit, the most important kinds of messages first.

    The user's messages are the most important, then the last words of turns, then the other
    messages. Within each kind, the latest messages are kept.
    """
    fitting_indexes: set[int] = set()
    remaining_characters = max_characters
    for kind in _KINDS_BY_IMPORTANCE:
        for index in range(len(messages) - 1, -1, -1):
            if (
                messages[index].kind is kind
                and (characters_after := remaining_characters - len(messages[index].text)) >= 0
            ):
                remaining_characters = characters_after
                fitting_indexes.add(index)
    return tuple(messages[index] for index in sorted(fitting_indexes))


_KINDS_BY_IMPORTANCE = (
    MessageKind.PENDING,
    MessageKind.REFUSED,
    MessageKind.RETURNED,
    MessageKind.REQUEST,
    MessageKind.CLOSING,
    MessageKind.SUMMARY,
    MessageKind.NARRATION,
    MessageKind.REPORT,
)
"""The kinds of messages, the most important first."""


def join_talk(
    older: Sequence[TalkMessage], newer: Sequence[TalkMessage]
) -> tuple[TalkMessage, ...]:
    """Join the talk of the ancestors with that of the session, and mark revoked statements.

    If the session contains any message, calls that were open in the ancestors' talk are left out.
    """
    older_messages = list(older)
    if newer:
        older_messages = []
        for message in older:
            if message.kind not in {MessageKind.PENDING, MessageKind.REFUSED, MessageKind.RETURNED}:
                older_messages.append(message)
    return select_fitting_messages(
        _mark_revoked_sentences([*older_messages, *newer]), MAX_STORED_CHARACTERS
    )


def _choose_messages(facts: LineageFacts) -> list[_ChosenMessage]:
    """Return those messages of the talk that are stored in a child.

    Only these messages are redacted, because redaction takes most of the time.
    """
    choices: dict[RecordPosition, list[str]] = {}
    for quote in facts.answers:
        choices.setdefault(quote.position, []).append(quote.text)
    prompt_positions = {quote.position for quote in facts.prompts.quotes}
    closing_quotes = [
        *facts.closing_quotes,
        *(plan for plan in facts.plans[-1:] if plan.position not in prompt_positions),
    ]
    if facts.words_since_prompt is not None:
        closing_quotes.append(facts.words_since_prompt)
    closing_quotes.sort(key=lambda quote: quote.position.order)
    closing_keys = {(quote.position, quote.text) for quote in closing_quotes}
    narration = (
        quote
        for quote in reversed(facts.assistant_quotes)
        if (quote.position, quote.text) not in closing_keys
    )

    def format_request_message(quote: Quote) -> str:
        answer_texts = choices.get(quote.position)
        if answer_texts:
            return format_prompt("\n".join(answer_texts))
        if replies.may_refer_to_answer(quote.full_text):
            return format_prompt(
                replies.add_quote_of_answer(quote.full_text, _find_previous_words(quote, facts))
            )
        return format_prompt(quote.full_text, _find_max_template_characters(quote, facts))

    approved = _find_plans_in_prompts(facts)

    def format_closing_message(quote: Quote) -> str:
        return format_text(_replace_approved_plans(quote, approved), MAX_MESSAGE_CHARACTERS)

    choice = _MessageChoice()
    later_prompts = LaterPrompts()

    def shorten_request(quote: Quote) -> str:
        return later_prompts.shorten_prompt(format_request_message(quote), quote.position)

    choice.add_messages(reversed(facts.prompts.quotes), MessageKind.REQUEST, shorten_request)
    for call in find_open_calls(facts):
        quote = Quote(call.text, call.position)
        choice.add_messages(
            [quote],
            call.kind,
            lambda quote: format_text_with_blocks(quote.text, MAX_MESSAGE_CHARACTERS),
        )
    choice.add_messages(
        closing_quotes[-1:],
        MessageKind.CLOSING,
        lambda quote: format_text_with_blocks(quote.text, MAX_MESSAGE_CHARACTERS),
    )
    choice.add_messages(reversed(closing_quotes[:-1]), MessageKind.CLOSING, format_closing_message)
    choice.add_messages(
        reversed(facts.summaries),
        MessageKind.SUMMARY,
        lambda quote: format_text(quote.text, MAX_SUMMARY_CHARACTERS),
    )
    choice.add_messages(
        narration,
        MessageKind.NARRATION,
        lambda quote: _mark_announcements(format_text(quote.text, MAX_NARRATION_CHARACTERS)),
    )
    choice.add_messages(
        reversed(facts.reports),
        MessageKind.REPORT,
        lambda quote: format_text(quote.text, MAX_MESSAGE_CHARACTERS),
    )
    return choice.messages


def _find_plans_in_prompts(facts: LineageFacts) -> list[Quote]:
    """Return the approved plans that a prompt repeats completely."""
    prompt_texts = {said.position: said.full_text for said in facts.prompts.quotes}
    plans = []
    for plan in facts.plans:
        if plan.text and plan.text in prompt_texts.get(plan.position, ""):
            plans.append(plan)
    return plans


def _replace_approved_plans(quote: Quote, plans: Sequence[Quote]) -> str:
    """Replace a plan in the assistant's words with a reference if a later prompt repeats the plan."""
    text = quote.text
    for plan in plans:
        if plan.position.order > quote.position.order:
            text = text.replace(
                plan.text, f"[the plan in the prompt :{plan.position.record_number}]"
            )
    return text


def _find_previous_words(quote: Quote, facts: LineageFacts) -> str:
    """Return the assistant's last words before a prompt, or ``""``."""
    index = bisect_left(
        facts.assistant_quotes, quote.position.order, key=lambda reply: reply.position.order
    )
    if index:
        return redact_and_remember_secrets(facts.assistant_quotes[index - 1].text)
    return ""


def _mark_announcements(text: str) -> str:
    """Put a mark in place of each sentence that only announces the next step.

    If only a few other words remain, return ``""``.
    """
    rows: list[str] = []
    kept_characters = 0
    for row in text.split("\n"):
        sentences: list[str] = []
        for sentence in _SENTENCE_BREAK_PATTERN.split(row):
            if not prose.is_announcement(sentence):
                sentences.append(sentence)
                kept_characters += len(sentence) + 1
            elif sentences[-1:] != [ANNOUNCEMENT_MARK]:
                sentences.append(ANNOUNCEMENT_MARK)
        shown_row = " ".join(sentences)
        if shown_row.strip() and not (
            shown_row == ANNOUNCEMENT_MARK and rows and rows[-1].endswith(ANNOUNCEMENT_MARK)
        ):
            rows.append(shown_row)
    if kept_characters > MIN_NARRATION_CHARACTERS:
        return "\n".join(rows)
    return ""


class _MessageChoice:
    """The messages that have been chosen so far, up to the size that a child stores."""

    def __init__(self) -> None:
        self.messages: list[_ChosenMessage] = []
        self._remaining_characters = MAX_STORED_CHARACTERS
        self._known_keys: set[tuple[MessageKind, str]] = set()

    def add_messages(
        self, quotes: Iterable[Quote], kind: MessageKind, format_quote: Callable[[Quote], str]
    ) -> None:
        """Add messages of one kind, the latest first, except those that a later message repeats."""
        formatted_characters = 0
        for quote in quotes:
            if (
                self._remaining_characters < MAX_COMPARED_CHARACTERS
                or formatted_characters > MAX_STORED_CHARACTERS
            ):
                return
            text = format_quote(quote)
            formatted_characters += len(text)
            key = kind, _make_message_key(text, kind)
            if text and len(text) <= self._remaining_characters and key not in self._known_keys:
                self._known_keys.add(key)
                self._remaining_characters -= len(text)
                self.messages.append(_ChosenMessage(quote, kind, text))


def _make_message_key(text: str, kind: MessageKind) -> str:
    """Return a key that is equal for messages that repeat each other.

    The key is the whole text of a request, or the beginning of any other message.
    """
    # Requests are compared as a whole, because two filled-in copies of the same form begin alike.
    if kind is MessageKind.REQUEST:
        return text
    return " ".join(text[: 2 * MAX_COMPARED_CHARACTERS].lower().split())[:MAX_COMPARED_CHARACTERS]


def _mark_revoked_sentences(messages: Sequence[TalkMessage]) -> list[TalkMessage]:
    """Add to each message a list of the sentences in it that the user revoked later."""
    user_sentences = _collect_sentences(messages, MessageKind.REQUEST)
    revocations: dict[int, list[tuple[str, str]]] = {}
    for old_index, new_index in find_indexes_of_revoked_statements(
        [sentence for _, sentence in user_sentences]
    ).items():
        if user_sentences[old_index][0] != user_sentences[new_index][0]:
            revocations.setdefault(user_sentences[old_index][0], []).append(
                (user_sentences[old_index][1], messages[user_sentences[new_index][0]].ref)
            )
    # The assistant's sentences are only collected if needed, because most talk contains no
    # corrections.
    if any(announces_change(sentence) for _, sentence in user_sentences):
        assistant_sentences = _collect_sentences(messages, MessageKind.CLOSING)
    else:
        assistant_sentences = []
    for sentence_index, new_index in find_indexes_of_corrected_sentences(
        assistant_sentences, user_sentences
    ):
        revocations.setdefault(assistant_sentences[sentence_index][0], []).append(
            (assistant_sentences[sentence_index][1], messages[user_sentences[new_index][0]].ref)
        )
    rows = list(messages)
    for message_index, message_revocations in revocations.items():
        rows[message_index] = rows[message_index]._replace(
            superseded_sentences=tuple(message_revocations)
        )
    return rows


def _mark_former_plans(
    messages: Sequence[TalkMessage], plans: Sequence[Quote]
) -> Iterator[TalkMessage]:
    """Yield the messages. If a newer plan replaced the plan in a user's message, mark the plan's title."""
    newer_refs: dict[str, str] = {}
    for old_plan, new_plan in pairwise(plans):
        if old_plan.text.strip() != new_plan.text.strip():
            newer_refs[str(old_plan.position)] = str(new_plan.position)
    for message in messages:
        ref = newer_refs.get(message.ref)
        title = ""
        if ref is not None and message.kind is MessageKind.REQUEST:
            title = next(prose.split_sentences(message.text), "")
        if ref is not None and title:
            yield message._replace(
                superseded_sentences=(*message.superseded_sentences, (title, ref))
            )
        else:
            yield message


def _collect_sentences(messages: Sequence[TalkMessage], kind: MessageKind) -> list[tuple[int, str]]:
    """Return the sentences in the messages of one kind, each with the index of its message.

    Long messages are skipped, because they contain pasted documents.
    """
    typed_messages = []
    for index, message in enumerate(messages):
        if message.kind is kind and len(message.text) <= MAX_TYPED_CHARACTERS:
            typed_messages.append((index, message))
    sentences: list[tuple[int, str]] = []
    for index, message in typed_messages:
        own_text = replies.remove_quote_of_answer(message.text)
        for sentence in prose.split_sentences(own_text):
            sentences.append((index, sentence))
    return sentences


def _find_max_template_characters(quote: Quote, facts: LineageFacts) -> int:
    """Return how many characters of a command's template are kept in the request that contains it."""
    if quote is facts.prompts.quotes[-1] and facts.words_since_prompt is None:
        return MAX_UNANSWERED_TEMPLATE_CHARACTERS
    return MAX_TEMPLATE_CHARACTERS


def format_prompt(text: str, max_template_characters: int = MAX_TEMPLATE_CHARACTERS) -> str:
    """Return a user's message as it is stored, with all typed words and with marks around pasted texts.

    If the message is a command's template that contains the user's words, at most
    ``max_template_characters`` of the template are kept.
    """
    redacted = redact_and_remember_secrets(text)
    template_match = prose.COMMAND_TEMPLATE_PATTERN.fullmatch(redacted)
    if template_match is None:
        return format_text(_mark_long_text_as_pasted(redacted), MAX_MESSAGE_CHARACTERS)
    template = template_match[2].strip()
    beginning = keep_beginning(template, max_template_characters).rstrip()
    omitted_characters = len(template) - len(beginning)
    rows = [
        _mark_long_text_as_pasted(template_match[1].strip()),
        "[command's template:]",
        beginning,
    ]
    if omitted_characters:
        rows.append(f"[... {omitted_characters:,} characters of the template ...]")
    return format_text("\n".join(filter(None, rows)), MAX_MESSAGE_CHARACTERS)


def _mark_long_text_as_pasted(text: str) -> str:
    """Mark a text as pasted if it is too long to have been typed."""
    if len(text) <= MAX_TYPED_CHARACTERS or prose.PASTE_START in text:
        return text
    return f"{prose.PASTE_START}\n{text.strip()}\n{prose.PASTE_END}"


def shorten_pastes(text: str) -> str:
    """Return a user's message with only the start and the end of each long pasted text."""
    if prose.PASTE_START in text:
        return _PASTED_TEXT_PATTERN.sub(lambda paste: _shorten_paste(paste[1]), text)
    return text


def _shorten_paste(text: str) -> str:
    max_head, max_tail = KEPT_PASTE_CHARACTERS
    if len(text) <= max_head + max_tail + 200:
        return f"{prose.PASTE_START}\n{text}\n{prose.PASTE_END}"
    head, tail = keep_beginning(text, max_head), keep_ending(text, max_tail)
    omitted_characters = len(text) - len(head) - len(tail)
    return (
        f"{prose.PASTE_START}\n{head}\n[... {omitted_characters:,} characters of the paste "
        f"...]\n{tail}\n{prose.PASTE_END}"
    )


def format_text(text: str, max_characters: int) -> str:
    """Return a text as it is shown, without secrets, control characters and blank lines.

    Long code blocks and tables are shortened.
    """
    return _remove_blank_lines_and_shorten(
        shorten_code_and_tables(_clean_text(text)), max_characters
    )


def format_text_with_blocks(text: str, max_characters: int) -> str:
    """Format a text for display, but keep its code blocks and tables complete.

    This is used for texts on which the reader must act.
    """
    return _remove_blank_lines_and_shorten(_clean_text(text), max_characters)


def _clean_text(text: str) -> str:
    """Remove secrets, control characters and the client's insertions from a text."""
    cleaned = plain_text(
        redact_and_remember_secrets(
            prose.keep_typed_text(text) if "<system-reminder>" in text else text
        )
    )
    return cleaned.replace("\t", "    ").strip()


def shorten_code_and_tables(text: str) -> str:
    """Return a text with only the start and the end of each long code block or table."""
    if "```" in text or "~~~" in text:
        text = _CODE_BLOCK_PATTERN.sub(_shorten_code_block, text)
    if "|" in text:
        text = "\n".join(_shorten_tables(text.split("\n"))).rstrip("\n")
    return text


def _remove_blank_lines_and_shorten(text: str, max_characters: int) -> str:
    """Return a text without blank lines, shortened to about ``max_characters``."""
    rows = []
    for row in text.split("\n"):
        if row.strip():
            rows.append(row.rstrip())
    if "::" in text:
        rows = [row for row in rows if _CODEX_DIRECTIVE_PATTERN.fullmatch(row) is None]
    shown_text = "\n".join(rows)
    if len(shown_text) <= max_characters:
        return shown_text
    return shorten_text(shown_text, max_characters)


def _shorten_code_block(block: re.Match[str]) -> str:
    rows = block[0].rstrip("\n").split("\n")
    head_lines, tail_lines = KEPT_CODE_BLOCK_LINES
    if len(rows) <= head_lines + tail_lines + 2:
        return block[0]
    return "\n".join(
        [
            *rows[:head_lines],
            f"[... {len(rows) - head_lines - tail_lines} lines ...]",
            *rows[-tail_lines:],
        ]
    )


def _shorten_tables(rows: Sequence[str]) -> Iterator[str]:
    table: list[str] = []
    for row in [*rows, ""]:
        if _TABLE_ROW_PATTERN.fullmatch(row):
            table.append(row)
            continue
        head_lines, tail_lines = KEPT_TABLE_LINES
        if len(table) > head_lines + tail_lines + 2:
            yield from table[:head_lines]
            yield f"[... {len(table) - head_lines - tail_lines} rows ...]"
            yield from table[-tail_lines:]
        else:
            yield from table
        table = []
        yield row


def shorten_text(text: str, max_characters: int) -> str:
    """Return the start and the end of a text as whole sentences, in about ``max_characters``.

    A row between the start and the end says how many characters are left out.
    """
    head, tail = (
        keep_beginning(text, max_characters * 2 // 3),
        keep_ending(text, max_characters // 3),
    )
    omitted_characters = len(text) - len(head) - len(tail)
    mark = f"[... {omitted_characters:,} characters ...]"
    if omitted_characters > len(mark):
        return f"{head}\n{mark}\n{tail}"
    return text


_SENTENCE_STOP_PATTERN = compile_lazily(r"(?<=[.!?:;。\uff01\uff1f])[\"')*_`\]]*(?:\s+|\Z)|\n+")


def keep_beginning(text: str, max_characters: int) -> str:
    """Return the first sentences of a text that fit into ``max_characters``.

    If the first sentence does not fit, return a part of it.
    """
    if len(text) <= max_characters:
        return text
    sentence_ends = [
        stop.end() for stop in _SENTENCE_STOP_PATTERN.finditer(text, 0, max_characters)
    ]
    if sentence_ends:
        return text[: sentence_ends[-1]].rstrip()
    return f"{text[: max(1, max_characters - 1)].rstrip()}…"


def keep_ending(text: str, max_characters: int) -> str:
    """Return the last sentences of a text that fit into ``max_characters``.

    If the last sentence does not fit, return a part of it.
    """
    if len(text) <= max_characters:
        return text
    start = len(text) - max_characters
    stop = _SENTENCE_STOP_PATTERN.search(text, start)
    if stop and stop.end() < len(text):
        return text[stop.end() :]
    return f"…{text[start + 1 :]}"


# The minimum and the maximum number of characters in the conclusion of a long message.
CONCLUSION_CHARACTER_LIMITS = (800, 1_600)


def find_conclusion(text: str) -> str:
    """Return the end of a message: its last paragraph, and the paragraphs before it if there is space."""
    min_characters, max_characters = CONCLUSION_CHARACTER_LIMITS
    rows = text.split("\n")
    first = len(rows)
    character_count = 0
    while (
        first > 0
        and character_count < min_characters
        and character_count + len(rows[first - 1]) <= max_characters
    ):
        first -= 1
        character_count += len(rows[first]) + 1
    if first < len(rows):
        return "\n".join(rows[first:])
    return keep_ending(text, max_characters)
