"""Split a text into sentences, and find questions, offers, announcements and titles among them.

The kinds of sentences are recognized by typical words in several languages, without understanding
the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts.client_insertions import remove_inserted_texts

# The maximum number of characters in a sentence. Longer sentences are cut.
MAX_SENTENCE_CHARACTERS = 320
_CODE_BLOCK_PATTERN = compile_lazily(
    r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE
)
MARKUP_PATTERN = compile_lazily(r"^[ \t]*(?:[-*+•]|\d+[.)]|#{1,6}|>|\|)[ \t]+")
"""The markup before the text in a list item, a heading, a quotation or a table row."""

_SENTENCE_END_PATTERN = compile_lazily(
    r"(?<=[.!?])[\"')*_`]*\s+(?=[\"'(*_`]*[A-Z0-9À-Þ가-힣])|(?<=[。\uff01\uff1f])"
)
PASTE_START, PASTE_END = "[pasted:", "end of the paste]"

_ANNOUNCEMENT_START_PATTERN = compile_lazily(
    r"(?:now |first,? )?(?:let me|i'll|i will|i need to|i can|let's) (?:also |now |first |just |quickly |start by )*"
    r"(?:check|read|look|verify|see|run|search|find|examine|explore|confirm|start|take|view|get|understand|clearly)\b"
    r"|(?:now,? |next,? |first,? |then,? )?i'm (?:also |now |just |still |going to be )*"
    r"(?:check|read|look|verify|see|(?:re-?)?runn|rebuild|amend|force-push|regenerat|search|locat|inspect|trac|push|committ|stag|creat|post|open|grabb|pull|"
    r"fetch|collect|gather|watch|wait|poll|monitor|edit|add|do|start|mov|format|scann|compar|review|validat|test|build|"
    r"apply|updat|finish)ing\b(?![^.!?]*\b(?:because|since|so that|so the|so we|instead|rather than)\b)"
    r"|(?:now,? |next,? )?i'm (?:also |now )?using the [\w /-]{1,60} (?:workflow|skill)s?\b"
    r"|(?:now,? |next,? )?i'm going to (?:check|read|look|verify|(?:re-?)?run|trace|inspect|amend|do a|sample)\b"
    r"(?![^.!?]*\b(?:because|since|so that|so the|so we|instead|rather than)\b)"
    r"|(?:now,? |next,? )?(?:let me|i'll|i will|let's)\b[^.!?]{0,160}:[*_]*\Z|[^.!?`]{0,60}:[*_]*\Z",
    re.IGNORECASE,
)
"""The start of a sentence that only announces the assistant's next step."""

_DECISION_REQUEST_PATTERN = (
    r"if you(?:'d| would)? (?:like|want|prefer)|say the word|want me to|shall i|should i|"
    r"needs? your (?:approval|confirmation|decision|go-ahead|input)|(?:pick|choose) one|your call|"
    r"(?:a|one) word from you|say so (?:explicitly|first)|(?<=, )say so"
)
"""Words that leave the decision about the next step to the user."""

_OFFER_PATTERN = compile_lazily(
    rf"\b(?:{_DECISION_REQUEST_PATTERN}|needs? your review|let me know|ready (?:to|for|when)|waiting for|"
    r"tell me)\b",
    re.IGNORECASE,
)
_CLOSING_OFFER_PATTERN = compile_lazily(
    rf"\b(?:{_DECISION_REQUEST_PATTERN}|ready to (?:commit|push|merge|deploy|start|implement|proceed))\b",
    re.IGNORECASE,
)
# At most this many sentences at a text's end are checked for a question.
MAX_LAST_SENTENCES = 3
# This many characters at the end of a text are searched for a question.
_MAX_CHARACTERS_SEARCHED_AT_END = 1_500
# A row without words, for example the line below a table's header.
_WORDLESS_ROW_PATTERN = compile_lazily(r"[\s|:-]*")

# At most this many sentences at the start of a prompt are considered for its title.
_MAX_TITLE_SENTENCES = 5
# At most this many characters at the start of a prompt are considered for its title.
_MAX_TITLE_SOURCE_CHARACTERS = 4_000
# A title must have more than this number of bytes, because "hello" and "go on" do not describe the
# work.
_MIN_TITLE_BYTES = 5

