"""Values that look like a secret and are not one: placeholders, examples, names, ids, hashes of files."""

from __future__ import annotations

import math
from itertools import pairwise

from resume_hooks.redaction.lazy_patterns import late

_STANDS_FOR = late(
    rb"example|placeholder|your|my(?:secret|token|key|pass)|change(?:me|it|this|pw)|replace|redacted|removed|dummy"
    rb"|sample|"
    rb"xxxx|\*\*\*|\.\.\.|00000000|1234567|12341234|abcdefg|deadbeef|fake|insert|todo|lorem|suppressed|masked|hidden|"
    rb"truncated|notareal|%7b|eby8vdm02x"
)
"""Words and runs that people and documentation put where a secret would stand, without ``-`` and ``_``.

The last one begins the key that is public for every emulator of Azure's storage.
"""

_SEALED = late(rb"Ag[A-D][\w+/]{60}")
"""How what a cluster alone can read begins."""

_SHOWN = 200
"""Bytes of a value that are looked at for them: in a long one chance makes such a word, too."""

_REFERENCE = late(
    rb"^(?:\$|%[\w-]+%|@[\w-]+@|\{|-?\[|[A-Za-z-]+\]$|<|\(|&|\*|!|#)|\(\)|\$\{|\{\{|\$\("
    rb"|^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+(?::[A-Za-z_]\w*)?$|^[\w$.]+[\[(]|^0[xX][0-9A-Fa-f]{1,8}$|^arn:|=>"
    rb"|::|^\.{0,2}/|^\\|^--|&[a-z]{2,8}$|^:[\w:]+$|^@[\w-]+/[\w.-]+$|^@?[a-z][\w./-]*@\d+\.\d|^,.*\($|^[a-z][a-z+]{1,9}://[^@?]*$|aws4_request$"
    rb"|^(?:[a-z]{2,12}\d{0,2}/){2,}[a-z]{2,12}\d{0,2}$|^[A-Za-z-]+(?::[A-Za-z-]+){2,}$|^\.\*|^%[sd]|%[sd]$|=\$[a-z]|^(?:return|void|typeof|await|throw|function)\b"
    rb"|\w\[\w*\].*\w\[\w|^(?=[^.]*\.[A-Za-z][^.]*\.[A-Za-z])[\w$.]+(?:\?|[:+*]|&&|\|\||={1,3})[A-Za-z_$!]|"
    rb"(?i:(?:private|public|secret)key)|^(?:urn|pkcs11):|^@[a-z]+\.[a-z]+$|^\d*\*[A-Z(]\w*$|^\^[a-z]+$|^[\w-]+:[x*!]:\d+:\d+:"
    rb"|\[\^?(?:a-z|A-Z|0-9)|\\[dw][+*{]|[\])]\{\d+,?\d*\}"
)
"""Text of a program or a shell that names where a secret comes from."""

_NO_PATH = late(
    rb"/(?=[^/]*[0-9])(?=.*[A-Z])(?=.*[a-z])(?:[A-Za-z0-9/+]{39}|[A-Za-z0-9/+]{30,90}={1,2})"
)
"""A key of AWS that begins with a slash, as one in 64 does."""

