"""A model's summary, checked against the transcript: each sentence gets the record that shows it, or a mark.

Deterministic: the claims of a sentence (files, names out of code, commands, numbers, quotes,
addresses) are looked up, not understood. A claim that no record has marks its sentence; where a
record, or those next to it, have all claims of a sentence, the best of them is named. The words of
the summary all stay.

Words are runs of letters, digits and ``_`` of ASCII, in lower case, so that a path, a call or a
line break around a name changes nothing. A text that can't be looked up is not a claim: small
numbers, approximations, words of prose.
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

SHORTEST = 3  # letters of a word that is looked up
QUOTED, RUN = (
    3,
    2,
)  # words of a quote from which on it is one, since a shorter one may only set a word apart; of a command
READ = 12  # words of a quote that are looked up: how it begins
ANY = b""  # stands for any word
BEFORE = 12  # characters before a number that are looked at

_TO_WORDS = (
    bytes(byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)).lower()
    + b" " * 128
)
_CODE = re.compile(r"(`{1,3})([^`]{1,400})\1")
_QUOTE = re.compile(r'(?<![\w=])"([^"]{9,2000})"(?!\w)|\u201c([^\u201d]{9,2000})\u201d')
_CUT = re.compile(
    r"\.\.\.+|\u2026|\[[^\]]{0,80}\]|[`<>;|]|&&"
)  # a gap or no text in a quote; a command's end

_COMMAND = re.compile(r"[a-z.~/][\w./:@-]*\s[^(){}=]+\Z")
_TOKEN = re.compile(r"[\w.@~/\\+#%:,$-]+")
_NUMBER = re.compile(
    r"[#v$]?((?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,9}){0,3})(?:%|([a-zA-Z]{1,3}))?"
)
_UNITS = ("", "s", "ms", "k", "kb", "mb", "gb", "x", "px", "st", "nd", "rd", "th")
"""Units that may stand right after a number, also where the summary has a space between them."""

_THOUSAND = re.compile(r"(?<=[0-9])(?=(?:[0-9]{3})+\Z)")
_ALONE = rb"(?![0-9\t]|\xe2\x86\x92)"  # after a number that is not part of another one, and not the number of a line
_ABOUT = re.compile(
    r"(?:~|\u2248|\babout|\baround|\broughly|\bover|\bnearly|\balmost|\blines?|[-\u2013])\s*\Z",
    re.IGNORECASE,
)
"""What stands before a number that nobody has to have written: a rounded one, a line's, the end of a range."""

_NAMED = re.compile(
    r"[a-z0-9][A-Z]|[A-Za-z]{2}\d|\d[A-Za-z]{2}|\w_\w|\w\.\w|\A[~.]?/\w|/.*/|\A-{1,2}\w"
)
"""Signs that no word of prose has."""

_FILE = re.compile(r"(?:.*[\\/])?([\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7})(?::[\d:,-]+)?")
_HASH = re.compile(
    r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])([0-9a-f]{7})[0-9a-f]{0,57}"
)  # also where one is cut
_ABBREVIATED = frozenset({"e.g", "i.e", "a.k.a"})


class Claim(NamedTuple):
    """Something to look up: as it is ``shown``, and the ``words`` of which a text that has it has any.

    ``pattern`` is what that text has in lower case, None where a word says all; it begins with
    plain letters, since these are found fast.
    """

    shown: str
    words: tuple[bytes, ...]
    pattern: re.Pattern[bytes] | None = None


def words_in(raw: bytes) -> list[bytes]:
    """The words of a text in UTF-8, in order."""
    return raw.translate(_TO_WORDS).split()


def words_of_text(text: str) -> list[bytes]:
    """The words of a text, in order."""
    return words_in(text.encode("utf-8", "replace"))


def claims_of(sentence: str) -> list[Claim]:
    """The claims of a sentence, each once."""
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
    """The names and numbers in a text: in code every word counts, in prose only words that are not prose."""
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
    """A number, with its separators and without, its unit apart or right behind.

    None that every text has.
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
    """The pattern of words that none of the letters ``before`` stands before.

    It begins with plain letters.
    """
    plain = re.escape(words)
    return plain + rb"(?<![" + before + rb"]" + plain + rb")" + behind


def _claims_of_parts(token: str) -> Iterator[Claim]:
    """A name: of a path the file's name and its folder, of anything else its words, each for itself."""
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
NEAR = 2  # records behind one that count as the same place: what was answered to a call, what was said of it
COMMON = 500  # records from which on a word of prose says nothing of where a sentence is from
TRIED = 500  # records at most that are weighed for a sentence, the latest
USUAL = 500  # characters of a record up to which its length says nothing of how well it shows a sentence
NAMED, WIDEST = 3, 60  # claims that a mark names, and characters of each

_REF = r"[\w/-]*:\d+"
_MARK = rf"(?:\[{ABSENT}[^\]]*\]|\({_REF}(?:, {_REF})*\))"
_MARKS, _REFERENCES = re.compile(_MARK), re.compile(_REF)
_END = re.compile(
    rf"(?:[.!?][\"')*_`]*|{_MARK})(?=\s+(?!{_MARK})[\"'(*_`]*[A-Z0-9À-Þ가-힣])|[。\uff01\uff1f](?: {_MARK})*"
)
_CLOSED = re.compile(
    r"(`{1,3})[^`]{1,400}\1|\"[^\"]{0,2000}\"|\u201c[^\u201d]{0,2000}\u201d"
)  # nothing ends in it
_STOPS = re.compile(r"[.!?]+(?=\s|\Z)|[\]`\"\u201c\u201d。\uff01\uff1f]")
"""Signs that would end a mark, or move the ends of the sentences around it."""

_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEAD = re.compile(r"\s*(?:#{1,6}\s|\||[a-z ,]*:?\s*\Z)")  # a heading, a row of a table, nothing
_UNSAID = (bookkeeping.SILENT | bookkeeping.TITLES.keys()) - {
    bookkeeping.QUEUE_OPERATION,
    bookkeeping.PR_LINK,
}
_FRONT = 300  # characters of a text in which what we told a model shows that we did


class CheckedSummary(NamedTuple):
    """A summary with its marks; how many ``sentences`` it has, how many are ``tied`` to a record, how many marked."""

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
        """Whether its claims identify a record: a number alone may stand in any."""
        shown = "".join(claim.shown for claim in self.claims)
        return len(self.claims) > 1 or any(map(str.isalpha, shown))


class _Places:
    """Where the claims and the words of sentences occur, gathered in one pass over the texts of records."""

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
        """The reference of the record that shows a sentence; ``""`` where no record has all its claims."""
        places = [self.of[claim] for claim in sentence.claims]
        shown = set.intersection(*places)
        if not shown:  # a call, and the answer to it
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
    """Each record that says something, by its reference, and its text.

    Of summaries, ours among them, none.

    A file as it was before an edit, which no reader is shown, has no reference. SessionNotFound
    where ``file`` can't be read.
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
    """A summary, checked against what was ``said``: the reference and the text of each record, in their order."""
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
    """A text in pieces, each with whether it is a sentence; joined they are the text."""
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
    """Some numbers of records, and of each the ``NEAR`` before it."""
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