_BARE_COMMAND_PATTERN = compile_lazily(r"\s*/\S+\s*")
_PLAN_HEADING_PATTERN = compile_lazily(
    r"^#{1,3}[ \t]+(?:plan|goal|task)?(?:[ \t]*:[ \t]*|\b)(\S[^\n]*)", re.IGNORECASE | re.MULTILINE
)
_REQUEST_START_PATTERN = compile_lazily(
    r"""\A(?:
      (?:hi|hello|hey)(?:[ ]+(?:claude|there|again))?\b | (?:good[ ])?morning\b | thanks?(?:[ ]you)?\b
    | please\b | ok(?:ay)?\b | so\b | well\b | now\b | first\b(?!\s+\w+:) | alright\b
    | (?:can|could|would|will)[ ](?:you|we|i)\b(?:[ ]help(?:[ ]me)?\b)?
    | (?:i|we)(?:'d[ ]like|[ ]would[ ]like|[ ]want|[ ]need)(?:[ ]you)?(?:[ ]to)?\b
    | (?:i[ ]think[ ])?we[ ]should\b | let.?s\b | help[ ]me\b | your[ ](?:task|job|goal)[ ]is[ ]to\b
    )[\s,.!:;-]*""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words at the start of a request that do not describe its subject."""


COMMAND_TEMPLATE_PATTERN = compile_lazily(
    r"\s*## User Input\s*\n```text\n(.*?)\n?```\s*\n(?:You \*\*MUST\*\*|Consider)[^\n]*user input[^\n]*\n(.*)",
    re.DOTALL,
)
"""The template of a command into which the client inserts the user's words. Spec-kit's commands use
this template."""


def keep_typed_text(text: str) -> str:
    """Return the words that the user typed in a prompt.

    Texts that the client inserted, pasted texts, and a command's template around the user's words
    are left out.
    """
    filled_in = COMMAND_TEMPLATE_PATTERN.match(text)
    if filled_in is not None:
        text = filled_in[1]
    return remove_inserted_texts(text, lambda _: "")


def mark_pastes(text: str) -> str:
    """Return the user's words in a prompt, with a line before and after each pasted text."""
    return remove_inserted_texts(
        text, lambda pasted: f"\n{PASTE_START}\n{pasted.strip()}\n{PASTE_END}\n"
    )


def remove_code_blocks(text: str) -> str:
    """Return a text without its code blocks."""
    return _CODE_BLOCK_PATTERN.sub("", text)


def join_wrapped_rows(text: str) -> str:
    """Join the lines into which a sentence or list item was wrapped.

    A line is joined to the previous line if the previous line is long and does not end a sentence.
    """
    rows: list[str] = []
    previous = ""
    for row in text.split("\n"):
        is_wrapped = len(
            previous
        ) >= MIN_WRAPPED_LINE_CHARACTERS and not _COMPLETE_ROW_PATTERN.search(previous)
        if is_wrapped and row.strip() and _SEPARATE_ROW_PATTERN.match(row) is None:
            rows[-1] = f"{rows[-1].rstrip()} {row.strip()}"
        else:
            rows.append(row)
        previous = row
    return "\n".join(rows)


# The minimum number of characters in a line that may have been wrapped.
MIN_WRAPPED_LINE_CHARACTERS = 50
_SEPARATE_ROW_PATTERN = compile_lazily(r"\s*(?:[-*+•]\s|\d+[.)]\s|[#>|<]|```|~~~)")
"""The start of a line that never continues the line before it."""
_COMPLETE_ROW_PATTERN = compile_lazily(r"[.!?:。\uff01\uff1f][\"')*_`]*\s*\Z|\A\s*(?:#|\||```|~~~)")
"""A line that the next line never continues: it ends a sentence, or is a heading or a table row."""


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences and list items of a text, each on one line, without their markup.

    Code blocks are skipped.
    """
    for row in remove_code_blocks(text).split("\n"):
        row_text = MARKUP_PATTERN.sub("", row).strip()
        if _WORDLESS_ROW_PATTERN.fullmatch(row_text) is None:
            for sentence in _SENTENCE_END_PATTERN.split(row_text):
                if len(sentence.strip()) > 1:
                    yield cut_line(sentence)


def cut_line(text: str, max_characters: int = MAX_SENTENCE_CHARACTERS) -> str:
    """Return ``text`` on one line, cut to at most ``max_characters``."""
    line = " ".join(text.split())
    if len(line) <= max_characters:
        return line
    return line[: max_characters - 1].rstrip() + "…"


def straighten_apostrophes(text: str) -> str:
    """Replace typographic apostrophes, so that patterns with straight apostrophes match the text."""
    return text.replace("\u2019", "'")


def is_announcement(sentence: str) -> bool:
    """Check whether a sentence only announces the assistant's next step."""
    return _ANNOUNCEMENT_START_PATTERN.match(straighten_apostrophes(sentence)) is not None


def is_question(sentence: str) -> bool:
    """Check whether a sentence is a question."""
    return sentence.rstrip("*_)\"'").endswith(("?", "\uff1f"))


def find_last_sentences(text: str) -> list[str]:
    """Return the last sentences of a text.

    Only the last part of the text is searched. Code blocks are removed first, because this part
    could begin inside one.
    """
    return list(split_sentences(remove_code_blocks(text)[-_MAX_CHARACTERS_SEARCHED_AT_END:]))


def ends_with_question_or_offer(text: str) -> bool:
    """Check whether one of the last sentences of a text asks or offers something."""
    last_sentences = find_last_sentences(text)[-MAX_LAST_SENTENCES:]
    offers = [
        _OFFER_PATTERN.search(straighten_apostrophes(sentence)) for sentence in last_sentences
    ]
    return any(offers) or any(is_question(sentence) for sentence in last_sentences)


def find_last_question(text: str) -> str:
    """Return the last sentence that asks or offers something if it is near the end, else ``""``."""
    for sentence in reversed(find_last_sentences(text)[-MAX_LAST_SENTENCES:]):
        if is_question(sentence) or _CLOSING_OFFER_PATTERN.search(straighten_apostrophes(sentence)):
            return sentence
    return ""


def find_request_at_end(text: str) -> str:
    """Return the last sentences of a text, starting with the first one that asks or offers something.

    If none of the last sentences asks or offers anything, return ``""``.
    """
    last_sentences = find_last_sentences(text)[-MAX_LAST_SENTENCES:]
    for index, sentence in enumerate(last_sentences):
        if is_question(sentence) or _CLOSING_OFFER_PATTERN.search(straighten_apostrophes(sentence)):
            return cut_line(" ".join(last_sentences[index:]))
    return ""


_WORD_PATTERN = compile_lazily(r"[a-z][a-z\d_]{2,}|pr\b")
_FREQUENT_WORDS = frozenset({
    "the", "and", "for", "you", "can", "this", "that", "with", "not", "are", "was", "but", "all", "now", "please",
    "have", "has", "use", "will", "just", "out", "let", "yes", "what", "how", "why", "should", "would", "could", "then",
    "them", "from", "into", "run", "add", "get", "set", "new", "also", "file", "files", "code", "make",
    "need", "want", "there",
})  # fmt: skip
"""Frequent words that do not help to identify the subject of the work."""


def find_significant_words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without frequent words."""
    return frozenset(_WORD_PATTERN.findall(text.lower())) - _FREQUENT_WORDS


def make_goal_title(prompts: Iterable[str]) -> str:
    """Return the first sentence in the prompts that describes the work, or ``""``.

    The prompts are tried in order. If the user pasted a plan after a colon, the result is the
    plan's heading. Polite words and texts that the client inserted are removed. A prompt that only
    contains a command is skipped.
    """
    for prompt in prompts:
        typed_words = keep_typed_text(prompt[:_MAX_TITLE_SOURCE_CHARACTERS])
        if _BARE_COMMAND_PATTERN.fullmatch(typed_words):
            continue
        for sentence, _ in zip(
            split_sentences(typed_words), range(_MAX_TITLE_SENTENCES), strict=False
        ):
            if sentence.endswith(":"):
                heading = _PLAN_HEADING_PATTERN.search(typed_words)
            else:
                heading = None
            title = _strip_polite_words(heading[1] if heading else sentence)
            if len(title.encode()) > _MIN_TITLE_BYTES:
                return cut_line(title)
    return ""


def _strip_polite_words(sentence: str) -> str:
    """Return a request without polite words, filler words and final punctuation."""
    words = re.sub(r"https?://(?:www\.)?", "", sentence).strip()
    while match := _REQUEST_START_PATTERN.match(words):
        words = words[match.end() :].rstrip("?")
    return words.rstrip(" .:;,")
