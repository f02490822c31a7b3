"""Check a model's summary against the transcript: each sentence gets a reference or a mark.

The check does not understand sentences. It searches for a sentence's claims: files, names in code,
commands, numbers, quotations and addresses. If a claim does not occur in any record, the sentence
gets the mark "[not in the transcript: ...]". If a record and its neighbours together contain all
claims of a sentence, the sentence gets the record's reference. If there are several such records,
the best one is used. The text of the summary itself is not changed.

Words are sequences of ASCII letters, digits and ``_``, and are compared in lower case. Therefore
paths, calls and line breaks around a name make no difference. Small numbers, approximations and
ordinary words cannot be searched for and are not claims.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.digest.prose import MARKUP_PATTERN
from resume_hooks.reading.render import render_record_text
from resume_hooks.sessions.lineage_block import LINEAGE_START_MARKER
from resume_hooks.storage.atomic import BUFFER_BYTES
from resume_hooks.system.text import format_count
from resume_hooks.transcripts import metadata_records, records
from resume_hooks.transcripts.lines import SharedFile, open_transcript, read_lines
from resume_hooks.transcripts.metadata_records import LATER_PART_PREFIX, OPENING_AFTER_CLEAR_PREFIX

MIN_WORD_LETTERS = 3  # A word with fewer letters is not searched for.
# The minimum numbers of words in a quotation and in a command. The quotation marks around fewer
# words may only emphasize them.
MIN_QUOTE_WORDS, MIN_COMMAND_WORDS = 3, 2
MAX_QUOTE_WORDS = 12  # At most this many words of a quotation are searched for.
ANY_RECORD_WORD = b""  # A claim with this word is compared with every record.
# This many characters before a number are searched for words such as "about".
NUMBER_CONTEXT_CHARACTERS = 12

_WORD_TRANSLATION_TABLE = (
    bytes(byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)).lower()
    + b" " * 128
)
_CODE_PATTERN = re.compile(r"(`{1,3})([^`]{1,400})\1")
_QUOTE_PATTERN = re.compile(r'(?<![\w=])"([^"]{9,2000})"(?!\w)|\u201c([^\u201d]{9,2000})\u201d')
# Text in a quotation that cannot be searched for, for example an ellipsis or the end of a command.
_QUOTE_OMISSION_PATTERN = re.compile(r"\.\.\.+|\u2026|\[[^\]]{0,80}\]|[`<>;|]|&&")

_COMMAND_PATTERN = re.compile(r"[a-z.~/][\w./:@-]*\s[^(){}=]+\Z")
_TOKEN_PATTERN = re.compile(r"[\w.@~/\\+#%:,$-]+")
_NUMBER_PATTERN = re.compile(
    r"[#v$]?((?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,9}){0,3})(?:%|([a-zA-Z]{1,3}))?"
)
_NUMBER_UNITS = ("", "s", "ms", "k", "kb", "mb", "gb", "x", "px", "st", "nd", "rd", "th")
"""Units that may directly follow a number in a record although the summary has a space between
them."""

_THOUSANDS_POSITION_PATTERN = re.compile(r"(?<=[0-9])(?=(?:[0-9]{3})+\Z)")
# The text after a number must not start with a digit or with the separator after a line number.
_NUMBER_END_PATTERN = rb"(?![0-9\t]|\xe2\x86\x92)"
_LOOSE_NUMBER_PREFIX_PATTERN = re.compile(
    r"(?:~|\u2248|\babout|\baround|\broughly|\bover|\bnearly|\balmost|\blines?|[-\u2013])\s*\Z",
    re.IGNORECASE,
)
"""Words such as "about" or "lines". A number after such a word is not searched for: it may be a
rounded number, the number of a line or the end of a range."""

_CODE_CHARACTERS_PATTERN = re.compile(
    r"[a-z0-9][A-Z]|[A-Za-z]{2}\d|\d[A-Za-z]{2}|\w_\w|\w\.\w|\A[~.]?/\w|/.*/|\A-{1,2}\w"
)
"""Characters that occur in code but not in ordinary words."""

_FILE_NAME_PATTERN = re.compile(r"(?:.*[\\/])?([\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7})(?::[\d:,-]+)?")
# A hash, which may be abbreviated.
_HASH_PATTERN = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])([0-9a-f]{7})[0-9a-f]{0,57}")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a"})


class Claim(NamedTuple):
    """A text that is searched for in the records.

    ``shown_text`` is the text in the form in which messages show it. A record can contain the claim
    only if it contains one of ``words``. If ``pattern`` is not None, the pattern must also match
    the record's text in lower case. The pattern starts with plain letters, which makes the search
    fast.
    """

    shown_text: str
    words: tuple[bytes, ...]
    pattern: re.Pattern[bytes] | None = None


def split_encoded_text_into_words(encoded_text: bytes) -> list[bytes]:
    """Return the words of a text in UTF-8, in order."""
    return encoded_text.translate(_WORD_TRANSLATION_TABLE).split()


def split_text_into_words(text: str) -> list[bytes]:
    """Return the words of a text, in order."""
    return split_encoded_text_into_words(text.encode("utf-8", "replace"))


def find_claims(sentence: str) -> list[Claim]:
    """Return the claims of a sentence, each once."""
    claims: list[Claim] = []
    rest = sentence
    for quote in _QUOTE_PATTERN.finditer(sentence):
        quote_claims = list(_find_quote_claims(quote[1] or quote[2]))
        claims += quote_claims
        rest = rest.replace(quote[0], " ; ", 1) if quote_claims else rest
    for code in _CODE_PATTERN.finditer(rest):
        claims += [
            *(
                _find_quote_claims(code[2], MIN_COMMAND_WORDS)
                if _COMMAND_PATTERN.match(code[2])
                else ()
            ),
            *_find_name_claims(code[2], in_code=True),
        ]
    return list(
        dict.fromkeys([*claims, *_find_name_claims(_CODE_PATTERN.sub(" ; ", rest), in_code=False)])
    )


def _find_quote_claims(quote: str, min_words: int = MIN_QUOTE_WORDS) -> Iterator[Claim]:
    for quote_part in _QUOTE_OMISSION_PATTERN.split(quote):
        words = split_text_into_words(quote_part)[:MAX_QUOTE_WORDS]
        if len(words) >= min_words:
            pattern = re.compile(rb"[^a-z0-9_]+".join(words) + rb"\b")
            yield Claim(" ".join(quote.split()), (max(words, key=len),), pattern)


def _find_name_claims(text: str, *, in_code: bool) -> Iterator[Claim]:
    """Yield claims for the names and numbers in a text.

    In code, each word is a claim. In prose, a word is a claim only if it looks like code.
    """
    for match in _TOKEN_PATTERN.finditer(text):
        token = match[0].rstrip(".,:/\\~-@+#").lstrip(".,:@+")
        number = _NUMBER_PATTERN.fullmatch(token)
        if number is not None:
            if not _LOOSE_NUMBER_PREFIX_PATTERN.search(
                text, max(0, match.start() - NUMBER_CONTEXT_CHARACTERS), match.start()
            ):
                yield from _make_number_claim(token, number[1], number[2] or "")
        elif hash_match := _HASH_PATTERN.fullmatch(token):
            yield Claim(
                token,
                (ANY_RECORD_WORD,),
                re.compile(_make_word_pattern(hash_match[1].encode(), b"")),
            )
        elif token.lower() not in _ABBREVIATIONS and (
            in_code or _CODE_CHARACTERS_PATTERN.search(token)
        ):
            yield from _make_name_claims(token)


def _make_number_claim(token: str, digits: str, unit: str) -> Iterator[Claim]:
    """Yield a claim for a number, unless it has a single digit.

    The claim matches the number with or without separators, and with or without a space before the
    unit. A single digit is not a claim, because every text contains it.
    """
    plain_digits = digits.replace(",", "")
    if len(plain_digits) > 1:
        number_forms = sorted({plain_digits, _THOUSANDS_POSITION_PATTERN.sub(",", plain_digits)})
        last_groups = {re.split("[,.]", number_form)[-1] for number_form in number_forms}
        words = []
        for last_group in sorted(last_groups):
            for unit_text in {*_NUMBER_UNITS, unit.lower()}:
                words.append(f"{last_group}{unit_text}".encode())
        yield Claim(
            token,
            tuple(words),
            re.compile(
                b"|".join(
                    _make_word_pattern(number_form.encode(), _NUMBER_END_PATTERN, rb"\w.")
                    for number_form in number_forms
                )
            ),
        )


def _make_word_pattern(
    words: bytes, end_pattern: bytes, excluded_characters: bytes = rb"\w"
) -> bytes:
    """Return a pattern that matches words unless one of ``excluded_characters`` precedes them.

    The pattern starts with plain letters, so that the search is fast.
    """
    plain = re.escape(words)
    return plain + rb"(?<![" + excluded_characters + rb"]" + plain + rb")" + end_pattern


def _make_name_claims(token: str) -> Iterator[Claim]:
    """Yield the claims that a name makes.

    For a path, the claims are its file name and its folder. For any other name, they are the words
    in the name.
    """
    file = _FILE_NAME_PATTERN.fullmatch(token)
    rest = token
    if file is not None:
        pattern = re.compile(_make_word_pattern(file[1].lower().encode(), rb"(?!\w)", rb"\w-"))
        yield Claim(token, (max(split_text_into_words(file[1]), key=len),), pattern)
        rest = re.split(r"[\\/]", token[: file.start(1)])[-2:][0]
    for word in split_text_into_words(rest):
        if len(word) >= MIN_WORD_LETTERS and not word.isdigit():
            yield Claim(token, (word, word.removesuffix(b"s")))


NOT_IN_TRANSCRIPT_NOTE = "not in the transcript"
# The maximum number of records between two records that are near each other, such as a call and its
# result.
MAX_NEAR_RECORD_DISTANCE = 2
# A word that occurs in at least this many records is too frequent to locate a sentence.
MIN_COMMON_WORD_RECORDS = 500
# At most this many records are compared for one sentence. The latest records are compared.
MAX_COMPARED_RECORDS = 500
# A longer record gets a lower score. The difference is small for records with at most this many
# characters.
MAX_USUAL_RECORD_CHARACTERS = 500
# At most this many claims are named in a mark for unsupported claims, each with at most this many
# characters.
MAX_NAMED_CLAIMS, MAX_CLAIM_CHARACTERS = 3, 60

_REFERENCE_PATTERN = r"[\w/-]*:\d+"
_MARK_PATTERN = (
    rf"(?:\[{NOT_IN_TRANSCRIPT_NOTE}[^\]]*\]|\({_REFERENCE_PATTERN}(?:, {_REFERENCE_PATTERN})*\))"
)
_MARKS, _REFERENCES = re.compile(_MARK_PATTERN), re.compile(_REFERENCE_PATTERN)
_SENTENCE_END_PATTERN = re.compile(
    rf"(?:[.!?][\"')*_`]*|{_MARK_PATTERN})(?=\s+(?!{_MARK_PATTERN})[\"'(*_`]*[A-Z0-9À-Þ가-힣])|"
    rf"[。\uff01\uff1f](?: {_MARK_PATTERN})*"
)
# A quoted text. A full stop inside the quotation marks does not end the sentence.
_QUOTED_SPAN_PATTERN = re.compile(
    r"(`{1,3})[^`]{1,400}\1|\"[^\"]{0,2000}\"|\u201c[^\u201d]{0,2000}\u201d"
)
_EARLY_STOP_PATTERN = re.compile(r"[.!?]+(?=\s|\Z)|[\]`\"\u201c\u201d。\uff01\uff1f]")
"""Characters that would end the mark or the sentence too early if a claim contained them."""

_FENCE_PATTERN = re.compile(r"\s*(?:```|~~~)")
# A row that is not a sentence: a heading, a table row, or an empty line.
_NON_SENTENCE_ROW_PATTERN = re.compile(r"\s*(?:#{1,6}\s|\||[a-z ,]*:?\s*\Z)")
_IGNORED_RECORD_KINDS = (
    metadata_records.KINDS_WITHOUT_CONVERSATION_TEXT | metadata_records.TITLE_FIELDS_BY_KIND.keys()
) - {
    metadata_records.QUEUE_OPERATION,
    metadata_records.PR_LINK,
}
# How many characters at the start of a text are searched for this plugin's own words.
_MAX_SEARCHED_START_CHARACTERS = 300


class CheckedSummary(NamedTuple):
    """A summary with its marks and references.

    ``sentence_count`` is the number of all sentences. ``referenced_sentence_count`` is the number of
    sentences with a reference, and ``marked_sentence_count`` is the number of sentences with a
    mark.
    """

    text: str
    sentence_count: int
    referenced_sentence_count: int
    marked_sentence_count: int

    @property
    def description(self) -> str:
        """A line with three counts: all sentences, those tied to a record, and those marked as unsupported."""
        return (
            f"of {format_count(self.sentence_count, 'sentence')} {self.referenced_sentence_count} tied to records, "
            f"{self.marked_sentence_count} {NOT_IN_TRANSCRIPT_NOTE}"
        )


class _Sentence(NamedTuple):
    claims: Sequence[Claim]
    words: frozenset[bytes]
    known_references: frozenset[str]

    @property
    def can_identify_record(self) -> bool:
        """Whether the sentence's claims can identify a record. A single number cannot."""
        shown_text = "".join(claim.shown_text for claim in self.claims)
        return len(self.claims) > 1 or any(map(str.isalpha, shown_text))


