"""Recognise values that look like secrets but are not secret.

Examples are placeholders, examples in documentation, names, ids and hashes of files.
"""

from __future__ import annotations

import math
from itertools import pairwise

from resume_hooks.redaction.lazy_patterns import compile_lazily

_PLACEHOLDER_WORDS_PATTERN = compile_lazily(
    rb"example|placeholder|your|my(?:secret|token|key|pass)|change(?:me|it|this|pw)|replace|redacted|removed|dummy"
    rb"|sample|"
    rb"xxxx|\*\*\*|\.\.\.|00000000|1234567|12341234|abcdefg|deadbeef|fake|insert|todo|lorem|suppressed|masked|hidden|"
    rb"truncated|notareal|%7b|eby8vdm02x|\A(?!a{20}).*?(.)\1{11}"
)
"""Matches words and sequences that people write instead of a secret.

``-`` and ``_`` are removed before the search. The second-last alternative matches the public key
that every emulator of Azure's storage uses. The last one matches any character that occurs twelve
times in a row, unless the value begins with twenty ``a``, because one vendor's tokens begin with
them.
"""

_SEALED_SECRET_PATTERN = compile_lazily(rb"Ag[A-D][\w+/]{60}")
"""Matches the beginning of a sealed secret, which only a Kubernetes cluster can decrypt."""

_PLACEHOLDER_SEARCH_BYTES = 200
"""This many bytes at the start of a value are searched for placeholder words. A longer value may
contain these words by chance."""

_CODE_REFERENCE_PATTERN = compile_lazily(
    rb"^(?:\$|%[\w.-]+%|@[\w-]+@|\{|-?\[|[A-Za-z_-]+\]$|\)[,;]|<|\(|&|\*|!|#)|\(\)|\$\{|\{\{|\$\("
    rb"|^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+(?::[A-Za-z_]\w*)?$|^[\w$.]+[\[(]|^0[xX][0-9A-Fa-f]{1,8}$|^arn:|=>"
    rb"|::|^\.{0,2}/|^\\|^--|&[a-z]{2,8}$|^:[\w:]+$|^@[\w-]+/[\w.-]+$|^@?[a-z][\w./-]*@\d+\.\d|^,.*\($|^[a-z][a-z+]{1,9}://[^@?]*$|aws4_request$"
    rb"|^(?:[a-z]{2,12}\d{0,2}/){2,}[a-z]{2,12}\d{0,2}$|^[A-Za-z-]+(?::[A-Za-z-]+){2,}$|^\.\*|^%[sd]|%[sd]$|=\$[a-z]|^(?:return|void|typeof|await|throw|function)\b"
    rb"|\w\[\w*\].*\w\[\w|^(?=[^.]*\.[A-Za-z][^.]*\.[A-Za-z])[\w$.]+(?:\?|[:+*]|&&|\|\||={1,3})[A-Za-z_$!]|"
    rb"(?i:(?:private|public|secret)key)|^(?:urn|pkcs11):|^@[a-z]+\.[a-z]+$|^\d*\*[A-Z(]\w*$|^\^[a-z]+$|^[\w-]+:[x*!]:\d+:\d+:"
    rb"|\[\^?(?:a-z|A-Z|0-9)|\\[dw][+*{]|[\])]\{\d+,?\d*\}"
    rb"|^%\{|\{[A-Za-z_][\w.]{0,60}\}[^{}]{1,60}\{[A-Za-z_][\w.]{0,60}\}|^HTTP/\d|^\d{1,5}/(?:tcp|udp|sctp)$"
    rb"|^[\w.-]+/[\w./-]+@[0-9a-f]{40}$|^\d{4}_[a-z]{3,}(?:_[a-z0-9]+)*$|^\d{4}-\d\d-\d\d[T ]\d\d:"
    rb"|^%\([\w.]+\)|^_[a-z]+(?:_[a-z0-9]+)+$|^\d{1,3}\.\d{1,3}-[0-9a-f]{32}$|^[a-z][a-z0-9_]{2,20}=$|^[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)+(?:\?\.)?\[$|^[\d.]+\*\*[a-z]"
    rb"|\.env\.[A-Za-z_]\w*!$|^[A-Za-z_]\w*=(?:[Tt]rue|[Ff]alse|None|null)$"
    rb"|/\.\./|^[A-Za-z][\w-]*/[A-Z][A-Za-z]*[\d.]*(?:-[A-Za-z]*\d{0,2}(?:\.\d{1,2})?[A-Za-z]*)+$"
    rb"|^[A-Za-z][\w.\[\],-]*(?:[<>~!]=|==)\d|^[A-Za-z][\w./-]*:(?:[\w.-]+:)?v?\d+(?:\.\d+)+[\w.+-]*$"
    rb"|^(?:localhost|[a-z][a-z0-9-]*(?:\.[a-z][a-z0-9-]*)+):\d{2,5}$|^[a-z]{2,20}=[a-z]{2,20}(?:,[a-z]{2,20}=[\w./-]*)*$"
    rb"|^(?!(?:.{4})+$)[A-Za-z][A-Za-z-]{2,30}=$|^\d+(?:\.\d+)?[kKMGT]i?[Bb]$|^(?:[Bb]ug|[Ii]ssue)#\d{4,}$"
    rb"|^[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){19}|(?::[0-9A-Fa-f]{2}){31})$"
    rb"|^[\w.+-]+@[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*\.[a-z]{2,6}$|^[\w./-]*\*\.[a-z]{1,5}$"
    rb"|^[+!-][A-Z][A-Z0-9-]+(?::[+!-]?[A-Z][A-Z0-9-]+)+$|^(?:[a-z]+:)?(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}$"
    rb"|^[a-z]pub[A-Za-z0-9]{100,}$|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\+$|^\w+(?:[:,;][A-Za-z]\w*=\w+)+$|^:\w+:?\[|^:+\w+\]$"
)
"""Matches a text that is not a secret, but refers to a secret or to something public.

Examples are program or shell code, a template, a port, a commit of another repository, the name of
a migration, a point in time, another setting, a required version, an endpoint, a mail address, a
size, a fingerprint, a public key, and a list of ciphers or settings.
"""

