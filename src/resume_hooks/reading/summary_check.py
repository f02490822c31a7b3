"""Check a model's summary against the transcript: each sentence gets a reference to its evidence, or a mark.

The check is deterministic: it searches for the claims of a sentence (files, names in code,
commands, numbers, quotes, addresses) and does not interpret them. A claim without any record marks
its sentence. If one record or its neighbours contain all claims of a sentence, the best such record
is referenced. The text of the summary itself stays.

Words are runs of ASCII letters, digits and ``_`` in lower case, so a path, a call or a line break
around a name makes no difference. Texts that cannot be searched are not claims: small numbers,
approximations, words of prose.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest.prose import MARKUP
from resume_hooks.reading.render import text_of
from resume_hooks.sessions.lineage_block import OPENING
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.system.text import format_count
from resume_hooks.transcripts import bookkeeping, records
from resume_hooks.transcripts.bookkeeping import AFTER_CLEAR, FURTHER_PART
from resume_hooks.transcripts.lines import OneOpen, open_transcript, read_lines

SHORTEST = 3  # letters of a word that is searched for
QUOTED, RUN = (
    3,
    2,
)  # the fewest words of a quote (a shorter one may only be emphasis), and of a command
READ = 12  # words at the start of a quote that are searched for
ANY = b""  # stands for any word
BEFORE = 12  # characters before a number that are inspected

_TO_WORDS = (
    bytes(byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)).lower()
    + b" " * 128
)
_CODE = re.compile(r"(`{1,3})([^`]{1,400})\1")
_QUOTE = re.compile(r'(?<![\w=])"([^"]{9,2000})"(?!\w)|\u201c([^\u201d]{9,2000})\u201d')
_CUT = re.compile(
    r"\.\.\.+|\u2026|\[[^\]]{0,80}\]|[`<>;|]|&&"
)  # an omission or other non-text in a quote, and the end of a command

_COMMAND = re.compile(r"[a-z.~/][\w./:@-]*\s[^(){}=]+\Z")
_TOKEN = re.compile(r"[\w.@~/\\+#%:,$-]+")
_NUMBER = re.compile(
    r"[#v$]?((?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,9}){0,3})(?:%|([a-zA-Z]{1,3}))?"
)
_UNITS = ("", "s", "ms", "k", "kb", "mb", "gb", "x", "px", "st", "nd", "rd", "th")
"""Units that may directly follow a number, even if the summary puts a space between them."""

_THOUSAND = re.compile(r"(?<=[0-9])(?=(?:[0-9]{3})+\Z)")
# after a number that is not part of another one, and is not a line number
_ALONE = rb"(?![0-9\t]|\xe2\x86\x92)"
_ABOUT = re.compile(
    r"(?:~|\u2248|\babout|\baround|\broughly|\bover|\bnearly|\balmost|\blines?|[-\u2013])\s*\Z",
    re.IGNORECASE,
)
"""Text before a number that need not appear literally: a rounded one, a line number, the end of a range."""

_NAMED = re.compile(
    r"[a-z0-9][A-Z]|[A-Za-z]{2}\d|\d[A-Za-z]{2}|\w_\w|\w\.\w|\A[~.]?/\w|/.*/|\A-{1,2}\w"
)
"""Signs that do not occur in words of prose."""

_FILE = re.compile(r"(?:.*[\\/])?([\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7})(?::[\d:,-]+)?")
_HASH = re.compile(
    r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])([0-9a-f]{7})[0-9a-f]{0,57}"
)  # a hash, possibly abbreviated
_ABBREVIATED = frozenset({"e.g", "i.e", "a.k.a"})


class Claim(NamedTuple):
    """A text to search for.

    ``shown`` is its form in messages; a text with the claim contains one of ``words``. ``pattern``
    must match the lower-case text, or is None if the word alone is enough. It starts with plain
    letters, which makes the search fast.
    """

    shown: str
    words: tuple[bytes, ...]
    pattern: re.Pattern[bytes] | None = None


def words_in(raw: bytes) -> list[bytes]:
    """Return the words of a UTF-8 text, in order."""
    return raw.translate(_TO_WORDS).split()


def words_of_text(text: str) -> list[bytes]:
    """Return the words of a text, in order."""
    return words_in(text.encode("utf-8", "replace"))


def claims_of(sentence: str) -> list[Claim]:
    """Return the distinct claims of a sentence."""
    found: list[Claim] = []
    rest = sentence
    for quote in _QUOTE.finditer(sentence):
        said = list(_claims_of_quote(quote[1] or quote[2]))
        found += said
        rest = rest.replace(quote[0], " ; ", 1) if said else rest
    for code in _CODE.finditer(rest):
        found += [
            *(_claims_of_quote(code[2], RUN) if _COMMAND.match(code[2]) else ()),
            *_claims_of_names(code[2], in_code=True),
        ]
    return list(dict.fromkeys([*found, *_claims_of_names(_CODE.sub(" ; ", rest), in_code=False)]))


def _claims_of_quote(quote: str, least: int = QUOTED) -> Iterator[Claim]:
    for piece in _CUT.split(quote):
        words = words_of_text(piece)[:READ]
        if len(words) >= least:
            pattern = re.compile(rb"[^a-z0-9_]+".join(words) + rb"\b")
            yield Claim(" ".join(quote.split()), (max(words, key=len),), pattern)


def _claims_of_names(text: str, *, in_code: bool) -> Iterator[Claim]:
    """Yield the names and numbers in a text.

    In code every word counts, in prose only words that look like code.
    """
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".,:/\\~-@+#").lstrip(".,:@+")
        number = _NUMBER.fullmatch(token)
        if number is not None:
            if not _ABOUT.search(text, max(0, match.start() - BEFORE), match.start()):
                yield from _claims_of_number(token, number[1], number[2] or "")
        elif hashed := _HASH.fullmatch(token):
            yield Claim(token, (ANY,), re.compile(_pattern_of_words(hashed[1].encode(), b"")))
        elif token.lower() not in _ABBREVIATED and (in_code or _NAMED.search(token)):
            yield from _claims_of_parts(token)


def _claims_of_number(token: str, digits: str, unit: str) -> Iterator[Claim]:
    """Yield a claim for a number, with and without separators, with its unit attached or separate.

    A single digit is not a claim, because every text contains it.
    """
    plain = digits.replace(",", "")
    if len(plain) > 1:
        ways = sorted({plain, _THOUSAND.sub(",", plain)})
        ends = {re.split("[,.]", way)[-1] for way in ways}
        words = []
        for end in sorted(ends):
            for each in {*_UNITS, unit.lower()}:
                words.append(f"{end}{each}".encode())
        yield Claim(
            token,
            tuple(words),
            re.compile(b"|".join(_pattern_of_words(way.encode(), _ALONE, rb"\w.") for way in ways)),
        )


def _pattern_of_words(words: bytes, behind: bytes, before: bytes = rb"\w") -> bytes:
    """Return a pattern for words that do not follow one of the characters ``before``.

    It starts with plain letters.
    """
    plain = re.escape(words)
    return plain + rb"(?<![" + before + rb"]" + plain + rb")" + behind


def _claims_of_parts(token: str) -> Iterator[Claim]:
    """Yield claims for a name: a path's file name and folder, or each word of any other name."""
    file = _FILE.fullmatch(token)
    rest = token
    if file is not None:
        pattern = re.compile(_pattern_of_words(file[1].lower().encode(), rb"(?!\w)", rb"\w-"))
        yield Claim(token, (max(words_of_text(file[1]), key=len),), pattern)
        rest = re.split(r"[\\/]", token[: file.start(1)])[-2:][0]
    for word in words_of_text(rest):
        if len(word) >= SHORTEST and not word.isdigit():
            yield Claim(token, (word, word.removesuffix(b"s")))


