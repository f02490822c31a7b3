"""What looks like a secret and is none: placeholders, examples of documentation, names, ids, hashes of files."""

from __future__ import annotations

import math
import re

_STANDS_FOR = re.compile(
    rb"example|placeholder|your|my[_-]?(?:secret|token|key|pass)|change[_-]?(?:me|it|this)|replace|redacted|removed|"
    rb"dummy|sample|x{4}|\*{3}|\.{3}|0{8}|1234567|abcdefg|dead-?beef|fake|insert|<[^>]*>|todo|lorem|"
    rb"suppressed|masked|hidden|truncated|not[_-]?a[_-]?real"
)
"""Words and runs of characters that people and documentation put where a secret would stand."""

_REFERENCE = re.compile(
    rb"^(?:\$|%[\w-]+%|@[\w-]+@|\{|\[|<|\(|&|\*|!|#)|\(\)|\$\{|\{\{|\$\(|^[\w$]+(?:\.[\w$]+)+$|^[\w$.]+[\[(]|=>|::|^/|^\\|^--|^:[a-z_:]+$|"
    rb"(?i:(?:private|public|secret)key)"
)
"""Text of a program or a shell that names where a secret comes from."""

_NO_PATH = re.compile(rb"/(?=[^/]*[0-9])(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9/+]{39}")
"""A key of AWS that begins with a slash, as one in 64 does."""

_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PIECE = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+")
_VOWEL = re.compile(rb"[aeiouyAEIOUY]")
_NUMBER = re.compile(rb"[0-9]+")
_NO_LETTERS = bytes(sign for sign in range(256) if not bytes([sign]).isalpha())
_COMMON = re.compile(
    rb"pass(?:word|wd|phrase|code)?|secret|token|test(?:ing|er)?|admin|root|user(?:name)?|guest|default|demo|hello|"
    rb"world|foo|bar|baz|qux|string|value|none|null|true|false|undefined|required|optional|hunter|letmein|qwerty|"
    rb"welcome|login|postgres|mysql|redis|mongo|database|local|host|invalid|wrong|correct|valid|right|new|old|"
    rb"key|api|auth|credential|access|private|public|bearer|basic|some|any|123(?:4(?:56*)?)?|abc|[^a-z0-9]"
)
_TELLING = 64
"""Bytes of a value in which there is more than such words."""

_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_NO_NAME = re.compile(rb"[^A-Za-z_.\s\x80-\xff-]")
"""What a name in a program does not hold."""


def entropy(value: bytes) -> float:
    """Shannon's entropy of the bytes, in bits a byte."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in map(value.count, set(value))) if size else 0.0


def stands_for(value: bytes) -> bool:
    """Whether a value of a token's shape is a placeholder or an example of documentation."""
    return len(set(value)) < 6 or _STANDS_FOR.search(value.lower()) is not None


def is_id(value: bytes) -> bool:
    """Whether a value names something: a UUID, which transcripts are full of."""
    return _UUID.fullmatch(value) is not None


def is_wordy(value: bytes) -> bool:
    """Whether a value is made of words, as names in programs are, rather than of chance."""
    words = sum(len(word) for word in _PIECE.findall(value) if len(word) >= 4 and _VOWEL.search(word))
    return words * 10 >= len(value.translate(None, _NO_LETTERS)) * 7 and len(_NUMBER.findall(value)) <= 2


def is_key(value: bytes) -> bool:
    """Whether the value that a key or token is set to is a secret: long, mixed, made by chance."""
    if is_id(value) or stands_for(value) or (_REFERENCE.search(value) and not _NO_PATH.fullmatch(value)):
        return False
    mixed = _DIGIT.search(value) and _LETTER.search(value)
    return bool(mixed) and entropy(value) >= 3.2 and not is_wordy(value)


def is_password(value: bytes) -> bool:
    """Whether what a password is set to is one: more than words that everybody puts there, and no text of a program."""
    if is_id(value) or stands_for(value) or _REFERENCE.search(value) or len(set(value)) < 5:
        return False
    rest = _COMMON.sub(b"", value[:_TELLING].lower())
    return len(rest) >= 4 and _LETTER.search(value) is not None and _NO_NAME.search(value) is not None
