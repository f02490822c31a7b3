"""What a sentence claims that can be looked up: files, names out of code, commands, numbers, quotes, addresses.

Words are runs of letters, digits and ``_`` of ASCII, in lower case, so that a path, a call or a line break around a
name changes nothing. What nobody can look up is no claim: small numbers, what is only about so many, words of prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

SHORTEST = 3  # letters of a word that is looked up
QUOTED, RUN = (
    3,
    2,
)  # words of a quote from which on it is one, since a shorter one may only set a word apart; of a command
READ = 12  # words of a quote that are looked up: how it begins
ANY = b""  # stands for any word
BEFORE = 12  # characters before a number that are looked at

_TO_WORDS = bytes(byte if chr(byte).isalnum() or chr(byte) == "_" else 0x20 for byte in range(128)).lower() + b" " * 128
_CODE = re.compile(r"(`{1,3})([^`]{1,400})\1")
_QUOTE = re.compile(r'(?<![\w=])"([^"]{9,2000})"(?!\w)|\u201c([^\u201d]{9,2000})\u201d')
_CUT = re.compile(r"\.\.\.+|\u2026|\[[^\]]{0,80}\]|[`<>;|]|&&")  # a gap or no text in a quote; a command's end

_COMMAND = re.compile(r"[a-z.~/][\w./:@-]*\s[^(){}=]+\Z")
_TOKEN = re.compile(r"[\w.@~/\\+#%:,$-]+")
_NUMBER = re.compile(r"[#v$]?((?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,9}){0,3})(?:%|([a-zA-Z]{1,3}))?")
_UNITS = ("", "s", "ms", "k", "kb", "mb", "gb", "x", "px", "st", "nd", "rd", "th")
"""What may stand right behind a number, also where the summary has a space between them."""

_THOUSAND = re.compile(r"(?<=[0-9])(?=(?:[0-9]{3})+\Z)")
_ALONE = rb"(?![0-9\t]|\xe2\x86\x92)"  # behind a number that is no other one, and not the number of a line
_ABOUT = re.compile(
    r"(?:~|\u2248|\babout|\baround|\broughly|\bover|\bnearly|\balmost|\blines?|[-\u2013])\s*\Z", re.IGNORECASE
)
"""What stands before a number that nobody has to have written: a rounded one, a line's, the end of a range."""

_NAMED = re.compile(r"[a-z0-9][A-Z]|[A-Za-z]{2}\d|\d[A-Za-z]{2}|\w_\w|\w\.\w|\A[~.]?/\w|/.*/|\A-{1,2}\w")
"""What no word of prose has."""

_FILE = re.compile(r"(?:.*[\\/])?([\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7})(?::[\d:,-]+)?")
_HASH = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])([0-9a-f]{7})[0-9a-f]{0,57}")  # also where one is cut
_ABBREVIATED = frozenset({"e.g", "i.e", "a.k.a"})


class Claim(NamedTuple):
    """Something to look up: as it is ``shown``, and the ``words`` of which a text that has it has any.

    ``pattern`` is what that text has in lower case, None where a word says all; it begins with plain letters, since
    these are found fast.
    """

    shown: str
    words: tuple[bytes, ...]
    pattern: re.Pattern[bytes] | None = None


def words_in(raw: bytes) -> list[bytes]:
    """The words of a text in UTF-8, in order."""
    return raw.translate(_TO_WORDS).split()


def words_of(text: str) -> list[bytes]:
    """The words of a text, in order."""
    return words_in(text.encode("utf-8", "replace"))


def claims_of(sentence: str) -> list[Claim]:
    """What a sentence claims, each thing once."""
    found: list[Claim] = []
    rest = sentence
    for quote in _QUOTE.finditer(sentence):
        said = list(_quoted(quote[1] or quote[2]))
        found += said
        rest = rest.replace(quote[0], " ; ", 1) if said else rest
    for code in _CODE.finditer(rest):
        found += [*(_quoted(code[2], RUN) if _COMMAND.match(code[2]) else ()), *_named(code[2], in_code=True)]
    return list(dict.fromkeys([*found, *_named(_CODE.sub(" ; ", rest), in_code=False)]))


def _quoted(quote: str, least: int = QUOTED) -> Iterator[Claim]:
    for piece in _CUT.split(quote):
        words = words_of(piece)[:READ]
        if len(words) >= least:
            pattern = re.compile(rb"[^a-z0-9_]+".join(words) + rb"\b")
            yield Claim(" ".join(quote.split()), (max(words, key=len),), pattern)


def _named(text: str, *, in_code: bool) -> Iterator[Claim]:
    """The names and numbers in a text: of code every word counts, of prose what no prose has."""
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".,:/\\~-@+#").lstrip(".,:@+")
        number = _NUMBER.fullmatch(token)
        if number is not None:
            if not _ABOUT.search(text, max(0, match.start() - BEFORE), match.start()):
                yield from _counted(token, number[1], number[2] or "")
        elif hashed := _HASH.fullmatch(token):
            yield Claim(token, (ANY,), re.compile(_whole(hashed[1].encode(), b"")))
        elif token.lower() not in _ABBREVIATED and (in_code or _NAMED.search(token)):
            yield from _parts(token)


def _counted(token: str, digits: str, unit: str) -> Iterator[Claim]:
    """A number, with its separators and without, its unit apart or right behind; none that every text has."""
    plain = digits.replace(",", "")
    if len(plain) > 1:
        ways = sorted({plain, _THOUSAND.sub(",", plain)})
        ends = {re.split("[,.]", way)[-1] for way in ways}
        words = tuple(f"{end}{each}".encode() for end in sorted(ends) for each in {*_UNITS, unit.lower()})
        yield Claim(token, words, re.compile(b"|".join(_whole(way.encode(), _ALONE, rb"\w.") for way in ways)))


def _whole(words: bytes, behind: bytes, before: bytes = rb"\w") -> bytes:
    """The pattern of words that none of the letters ``before`` stands before; it begins with plain letters."""
    plain = re.escape(words)
    return plain + rb"(?<![" + before + rb"]" + plain + rb")" + behind


def _parts(token: str) -> Iterator[Claim]:
    """A name: of a path the file's name and its folder, of anything else its words, each for itself."""
    file = _FILE.fullmatch(token)
    rest = token
    if file is not None:
        pattern = re.compile(_whole(file[1].lower().encode(), rb"(?!\w)", rb"\w-"))
        yield Claim(token, (max(words_of(file[1]), key=len),), pattern)
        rest = re.split(r"[\\/]", token[: file.start(1)])[-2:][0]
    for word in words_of(rest):
        if len(word) >= SHORTEST and not word.isdigit():
            yield Claim(token, (word, word.removesuffix(b"s")))