ABSENT = "not in the transcript"
# records after another that count as the same place: the result of a call, the comment on it
NEAR = 2
COMMON = 500  # a word in this many records is too common to locate a sentence
TRIED = 500  # the most records that are weighed for a sentence, the latest first
USUAL = 500  # characters of a record up to which its length does not affect its weight
NAMED, WIDEST = 3, 60  # claims in a mark, and characters of each

_REF = r"[\w/-]*:\d+"
_MARK = rf"(?:\[{ABSENT}[^\]]*\]|\({_REF}(?:, {_REF})*\))"
_MARKS, _REFERENCES = re.compile(_MARK), re.compile(_REF)
_END = re.compile(
    rf"(?:[.!?][\"')*_`]*|{_MARK})(?=\s+(?!{_MARK})[\"'(*_`]*[A-Z0-9À-Þ가-힣])|[。\uff01\uff1f](?: {_MARK})*"
)
_CLOSED = re.compile(
    r"(`{1,3})[^`]{1,400}\1|\"[^\"]{0,2000}\"|\u201c[^\u201d]{0,2000}\u201d"
)  # a sentence cannot end in it
_STOPS = re.compile(r"[.!?]+(?=\s|\Z)|[\]`\"\u201c\u201d。\uff01\uff1f]")
"""Signs that would end a mark or the surrounding sentences early."""