class _EvidenceIndex:
    """Maps each claim and each word of the sentences to the records that contain it.

    The caller adds one record after another, so each text is read only once.
    """

    def __init__(self, sentences: Sequence[_Sentence]) -> None:
        self.records_by_claim: dict[Claim, set[int]] = {}
        self._records_by_word: dict[bytes, set[int]] = {}
        for sentence in sentences:
            for claim in sentence.claims:
                self.records_by_claim[claim] = set()
            for word in sentence.words:
                self._records_by_word[word] = set()
        self._records: list[tuple[str, int]] = []
        self._claims_by_word: dict[bytes, list[tuple[re.Pattern[bytes] | None, set[int]]]] = {}
        for claim, places in self.records_by_claim.items():
            for word in {*claim.words}:
                self._claims_by_word.setdefault(word, []).append((claim.pattern, places))
        self._searched_words = {*self._claims_by_word, *self._records_by_word}

    def add_record(self, reference: str, text: str) -> None:
        record_number = len(self._records)
        self._records.append((reference, len(text)))
        lower_text = text.lower().encode("utf-8", "replace")
        for word in (
            ANY_RECORD_WORD,
            *self._searched_words.intersection(split_encoded_text_into_words(lower_text)),
        ):
            claims = self._claims_by_word.get(word, ())
            for pattern, places in claims:
                if pattern is None or pattern.search(lower_text):
                    places.add(record_number)
            if (prose := self._records_by_word.get(word)) is not None:
                prose.add(record_number)
                if len(prose) >= MIN_COMMON_WORD_RECORDS and not claims:
                    self._searched_words.discard(word)

    def find_best_record(self, sentence: _Sentence) -> str:
        """Return the reference of the best evidence for a sentence.

        If no record contains all claims of the sentence, even together with its neighbours, return
        ``""``.
        """
        record_sets = [self.records_by_claim[claim] for claim in sentence.claims]
        candidates = set.intersection(*record_sets)
        # The claims may be spread over a call and its result, which are two records.
        if not candidates:
            candidates = set.intersection(*map(_add_preceding_numbers, record_sets))
        rare_places = [
            number
            for word in sentence.words
            if len(number := self._records_by_word[word]) < MIN_COMMON_WORD_RECORDS
        ]

        def sort_key_of_record(number: int) -> tuple[bool, float, int]:
            reference, size = self._records[number]
            shared_word_score = 1 + sum(
                1 / math.log2(2 + len(record_sets))
                for record_sets in rare_places
                if number in record_sets
            )
            own_claim_count = sum(number in place for place in record_sets)
            return (
                reference in sentence.known_references,
                own_claim_count
                * shared_word_score
                / math.log2(8 + size / MAX_USUAL_RECORD_CHARACTERS),
                number,
            )

        tried_numbers = [
            number
            for number in sorted(candidates)[-MAX_COMPARED_RECORDS:]
            if number >= 0 and self._records[number][0]
        ]
        if tried_numbers:
            return self._records[max(tried_numbers, key=sort_key_of_record)][0]
        return ""


