"""Convert texts and typed words into the words of the index.

The same functions convert the words of a text and the words of a question, so that they match.
Tantivy only splits the result at spaces. English endings are removed. An identifier is indexed both
as a whole and as its parts, for example ``readFile`` as ``readfile``, ``read`` and ``file``. Long
tokens are indexed only as their parts, or not at all.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

import tantivy

from resume_hooks.system.text import remove_escape_sequences

# Maximum size of a whole token in bytes. Longer tokens are data, such as hashes, base64 or minified
# code.
MAX_TOKEN_BYTES = 64
MAX_IDENTIFIER_BYTES = 256  # Maximum size in bytes of an identifier that is split into parts.
MAX_DISTINCT_TOKENS = 100_000
"""Maximum number of distinct tokens to index from a text.

A text with more tokens is data. Indexing 60 MB of such tokens would take a minute.
"""

# Maximum number of parts of an identifier. An identifier with more parts is a random string.
MAX_IDENTIFIER_PARTS = 16
MAX_CACHED_TOKENS = 200_000
"""Number of tokens whose indexed forms are cached while texts are read. The cache takes about 30 MB.

Long tokens are not cached.
"""

_BYTES_ALLOWED_IN_WORDS = frozenset(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
)
_WORD_BYTE_TABLE = bytes(
    byte if byte in _BYTES_ALLOWED_IN_WORDS or byte >= 0x80 else 0x20 for byte in range(256)
)
_SYMBOL_PATTERN = re.compile(
    rb"\xe2[\x80-\xaf][\x80-\xbf]|\xf0\x9f[\x80-\xbf][\x80-\xbf]|\xef\xbf\xbd"
)
"""Matches the UTF-8 bytes of symbols: punctuation, arrows, box-drawing characters, emoji (U+2000 to
U+2BFF, and from U+1F000), and the replacement character (U+FFFD)."""

_LINE_NUMBER_PATTERN = " *[0-9]+[→\t]"
"""Matches the line number that the client writes before each line of a file."""

_FIRST_LINE_NUMBER_PATTERN, _LATER_LINE_NUMBER_PATTERN = (
    re.compile(_LINE_NUMBER_PATTERN),
    re.compile(f"\n{_LINE_NUMBER_PATTERN}"),
)

_IDENTIFIER_PART_PATTERN = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORD_PATTERN = re.compile(r"\w+")
_UNSPACED_SCRIPT_RANGES = (
    "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_SCRIPT_RUN_PATTERN = f"[{_UNSPACED_SCRIPT_RANGES}]+|[^{_UNSPACED_SCRIPT_RANGES}]+"
"""Matches runs of letters from scripts without spaces between words, and runs of all other letters.

Korean is treated like a script without spaces although it has them, because endings are attached to
its words.
"""

_PLAIN_LETTER_TABLE = str.maketrans({"\u0131": "i", "ø": "o", "ł": "l", "đ": "d"})
"""Letters that Unicode normalization leaves unchanged, mapped to their plain forms."""


class _FormsCache(dict[bytes, bytes]):
    """Maps a token to its indexed forms, separated by spaces. Missing forms are computed."""

    def __missing__(self, token: bytes) -> bytes:
        if len(self) >= MAX_CACHED_TOKENS:
            self.clear()
        words = (token,) if token.isascii() else _SYMBOL_PATTERN.sub(b" ", token).split()
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
    """Return a word without its English ending, as the index contains it."""
    return next(iter(_stemmer.analyze(word)), word)


def remove_line_numbers(text: str) -> str:
    """Remove the line numbers that the client writes before the lines of a file.

    Return a text without line numbers unchanged.
    """
    if _FIRST_LINE_NUMBER_PATTERN.match(text):
        return _LATER_LINE_NUMBER_PATTERN.sub("\n", f"\n{text}")
    return text


def distinct_words(text: str, *, has_line_numbers: bool = False) -> bytes:
    """Return the indexed forms of the distinct words in a text, in their order, separated by spaces.

    If ``has_line_numbers`` is true, the text may be a file's content with line numbers, which are
    not indexed.
    """
    if not text:
        return b""
    plain_text = remove_escape_sequences(text)
    text_bytes = (remove_line_numbers(plain_text) if has_line_numbers else plain_text).encode(
        "utf-8", "replace"
    )
    tokens = text_bytes.translate(_WORD_BYTE_TABLE).split()
    return b" ".join(
        map(_forms_by_token.__getitem__, islice(dict.fromkeys(tokens), MAX_DISTINCT_TOKENS))
    )


def forms_of_word(word: str) -> list[list[str]]:
    """Split a typed word into tokens, and return a list of indexed forms for each token.

    Each list begins with the whole token, followed by the token's parts.
    """
    word_bytes = word.encode("utf-8", "replace")
    tokens: list[list[str]] = []
    for token in _SYMBOL_PATTERN.sub(b" ", word_bytes).translate(_WORD_BYTE_TABLE).split():
        forms = [form.decode() for form in _forms_of_token(token)]
        tokens += [forms] if token.isascii() else [[form] for form in forms]
    return [forms for forms in tokens if forms]


def fold_letters(text: str) -> str:
    """Return ``text`` for comparisons: in lower case, without accents and without dots on Turkish letters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain_text = "".join(
        letter for letter in decomposed if unicodedata.category(letter) != "Mn"
    ).translate(_PLAIN_LETTER_TABLE)
    # The first normalization split Korean syllables into letters, so join them again.
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
        parts = [part.lower() for part in _IDENTIFIER_PART_PATTERN.findall(token)]
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
    """Return the words of a non-ASCII token.

    In a script without spaces, every pair of adjacent letters counts as a word.
    """
    words: list[str] = []
    for word in _WORD_PATTERN.findall(fold_letters(token)):
        for run in re.findall(_SCRIPT_RUN_PATTERN, word):
            if re.match(f"[{_UNSPACED_SCRIPT_RANGES}]", run) and len(run) > 1:
                words += (run[position : position + 2] for position in range(len(run) - 1))
            elif len(run.encode()) <= MAX_TOKEN_BYTES:
                words.append(run)
    return list(dict.fromkeys(words))