_FENCE = re.compile(r"\s*(?:```|~~~)")
# a heading, a row of a table, an empty line
_HEAD = re.compile(r"\s*(?:#{1,6}\s|\||[a-z ,]*:?\s*\Z)")
_UNSAID = (bookkeeping.SILENT | bookkeeping.TITLES.keys()) - {
    bookkeeping.QUEUE_OPERATION,
    bookkeeping.PR_LINK,
}
_FRONT = 300  # characters of a text that are searched for our own text to a model


class CheckedSummary(NamedTuple):
    """A summary with its marks, and the numbers of ``sentences``, of those ``tied`` to a record, of those marked."""

    text: str
    sentences: int
    tied: int
    marked: int

    @property
    def words(self) -> str:
        """The counts in words."""
        return (
            f"of {format_count(self.sentences, 'sentence')} {self.tied} tied to records, "
            f"{self.marked} {ABSENT}"
        )


class _Sentence(NamedTuple):
    claims: Sequence[Claim]
    words: frozenset[bytes]
    known: frozenset[str]

    @property
    def tells(self) -> bool:
        """Whether its claims identify a record. A single number does not."""
        shown = "".join(claim.shown for claim in self.claims)
        return len(self.claims) > 1 or any(map(str.isalpha, shown))


class _Places:
    """The records that contain the claims and words of sentences, collected in one pass over their texts."""

    def __init__(self, sentences: Sequence[_Sentence]) -> None:
        self.of: dict[Claim, set[int]] = {}
        self._prose: dict[bytes, set[int]] = {}
        for sentence in sentences:
            for claim in sentence.claims:
                self.of[claim] = set()
            for word in sentence.words:
                self._prose[word] = set()
        self._records: list[tuple[str, int]] = []
        self._by_word: dict[bytes, list[tuple[re.Pattern[bytes] | None, set[int]]]] = {}
        for claim, places in self.of.items():
            for word in {*claim.words}:
                self._by_word.setdefault(word, []).append((claim.pattern, places))
        self._wanted = {*self._by_word, *self._prose}

    def take_record(self, reference: str, text: str) -> None:
        at = len(self._records)
        self._records.append((reference, len(text)))
        low = text.lower().encode("utf-8", "replace")
        for word in (ANY, *self._wanted.intersection(words_in(low))):
            claims = self._by_word.get(word, ())
            for pattern, places in claims:
                if pattern is None or pattern.search(low):
                    places.add(at)
            if (prose := self._prose.get(word)) is not None:
                prose.add(at)
                if len(prose) >= COMMON and not claims:
                    self._wanted.discard(word)

    def best_record(self, sentence: _Sentence) -> str:
        """Return the reference of the best evidence for a sentence, or ``""`` if no record has all its claims."""
        places = [self.of[claim] for claim in sentence.claims]
        shown = set.intersection(*places)
        if not shown:  # a call and its result
            shown = set.intersection(*map(_numbers_up_to, places))
        rare = [at for word in sentence.words if len(at := self._prose[word]) < COMMON]

        def weight(at: int) -> tuple[bool, float, int]:
            reference, size = self._records[at]
            words = 1 + sum(1 / math.log2(2 + len(places)) for places in rare if at in places)
            own = sum(at in place for place in places)
            return reference in sentence.known, own * words / math.log2(8 + size / USUAL), at

        tried = [at for at in sorted(shown)[-TRIED:] if at >= 0 and self._records[at][0]]
        if tried:
            return self._records[max(tried, key=weight)][0]
        return ""