_UUID = late(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PIECE = late(rb"[A-Z]?[a-z]+|[A-Z]+")
_VOWEL = late(rb"[aeiouyAEIOUY]")
_NUMBER = late(rb"[0-9]+")
_NO_LETTERS = bytes(sign for sign in range(256) if not bytes([sign]).isalpha())
_COMMON = late(
    rb"pass(?:word|wd|phrase|code)?|plain(?:text)?|cleartext|secret|token|test(?:ing|er)?|admin|root|user(?:name)?|guest|anonymous"
    rb"|default|demo|hello|"
    rb"world|foo(?!t)|bar|baz|qux|string|value|none|null|true|false|undefined|required|optional|\Ahunter2?\Z|"
    rb"login|postgres|mysql|redis|mongo|database|local|host|invalid|wrong|correct|valid|right|new|old|"
    rb"key|api|auth|credential|access|private|public|bearer|basic|some|any|123(?:4(?:56*)?)?|abc|[^a-z0-9]"
)
_TELLING = 64
"""Bytes of a value in which there is more than such words."""

_DIGIT = late(rb"[0-9]")
_LETTER = late(rb"[A-Za-z]")
_WORDS = late(rb"(?=.{8,80}\Z)[A-Za-z]+(?:[._-][A-Za-z]+){0,5}")
"""A password of words alone."""

_CASES = late(rb"[A-Za-z]{10,80}")
_NO_NAME = late(rb"[^A-Za-z_.\s\x80-\xff-]")
"""What a name in a program does not hold."""

_FOLLOWERS = {
    "a": "bcdfgiklmnprstuvwy", "b": "aeilorsu", "c": "acehiklorstu", "d": "acdeilorstu", "e": "abcdefgilmnopqrstvwxy",
    "f": "aefiloru", "g": "aehilnrsu", "h": "aeiot", "i": "abcdefglmnoprstvxz", "k": "eis", "l": "adeilostuy",
    "m": "abeimopsu", "n": "acdefgiklnopstuv", "o": "abcdfgiklmnoprstuvw", "p": "aeiloprstuy", "q": "u",
    "r": "acdefgiklmnoprstuvy", "s": "acehiklopstuy", "t": "acdefhilmoprstuy", "u": "abcefgilmnprst", "v": "aei",
    "w": "aeinors", "x": "cept", "y": "npst", "z": "e",
}  # fmt: skip
"""Which letters follow each in 93 of 100 pairs of the words in English and in programs, and in 38 that chance makes."""

_LEAST_LETTERS = 8
"""Letters of a value in which chance can be told from a word; ``already`` has fewer, and rare pairs."""

_NAME = late(rb"[A-Za-z]+(?:[._-][A-Za-z]+)*[0-9]{0,2}")
_LETTERS = late(rb"[A-Za-z]+")


def entropy(value: bytes) -> float:
    """Shannon's entropy of the bytes, in bits a byte."""
    size = len(value)
    if size:
        return (
            math.log2(size)
            - sum(n * math.log2(n) for n in map(value.count, set(value)) if n > 1) / size
        )
    return 0.0


def stands_for(value: bytes) -> bool:
    """Whether a value of a token's shape is a placeholder or an example of documentation."""
    if (
        len(set(value)) < (6 if len(value) > 8 else 5)
        or _SEALED.match(value)
        or b">" in value.partition(b"<")[2]
    ):
        return True
    return _STANDS_FOR.search(value[:_SHOWN].lower().translate(None, b"-_")) is not None


def is_id(value: bytes) -> bool:
    """Whether a value names something: a UUID, which transcripts are full of."""
    return _UUID.fullmatch(value) is not None


def is_wordy(value: bytes) -> bool:
    """Whether a value is made of words, as names in programs are, rather than of chance.

    Of words of four letters and more, or with one number alone of three and more:
    ``getOAuth2Scope``.
    """
    numbers = len(_NUMBER.findall(value))
    if numbers > 2:
        return False
    words = [len(word) for word in _PIECE.findall(value) if len(word) >= 3 and _VOWEL.search(word)]
    letters = len(value.translate(None, _NO_LETTERS))
    if sum(size for size in words if size >= 4) * 10 >= letters * 7:
        return True
    return numbers <= 1 and sum(words) * 4 >= letters * 3


def _is_reference(value: bytes) -> bool:
    return _REFERENCE.search(value) is not None and not _NO_PATH.fullmatch(value)


def is_key(value: bytes) -> bool:
    """Whether the value that a key or token is set to is a secret: long, mixed, made by chance."""
    if not (_DIGIT.search(value) and _LETTER.search(value)) or is_id(value) or stands_for(value):
        return False
    return not _is_reference(value) and entropy(value) >= 3.2 and not is_wordy(value)


def is_mixed(value: bytes) -> bool:
    """Whether letters alone change their case as chance does, and names in programs do not."""
    if not _CASES.fullmatch(value) or stands_for(value):
        return False
    if value.islower() or value.isupper():
        return (
            len(value) >= 12
            and len(_VOWEL.findall(value)) * 5 <= len(value)
            and len(set(value)) >= 8
        )
    return len(_PIECE.findall(value)) * 5 >= len(value) * 2


def is_password(value: bytes) -> bool:
    """Whether what a password is set to is one: more than words that everybody puts there, and no text of a program."""
    if is_mixed(value):
        return True
    if (
        not (_LETTER.search(value) and _NO_NAME.search(value))
        or _is_reference(value)
        or is_id(value)
    ):
        return False
    if b"/" in value and is_wordy(value):
        return False
    return not stands_for(value) and len(_COMMON.sub(b"", value[:_TELLING].lower())) >= 4


def is_phrase(value: bytes) -> bool:
    """Whether it is one made of words: where nothing but a password stands."""
    return (
        _WORDS.fullmatch(value) is not None
        and not stands_for(value)
        and len(_COMMON.sub(b"", value.lower())) >= 6
    )


def is_unlike_words(value: bytes) -> bool:
    """Whether letters are put together as in no word: of 8 made by chance 87 % are, of 8 of a word 1 %."""
    words = [word.decode().lower() for word in _LETTERS.findall(value)]
    pairs = [pair for word in words for pair in pairwise(word)]
    usual = sum(second in _FOLLOWERS.get(first, "") for first, second in pairs)
    return len(pairs) >= 4 and usual * 10 < len(pairs) * 7


def is_random_letters(value: bytes) -> bool:
    """Whether a value is of letters of one case, put together as in no word and no name of a program."""
    if (
        len(value) < _LEAST_LETTERS
        or not value.isalpha()
        or not (value.islower() or value.isupper())
    ):
        return False
    if stands_for(value):
        return False
    return is_unlike_words(value) and len(_COMMON.sub(b"", value.lower())) >= 6


def is_common(value: bytes) -> bool:
    """Whether a value is one that everybody uses, or that stands for another, so that it tells nothing elsewhere."""
    return stands_for(value) or len(_COMMON.sub(b"", value[:_TELLING].lower())) < 4


def is_made_by_chance(value: bytes) -> bool:
    """Whether a value is neither a word nor a name, so that the same characters elsewhere are the same value."""
    return not _NAME.fullmatch(value) or is_mixed(value) or is_unlike_words(value)
