"""Words as they are indexed: the words of a text, and the indexed forms of a typed word.

Both use the same functions, so that a typed word matches the indexed words; tantivy only splits at
spaces. English endings are removed. Identifiers are indexed whole and by their parts. Long tokens
are indexed only by their parts, or not at all.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

import tantivy

from resume_hooks.system.text import remove_escape_sequences

# the maximum size of a whole token in bytes; longer tokens are data (hashes, base64, minified code)
MAX_TOKEN_BYTES = 64
MAX_IDENTIFIER_BYTES = 256  # the maximum size in bytes of an identifier that is split into parts
MAX_TOKENS = 100_000
"""The maximum number of distinct tokens to index from a text.

A text with more is data, and 60 MB of such tokens take a minute.
"""

# the maximum number of parts of an identifier; an identifier with more parts is random
MAX_IDENTIFIER_PARTS = 16
MAX_CACHED_TOKENS = 200_000
"""The number of tokens whose forms are cached while texts are read: about 30 MB.

Long tokens are not cached.
"""

_WORD_BYTES = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_WORD_TABLE = bytes(byte if byte in _WORD_BYTES or byte >= 0x80 else 0x20 for byte in range(256))
_SYMBOLS = re.compile(rb"\xe2[\x80-\xaf][\x80-\xbf]|\xf0\x9f[\x80-\xbf][\x80-\xbf]|\xef\xbf\xbd")
"""Punctuation, arrows, frames, emoji, and the replacement character: U+2000 to U+2BFF, from U+1F000, U+FFFD."""

_LINE_NUMBER = " *[0-9]+[→\t]"
"""The line number that the client writes before each line of a file."""

_FIRST_LINE_NUMBER, _LATER_LINE_NUMBERS = re.compile(_LINE_NUMBER), re.compile(f"\n{_LINE_NUMBER}")

_IDENTIFIER_PART = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORD = re.compile(r"\w+")
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_SCRIPT_RUNS = f"[{_UNSPACED}]+|[^{_UNSPACED}]+"
"""Scripts without spaces between words (and Korean, whose words take endings), separated from all others."""

_PLAIN_LETTERS = str.maketrans({"\u0131": "i", "ø": "o", "ł": "l", "đ": "d"})
"""Letters that normalization does not reduce to their plain form."""


class _FormsCache(dict[bytes, bytes]):
    """A cache of each token's words."""

    def __missing__(self, token: bytes) -> bytes:
        if len(self) >= MAX_CACHED_TOKENS:
            self.clear()
        words = (token,) if token.isascii() else _SYMBOLS.sub(b" ", token).split()
        forms_of_token: list[bytes] = []
        for word in words:
            forms_of_token.extend(_forms_of_token(word))
        joined_forms = b" ".join(forms_of_token)
        forms = " ".join(_stemmer.analyze(joined_forms.decode())).encode()
        if len(token) <= MAX_IDENTIFIER_BYTES:
            self[token] = forms
        return forms


_forms_by_token = _FormsCache()


_stemmer = (
    tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    .filter(tantivy.Filter.stemmer("english"))
    .build()
)


def stem_word(word: str) -> str:
    """Return a word without its English ending, as it is indexed."""
    return next(iter(_stemmer.analyze(word)), word)


def remove_line_numbers(text: str) -> str:
    """Return a file's text, as the client shows it, without line numbers.

    Return other texts unchanged.
    """
    if _FIRST_LINE_NUMBER.match(text):
        return _LATER_LINE_NUMBERS.sub("\n", f"\n{text}")
    return text


def distinct_words(text: str, *, has_line_numbers: bool = False) -> bytes:
    """Return the distinct words of a text in order, separated by spaces.

    ``has_line_numbers`` means that the lines of a file may begin with numbers, which are not words.
    """
    if not text:
        return b""
    plain_text = remove_escape_sequences(text)
    text_bytes = (remove_line_numbers(plain_text) if has_line_numbers else plain_text).encode(
        "utf-8", "replace"
    )
    tokens = text_bytes.translate(_WORD_TABLE).split()
    return b" ".join(map(_forms_by_token.__getitem__, islice(dict.fromkeys(tokens), MAX_TOKENS)))


def forms_of_word(word: str) -> list[list[str]]:
    """Return the forms of a typed word: for each of its tokens the whole token, then the token's parts."""
    word_bytes = word.encode("utf-8", "replace")
    tokens: list[list[str]] = []
    for token in _SYMBOLS.sub(b" ", word_bytes).translate(_WORD_TABLE).split():
        forms = [form.decode() for form in _forms_of_token(token)]
        tokens += [forms] if token.isascii() else [[form] for form in forms]
    return [forms for forms in tokens if forms]


def fold_letters(text: str) -> str:
    """Return ``text`` without case, accents and Turkish dots, for comparing letters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain_text = "".join(
        letter for letter in decomposed if unicodedata.category(letter) != "Mn"
    ).translate(_PLAIN_LETTERS)
    # join Korean syllables again, because the first normalization split them into letters
    return unicodedata.normalize("NFC", plain_text)


def _forms_of_token(token: bytes) -> list[bytes]:
    if not token.isascii():
        if len(token) <= 4_096:
            forms = []
            for word in _non_ascii_words(token.decode("utf-8", "replace")):
                forms.append(word.encode())
            return forms
        return []
    lower_token = token.lower()
    stripped_token = lower_token.strip(b"_")
    if stripped_token.isalnum() and lower_token == token:
        if len(stripped_token) <= MAX_TOKEN_BYTES:
            return [stripped_token]
        return []
    if len(token) <= MAX_IDENTIFIER_BYTES:
        parts = [part.lower() for part in _IDENTIFIER_PART.findall(token)]
    else:
        parts = []
    is_random = b"_" not in token and len(parts) > 4 and sum(map(len, parts)) < 3 * len(parts)
    if not 1 < len(parts) <= MAX_IDENTIFIER_PARTS or is_random:
        parts = []
    whole_form = (
        [stripped_token] if stripped_token and len(stripped_token) <= MAX_TOKEN_BYTES else []
    )
    return list(dict.fromkeys([*whole_form, *parts]))


def _non_ascii_words(token: str) -> list[str]:
    """Return the words of a non-ASCII token. Scripts without spaces are split into pairs of characters."""
    words: list[str] = []
    for word in _WORD.findall(fold_letters(token)):
        for run in re.findall(_SCRIPT_RUNS, word):
            if re.match(f"[{_UNSPACED}]", run) and len(run) > 1:
                words += (run[position : position + 2] for position in range(len(run) - 1))
            elif len(run.encode()) <= MAX_TOKEN_BYTES:
                words.append(run)
    return list(dict.fromkeys(words))