def texts_in(file: str | OneOpen, session: str) -> Iterator[tuple[str, str]]:
    """Yield each record with content, as its reference and its text.

    Summaries are skipped, including ours.

    The file content before an edit has no reference, because readers cannot see it. Raises
    SessionNotFound if ``file`` is unreadable.
    """
    with open_transcript(file, BUFFER) as stream:
        for line in read_lines(stream):
            record = records.parse(line.body)
            if (
                record is None
                or record.get("isCompactSummary") is True
                or records.kind(record) in _UNSAID
            ):
                continue
            text = text_of(record)
            if not any(words in text[:_FRONT] for words in (OPENING, AFTER_CLEAR, FURTHER_PART)):
                asked = records.is_prompt(record) and text.startswith("<command-")
                yield (
                    f"{session}:{line.number}",
                    f"{text}\n{records.prompt_text(record)}" if asked else text,
                )
                if before := records.string(records.tool_details(record), "originalFile"):
                    yield "", before


def checked(text: str, said: Iterable[tuple[str, str]]) -> CheckedSummary:
    """Check a summary against the records in ``said``: their references and texts, in order."""
    pieces = []
    for piece, says in _pieces_of_text(text):
        pieces.append((piece, _sentence_of_piece(piece) if says else None))
    places = _Places([sentence for _, sentence in pieces if sentence])
    for reference, words in said:
        places.take_record(reference, words)
    tied = marked = 0
    out: list[str] = []
    for piece, sentence in pieces:
        out.append(piece)
        if sentence is None or not sentence.claims:
            continue
        if absent := [claim.shown for claim in sentence.claims if not places.of[claim]]:
            marked += 1
            names = (_STOPS.sub("", name[:WIDEST]) for name in dict.fromkeys(absent))
            out += (
                [f" [{ABSENT}: {', '.join(islice(names, NAMED))}]"] if ABSENT not in piece else []
            )
        elif sentence.tells and (best := places.best_record(sentence)):
            tied += 1
            out += [f" ({best})"] if best not in sentence.known else []
    return CheckedSummary(
        "".join(out), sum(sentence is not None for _, sentence in pieces), tied, marked
    )


def _pieces_of_text(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text into pieces, each with whether it is a sentence. Joined, they are the text."""
    fenced = False
    for row in text.splitlines(keepends=True):
        fence = _FENCE.match(row) is not None
        fenced ^= fence
        if fence or fenced or _HEAD.match(row):
            yield row, False
            continue
        bare = row.rstrip()
        markup = MARKUP.match(bare)
        begun = markup.end() if markup else 0
        yield row[:begun], False
        closed = [found.span() for found in _CLOSED.finditer(bare, begun)]
        for end in [*(found.end() for found in _END.finditer(bare, begun)), len(bare)]:
            if any(start < end < stop for start, stop in closed):
                continue
            if end > begun:
                yield bare[begun:end], True
            begun = end
        yield row[len(bare) :], False


def _numbers_up_to(places: set[int]) -> set[int]:
    """Return record numbers with the ``NEAR`` numbers before each of them."""
    numbers: set[int] = set()
    for place in places:
        numbers.update(range(place - NEAR, place + 1))
    return numbers


def _sentence_of_piece(piece: str) -> _Sentence:
    said = _MARKS.sub(" ", piece)
    claims = claims_of(said)
    names: set[bytes] = set()
    for claim in claims:
        names.update(claim.words)
    words = frozenset(word for word in words_of_text(said) if len(word) > 3 and word not in names)
    known: set[str] = set()
    for mark in _MARKS.findall(piece):
        known.update(_REFERENCES.findall(mark))
    return _Sentence(claims, words, frozenset(known))