def read_record_texts(file: str | SharedFile, session_id: str) -> Iterator[tuple[str, str]]:
    """Yield the reference and the text of each record with content.

    Summaries, including those that this plugin wrote, are skipped. If a text is the content of a
    file before an edit, its reference is ``""``, because readers cannot see that text. Raises
    SessionNotFound if ``file`` is unreadable.
    """
    with open_transcript(file, BUFFER_BYTES) as stream:
        for line in read_lines(stream):
            record = records.parse_record(line.body)
            if (
                record is None
                or record.get("isCompactSummary") is True
                or records.get_kind(record) in _IGNORED_RECORD_KINDS
            ):
                continue
            text = render_record_text(record)
            if not any(
                words in text[:_MAX_SEARCHED_START_CHARACTERS]
                for words in (LINEAGE_START_MARKER, OPENING_AFTER_CLEAR_PREFIX, LATER_PART_PREFIX)
            ):
                is_command = records.is_prompt(record) and text.startswith("<command-")
                yield (
                    f"{session_id}:{line.number}",
                    f"{text}\n{records.prompt_text(record)}" if is_command else text,
                )
                if original_content := records.get_string(
                    records.tool_details(record), "originalFile"
                ):
                    yield "", original_content


def check_summary(text: str, record_texts: Iterable[tuple[str, str]]) -> CheckedSummary:
    """Check a summary. ``record_texts`` are the references and texts of the records, in order."""
    pieces = []
    for piece, is_sentence in _split_and_mark_sentences(text):
        pieces.append((piece, _make_sentence(piece) if is_sentence else None))
    evidence = _EvidenceIndex([sentence for _, sentence in pieces if sentence])
    for reference, words in record_texts:
        evidence.add_record(reference, words)
    sentences = tied_count = marked_count = 0
    marked_text: list[str] = []
    for piece, sentence in pieces:
        marked_text.append(piece)
        if sentence is None:
            continue
        sentences += 1
        absent_names = [
            claim.shown_text for claim in sentence.claims if not evidence.records_by_claim[claim]
        ]
        if absent_names:
            marked_count += 1
            if NOT_IN_TRANSCRIPT_NOTE not in piece:
                marked_text.append(f" [{NOT_IN_TRANSCRIPT_NOTE}: {_join_names(absent_names)}]")
            continue
        if sentence.claims and sentence.can_identify_record:
            best_reference = evidence.find_best_record(sentence)
            if best_reference:
                tied_count += 1
                if best_reference not in sentence.known_references:
                    marked_text.append(f" ({best_reference})")
    return CheckedSummary("".join(marked_text), sentences, tied_count, marked_count)