_KEY_WITH_SLASH_PATTERN = compile_lazily(
    rb"/(?=[^/]*[0-9])(?=.*[A-Z])(?=.*[a-z])(?:[A-Za-z0-9/+]{39}|[A-Za-z0-9/+]{30,90}={1,2})"
)
"""Matches an AWS key that begins with a slash, as one in 64 keys does."""

_PERCENT_ESCAPE_PATTERN = compile_lazily(rb"%[0-9A-F]{2}")

_UUID_PATTERN = compile_lazily(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WORD_PATTERN = compile_lazily(rb"[A-Z]?[a-z]+|[A-Z]+")
_VOWEL_PATTERN = compile_lazily(rb"[aeiouyAEIOUY]")
_NUMBER_PATTERN = compile_lazily(rb"[0-9]+")
_NON_LETTER_CHARACTERS = bytes(sign for sign in range(256) if not bytes([sign]).isalpha())
_COMMON_WORDS_PATTERN = compile_lazily(
    rb"pass(?:word|wd|phrase|code)?|plain(?:text)?|cleartext|secret|token|test(?:ing|er)?|admin|root|user(?:name)?|guest|anonymous"
    rb"|default|demo|hello|"
    rb"world|foo(?!t)|bar|baz|qux|string|value|none|null|true|false|undefined|required|optional|\Ahunter2?\Z|"
    rb"login|postgres|mysql|redis|mongo|database|local|host|invalid|wrong|correct|valid|right|new|old|"
    rb"key|api|auth|credential|access|private|public|bearer|basic|some|any|123(?:4(?:56*)?)?|abc|[^a-z0-9]"
)
_COMMON_WORD_SEARCH_BYTES = 64
"""The number of bytes of a value in which common words are searched for."""

_SLUG_PATTERN = compile_lazily(
    rb"(?:\d{0,4}[A-Za-z]+\d{0,4}|\d{1,4})(?:[-_.](?:\d{0,4}[A-Za-z]+\d{0,4}|\d{1,4})){2,}"
)
"""Matches words and short numbers with separators, for example ``apache-license-2.0-2004-01``."""

_JOINED_WORDS_PATTERN = compile_lazily(rb"[A-Za-z-]+(?:[/,:|+&][A-Za-z-]+)+")
"""Matches words joined by punctuation, as in a sentence or a list: ``and/or``, ``lib,link``."""

_DIGIT_PATTERN = compile_lazily(rb"[0-9]")
_LETTER_PATTERN = compile_lazily(rb"[A-Za-z]")
_WORD_PASSWORD_PATTERN = compile_lazily(rb"(?=.{8,80}\Z)[A-Za-z]+(?:[._-][A-Za-z]+){0,5}")
"""Matches a password that consists only of words."""

_LETTERS_ONLY_PATTERN = compile_lazily(rb"[A-Za-z]{10,80}")
_NON_NAME_CHARACTER_PATTERN = compile_lazily(rb"[^A-Za-z_.\s\x80-\xff-]")
"""Matches a character that cannot be part of an identifier in a program."""

_USUAL_NEXT_LETTERS = {
    "a": "bcdfgiklmnprstuvwy", "b": "aeilorsu", "c": "acehiklorstu", "d": "acdeilorstu", "e": "abcdefgilmnopqrstvwxy",
    "f": "aefiloru", "g": "aehilnrsu", "h": "aeiot", "i": "abcdefglmnoprstvxz", "k": "eis", "l": "adeilostuy",
    "m": "abeimopsu", "n": "acdefgiklnopstuv", "o": "abcdfgiklmnoprstuvw", "p": "aeiloprstuy", "q": "u",
    "r": "acdefgiklmnoprstuvy", "s": "acehiklopstuy", "t": "acdefhilmoprstuy", "u": "abcefgilmnprst", "v": "aei",
    "w": "aeinors", "x": "cept", "y": "npst", "z": "e",
}  # fmt: skip
"""Maps each letter to the letters that usually follow it. The map covers 93 percent of the letter
pairs in English and in programs, but only 38 percent of random pairs."""

_MIN_RANDOM_LETTERS = 8
"""Minimum number of letters in a value that can be recognised as random letters.

A shorter word, for example ``already``, may consist of unusual pairs of letters.
"""

_NAME_PATTERN = compile_lazily(rb"[A-Za-z]+(?:[._-][A-Za-z]+)*[0-9]{0,2}")
_LETTER_RUN_PATTERN = compile_lazily(rb"[A-Za-z]+")


def entropy(value: bytes) -> float:
    """Return the Shannon entropy of the bytes, in bits per byte."""
    size = len(value)
    if size:
        return (
            math.log2(size)
            - sum(n * math.log2(n) for n in map(value.count, set(value)) if n > 1) / size
        )
    return 0.0


def is_placeholder(value: bytes) -> bool:
    """Check whether a value that has the form of a secret is a placeholder or an example."""
    if (
        len(set(value)) < (6 if len(value) > 8 else 5)
        or _SEALED_SECRET_PATTERN.match(value)
        or b">" in value.partition(b"<")[2]
    ):
        return True
    return (
        _PLACEHOLDER_WORDS_PATTERN.search(
            value[:_PLACEHOLDER_SEARCH_BYTES].lower().translate(None, b"-_")
        )
        is not None
    )


def is_uuid(value: bytes) -> bool:
    """Check whether a value is a UUID. In transcripts, a UUID is usually an identifier."""
    return _UUID_PATTERN.fullmatch(value) is not None


def consists_of_words(value: bytes) -> bool:
    """Check whether a value consists of words, like an identifier in a program.

    A word must have at least four letters, or three if the value contains at most one number, for
    example ``getOAuth2Scope``.
    """
    if b"%" in value:
        value = _PERCENT_ESCAPE_PATTERN.sub(b"-", value)
    number_count = len(_NUMBER_PATTERN.findall(value))
    if number_count > 2:
        return False
    word_lengths = [
        len(word)
        for word in _WORD_PATTERN.findall(value)
        if len(word) >= 3 and _VOWEL_PATTERN.search(word)
    ]
    letter_count = len(value.translate(None, _NON_LETTER_CHARACTERS))
    if sum(length for length in word_lengths if length >= 4) * 10 >= letter_count * 7:
        return True
    return number_count <= 1 and sum(word_lengths) * 4 >= letter_count * 3


def _is_slug(value: bytes) -> bool:
    """Check whether a value is an identifier that consists of words and short numbers."""
    if not _SLUG_PATTERN.fullmatch(value):
        return False
    words = [
        word
        for word in _WORD_PATTERN.findall(value)
        if len(word) >= 3 and _VOWEL_PATTERN.search(word)
    ]
    letter_count = len(value.translate(None, _NON_LETTER_CHARACTERS))
    return sum(map(len, words)) * 10 >= letter_count * 7


def _is_reference(value: bytes) -> bool:
    return _CODE_REFERENCE_PATTERN.search(
        value
    ) is not None and not _KEY_WITH_SLASH_PATTERN.fullmatch(value)


def is_random_key(value: bytes) -> bool:
    """Check whether a value is long and random enough to be a key or token.

    It must contain letters and digits, and must not be a UUID, placeholder, reference or
    identifier.
    """
    if (
        not (_DIGIT_PATTERN.search(value) and _LETTER_PATTERN.search(value))
        or is_uuid(value)
        or is_placeholder(value)
    ):
        return False
    if _is_reference(value) or _is_slug(value):
        return False
    return entropy(value) >= 3.2 and not consists_of_words(value)


def has_random_case(value: bytes) -> bool:
    """Check whether a value switches between upper and lower case at random, unlike a name.

    If all letters have the same case, check instead whether the value contains few vowels.
    """
    if not _LETTERS_ONLY_PATTERN.fullmatch(value) or is_placeholder(value):
        return False
    if value.islower() or value.isupper():
        return (
            len(value) >= 12
            and len(_VOWEL_PATTERN.findall(value)) * 5 <= len(value)
            and len(set(value)) >= 8
        )
    return len(_WORD_PATTERN.findall(value)) * 5 >= len(value) * 2


def is_likely_password(value: bytes) -> bool:
    """Check whether the value of a password field is a real password.

    It is not real if it consists only of common words, or if it is program code.
    """
    if has_random_case(value):
        return True
    if (
        not (_LETTER_PATTERN.search(value) and _NON_NAME_CHARACTER_PATTERN.search(value))
        or _is_reference(value)
        or is_uuid(value)
    ):
        return False
    if (b"/" in value or b"%2F" in value) and consists_of_words(value):
        return False
    if _JOINED_WORDS_PATTERN.fullmatch(value) and not has_unusual_letter_pairs(value):
        return False
    return (
        not is_placeholder(value)
        and len(_COMMON_WORDS_PATTERN.sub(b"", value[:_COMMON_WORD_SEARCH_BYTES].lower())) >= 4
    )


def is_word_password(value: bytes) -> bool:
    """Check whether a value may be a password that consists of words.

    Call this function only for a position in which only a password can occur.
    """
    return (
        _WORD_PASSWORD_PATTERN.fullmatch(value) is not None
        and not is_placeholder(value)
        and len(_COMMON_WORDS_PATTERN.sub(b"", value.lower())) >= 6
    )


def has_unusual_letter_pairs(value: bytes) -> bool:
    """Check whether many pairs of letters in a value are unusual in words.

    The check succeeds for 87 % of random sequences of 8 letters, and for 1 % of 8-letter words.
    """
    words = [word.decode().lower() for word in _LETTER_RUN_PATTERN.findall(value)]
    pairs = [pair for word in words for pair in pairwise(word)]
    usual_count = sum(second in _USUAL_NEXT_LETTERS.get(first, "") for first, second in pairs)
    return len(pairs) >= 4 and usual_count * 10 < len(pairs) * 7


def is_random_letters(value: bytes) -> bool:
    """Check whether a value consists of random letters of one case.

    Its letter pairs are unusual in words and in identifiers.
    """
    if (
        len(value) < _MIN_RANDOM_LETTERS
        or not value.isalpha()
        or not (value.islower() or value.isupper())
    ):
        return False
    if is_placeholder(value):
        return False
    return (
        has_unusual_letter_pairs(value) and len(_COMMON_WORDS_PATTERN.sub(b"", value.lower())) >= 6
    )


def is_common_value(value: bytes) -> bool:
    """Check whether a value is a placeholder, or a text that is so common that it need not be secret."""
    return (
        is_placeholder(value)
        or len(_COMMON_WORDS_PATTERN.sub(b"", value[:_COMMON_WORD_SEARCH_BYTES].lower())) < 4
    )


def is_random_value(value: bytes) -> bool:
    """Check whether a value is neither a word nor a name.

    Such a value does not occur by chance, so it is the same secret wherever it occurs.
    """
    return (
        not _NAME_PATTERN.fullmatch(value)
        or has_random_case(value)
        or has_unusual_letter_pairs(value)
    )