def _join_names(names: Iterable[str]) -> str:
    """Return the first few names as a list with commas.

    Repeated names are left out. Each name is shortened, and characters in it that would end the
    sentence or the mark early are removed.
    """
    short_names = []
    for name in dict.fromkeys(names):
        short_names.append(_EARLY_STOP_PATTERN.sub("", name[:MAX_CLAIM_CHARACTERS]))
    return ", ".join(short_names[:MAX_NAMED_CLAIMS])


def _split_and_mark_sentences(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text into pieces. For each piece, also yield whether it is a sentence.

    The joined pieces are the whole text.
    """
    is_fenced = False
    for row in text.splitlines(keepends=True):
        is_fence = _FENCE_PATTERN.match(row) is not None
        is_fenced ^= is_fence
        if is_fence or is_fenced or _NON_SENTENCE_ROW_PATTERN.match(row):
            yield row, False
            continue
        stripped_row = row.rstrip()
        markup = MARKUP_PATTERN.match(stripped_row)
        start_of_sentence = markup.end() if markup else 0
        yield row[:start_of_sentence], False
        closed_spans = [
            match.span() for match in _QUOTED_SPAN_PATTERN.finditer(stripped_row, start_of_sentence)
        ]
        for end in [
            *(
                match.end()
                for match in _SENTENCE_END_PATTERN.finditer(stripped_row, start_of_sentence)
            ),
            len(stripped_row),
        ]:
            if any(start < end < stop for start, stop in closed_spans):
                continue
            if end > start_of_sentence:
                yield stripped_row[start_of_sentence:end], True
            start_of_sentence = end
        yield row[len(stripped_row) :], False


def _add_preceding_numbers(record_numbers: set[int]) -> set[int]:
    """Return the record numbers and, for each, the ``MAX_NEAR_RECORD_DISTANCE`` numbers before it."""
    numbers: set[int] = set()
    for record_number in record_numbers:
        numbers.update(range(record_number - MAX_NEAR_RECORD_DISTANCE, record_number + 1))
    return numbers


def _make_sentence(piece: str) -> _Sentence:
    text_without_marks = _MARKS.sub(" ", piece)
    claims = find_claims(text_without_marks)
    names: set[bytes] = set()
    for claim in claims:
        names.update(claim.words)
    words = frozenset(
        word
        for word in split_text_into_words(text_without_marks)
        if len(word) > 3 and word not in names
    )
    known_references: set[str] = set()
    for mark in _MARKS.findall(piece):
        known_references.update(_REFERENCES.findall(mark))
    return _Sentence(claims, words, frozenset(known_references))
