"""Find known secrets in a text, as written or as encoded in JSON, URLs, HTML, base64 or hex.

The scanner recognises a secret by its form and by the words before it. In other files, these words
may be missing. A secret that was found once is therefore also searched for as text, unless it is
short or could be an ordinary word.
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from resume_hooks.errors import UsageError
from resume_hooks.redaction.texts import placeholder_of_secret

KIND_OF_SUPPLIED_SECRETS = "named"
"""The kind of a secret that the user supplied."""

MIN_SUPPLIED_SECRET_CHARACTERS = 6
"""The minimum number of characters of a secret that the user supplies.

A shorter text would match everywhere.
"""

MIN_SECRET_CHARACTERS_INSIDE_WORDS = 12
"""A secret that a rule found is searched for inside words only if it has at least this number of
characters."""

MIN_WHOLE_WORD_SECRET_CHARACTERS = 6
"""A secret is searched for as a whole word only if it has at least this number of characters."""

MIN_DIGITLESS_SECRET_CHARACTERS = 20
"""A secret without digits is searched for inside words only if it has at least this number of
characters."""

MAX_SUPPLIED_SECRETS = 100
MAX_SECRET_INPUT_BYTES = 16 * 1024

MAX_SEPARATELY_SEARCHED_FORMS = 64
"""If there are at most this many encoded forms, the text is first searched for each form
separately. A regular expression searches for all of them only if one was found. This saves time in
a text that contains none of the forms."""

ENCODED_FORM_PREFIX_LENGTH = 6
"""The number of characters at the beginning of each form that the regular expression contains.

Every form has at least this many characters.
"""

MIN_BASE64_CHARACTERS = 8
"""Minimum number of characters of a base64 form. A shorter form could occur by chance."""

MIN_SECRET_PREFIX_FRACTION = 0.6
"""Sometimes only the beginning of a secret is found, for example in a shortened title. This
beginning is removed if it is at least this fraction of the secret and has at least
``MIN_SECRET_PREFIX_CHARACTERS`` characters."""

MIN_SECRET_PREFIX_CHARACTERS = 20

_RECORD_ID_PATTERN = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|msg|req|call)_[A-Za-z0-9]+"
)
"""Matches ids of records. They are never removed as secrets, because this would damage the session.
"""

_WORD_CHARACTERS_PATTERN = re.compile(r"[A-Za-z0-9_-]*")
"""Matches the characters that can follow a secret's recognised part and belong to the secret."""

_PLACEHOLDER_PATTERN = re.compile(r"\[secret removed: [^\]\n]{1,80}\]")

_LINE_ENDS_PATTERN = re.compile(r"(?:\\+[nr]|[\r\n])+")
_BASE64_LINE_PATTERN = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_NAME_PUNCTUATION = frozenset("-_./: ")
"""Punctuation that also occurs in ordinary names. It is therefore not a sign of a secret."""

_TOKEN_START_PATTERN = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})")
r"""Matches a position at which a word or a secret can begin, for example directly after an escape
such as ``\n``."""

_TOKEN_END_PATTERN = re.compile(r"(?![A-Za-z0-9])")


def parse_supplied_secrets(raw: bytes) -> dict[str, str]:
    """Return the secrets that the user supplied, one per line. Each secret has the kind ``named``.

    If the input is a private key, the key as a whole is also returned as a secret. Raise UsageError
    if the input is not UTF-8 or if a secret is too short. The error message contains no part of a
    secret.
    """
    if len(raw) > MAX_SECRET_INPUT_BYTES:
        raise UsageError(
            f"The input is longer than {MAX_SECRET_INPUT_BYTES:,} bytes", "Give only the secrets."
        )
    try:
        text = raw.decode().replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            "The input is not UTF-8 text", "Give the secrets as text, one per line."
        ) from error
    lines = []
    for line in text.split("\n"):
        if line.strip():
            lines.append(line.strip())
    if not lines:
        raise UsageError(
            "No secret was given",
            "With --secret-stdin, give one secret per line on stdin, or type one when asked.",
        )
    if len(lines) > MAX_SUPPLIED_SECRETS:
        raise UsageError(
            f"More than {MAX_SUPPLIED_SECRETS} secrets were given", "Give fewer at a time."
        )
    if any(len(line) < MIN_SUPPLIED_SECRET_CHARACTERS for line in lines):
        raise UsageError(
            (
                f"One of the secrets has fewer than {MIN_SUPPLIED_SECRET_CHARACTERS} characters and would "
                "match everywhere"
            ),
            "Give each secret in full, one per line.",
        )
    if len(lines) > 1 and text.startswith("-----BEGIN "):
        whole_key = [text]
    else:
        whole_key = []
    return dict.fromkeys([*whole_key, *lines], KIND_OF_SUPPLIED_SECRETS)


def is_distinctive_secret(value: str) -> bool:
    """Check whether a secret is long and unusual enough for its text to be removed from all files."""
    if (
        len(value) < MIN_SECRET_CHARACTERS_INSIDE_WORDS
        or _RECORD_ID_PATTERN.fullmatch(value)
        or _PLACEHOLDER_PATTERN.search(value)
    ):
        return False
    is_mixed = any(character.isdigit() for character in value) and any(
        character.isalpha() for character in value
    )
    return is_mixed or (
        len(value) >= MIN_DIGITLESS_SECRET_CHARACTERS
        and not any(character.isspace() for character in value)
    )


def is_searchable_token(value: str) -> bool:
    """Check whether a short secret can be searched for as a whole word.

    The result is false if the secret could be an ordinary word or name.
    """
    if (
        not MIN_WHOLE_WORD_SECRET_CHARACTERS <= len(value) < MIN_SECRET_CHARACTERS_INSIDE_WORDS
        or _PLACEHOLDER_PATTERN.search(value)
        or any(character.isspace() for character in value)
    ):
        return False
    has_letter = any(character.isalpha() for character in value)
    return has_letter and any(
        not character.isalpha() and character not in _NAME_PUNCTUATION for character in value
    )


def split_encoded_lines(value: str) -> Iterator[str]:
    """Yield the lines of a secret with several lines, such as a private key, that are encoded data.

    Each of these lines is part of the secret, so it must be removed even if it occurs alone.
    """
    lines = _LINE_ENDS_PATTERN.split(value)
    if len(lines) > 1:
        for line in map(str.strip, lines):
            if _BASE64_LINE_PATTERN.fullmatch(line) and is_distinctive_secret(line):
                yield line


def iterate_secret_forms(value: str) -> Iterator[str]:
    """Yield a secret as it is, and in the forms that it has in JSON, URLs, HTML, base64 and hex."""
    yield value
    json_forms = list(_encode_as_json(value))
    yield from json_forms
    for form in json_forms:
        yield from _encode_as_json(form)
    raw = value.encode("utf-8", "replace")
    for percent_form in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield percent_form
        yield re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), percent_form)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield from _encode_as_base64(raw)
    yield raw.hex()
    yield raw.hex().upper()


class _EncodedForm(NamedTuple):
    """A form in which a secret may occur in a text.

    ``text`` is the beginning of the form, and ``remaining_text`` is the rest, or ``""`` if ``text``
    is the whole form. Where ``text`` is found, the following characters also belong to the secret
    as long as they match ``remaining_text``. If ``extends_to_word_end`` is true, the letters and
    digits that follow belong to it too, because the scanner may have recognised only a part of a
    word. If ``is_whole_token`` is true, the form is found only as a whole word.
    """

    text: str
    kind: str
    remaining_text: str = ""
    extends_to_word_end: bool = False
    is_whole_token: bool = False

    def find_form_end(self, text: str, start: int) -> int:
        """Return the offset at which the form ends in ``text``, or 0 if the form does not begin at ``start``."""
        if not text.startswith(self.text, start):
            return 0
        end = start + len(self.text)
        if self.is_whole_token and not (
            _TOKEN_START_PATTERN.match(text, start) and _TOKEN_END_PATTERN.match(text, end)
        ):
            return 0
        for character in self.remaining_text:
            if text[end : end + 1] != character:
                break
            end += 1
        if self.extends_to_word_end and _WORD_CHARACTERS_PATTERN.fullmatch(text[end - 1]):
            word = _WORD_CHARACTERS_PATTERN.match(text, end)
        else:
            word = None
        if word:
            return word.end()
        return end


class KnownSecrets:
    """Known secrets that are searched for as text.

    ``values`` maps each secret to its kind. ``tokens`` maps short secrets to their kinds. A short
    secret is found only if it is a whole word.
    """

    def __init__(self, values: Mapping[str, str], tokens: Mapping[str, str] | None = None) -> None:
        all_forms = list(_build_encoded_forms(values))
        for value, kind in (tokens or {}).items():
            percent = quote(value.encode("utf-8", "replace"), safe="")
            all_forms += (
                _EncodedForm(text, kind, is_whole_token=True)
                for text in (value, *_encode_as_json(value), percent)
            )
        forms = {form.text: form for form in reversed(all_forms)}
        self._forms: dict[str, list[_EncodedForm]] = {}
        for form in sorted(forms.values(), key=lambda form: -len(form.text)):
            self._forms.setdefault(form.text[:ENCODED_FORM_PREFIX_LENGTH], []).append(form)
        self._form_head_pattern = re.compile(
            f"{_PLACEHOLDER_PATTERN.pattern}|{_build_alternatives_pattern(self._forms)}"
        )
        self._separate_forms: list[bytes] = []
        for text in forms if len(forms) <= MAX_SEPARATELY_SEARCHED_FORMS else ():
            with contextlib.suppress(UnicodeEncodeError):
                self._separate_forms.append(text.encode("utf-8", "surrogateescape"))

    def __bool__(self) -> bool:
        """Return whether there are any secrets to search for."""
        return bool(self._forms)

    def has_secret_in(self, raw: bytes) -> bool:
        """Check whether ``raw`` contains a known secret in any form."""
        if not self._forms or (
            self._separate_forms and not any(form in raw for form in self._separate_forms)
        ):
            return False
        return any(True for _ in self._find_encoded_secrets(raw.decode("utf-8", "surrogateescape")))

    def replace_secrets(self, text: str) -> tuple[str, list[str]]:
        """Return ``text`` with placeholders instead of known secrets, and the kind of each removed secret."""
        parts: list[str] = []
        kinds: list[str] = []
        position = 0
        for start, end, kind in self._find_encoded_secrets(text) if self._forms else ():
            parts += [text[position:start], placeholder_of_secret(kind)]
            kinds.append(kind)
            position = end
        return "".join([*parts, text[position:]]), kinds

    def _find_encoded_secrets(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the start, the end and the kind of each known secret in a text.

        If several forms match at the same position, only the longest one counts. Placeholders are
        skipped. At each position, the text is compared only with the forms that begin with the same
        characters, so the search does not become slower with more forms.
        """
        position = 0
        while head := self._form_head_pattern.search(text, position):
            if _PLACEHOLDER_PATTERN.fullmatch(head[0]):
                position = head.end()
            else:
                position = head.start() + 1
            for form in self._forms.get(head[0], ()):
                if end := form.find_form_end(text, head.start()):
                    yield head.start(), end, form.kind
                    position = end
                    break


def _build_encoded_forms(kinds_by_secret: Mapping[str, str]) -> Iterator[_EncodedForm]:
    """Yield the forms in which secrets may occur, including the beginnings of long secrets."""
    for value, kind in kinds_by_secret.items():
        was_found_by_scanner = kind != KIND_OF_SUPPLIED_SECRETS
        for text in iterate_secret_forms(value):
            yield _EncodedForm(
                text, kind, extends_to_word_end=was_found_by_scanner and text == value
            )
    for value, kind in kinds_by_secret.items():
        prefix = value[
            : max(MIN_SECRET_PREFIX_CHARACTERS, int(len(value) * MIN_SECRET_PREFIX_FRACTION))
        ]
        if len(prefix) < len(value):
            yield _EncodedForm(
                prefix,
                kind,
                value[len(prefix) :],
                extends_to_word_end=kind != KIND_OF_SUPPLIED_SECRETS,
            )


def _build_alternatives_pattern(texts: Iterable[str]) -> str:
    """Return a regular expression that matches any of the texts.

    The expression branches at each character, so that the search need not try the texts one by one.
    """
    tree: dict[str, Any] = {}
    for text in texts:
        branch = tree
        for character in text:
            branch = branch.setdefault(character, {})
    return _build_pattern_from_prefix_tree(tree)


def _build_pattern_from_prefix_tree(tree: Mapping[str, Any]) -> str:
    alternatives = []
    for character, subtree in tree.items():
        alternatives.append(
            re.escape(character) + (_build_pattern_from_prefix_tree(subtree) if subtree else "")
        )
    if len(alternatives) == 1:
        return alternatives[0]
    return f"(?:{'|'.join(alternatives)})"


def _encode_as_json(text: str) -> Iterator[str]:
    """Yield the forms that a text can have in a JSON string."""
    for escapes_non_ascii in (True, False):
        encoded = json.dumps(text, ensure_ascii=escapes_non_ascii)[1:-1]
        yield encoded
        yield encoded.replace("/", "\\/")


def _encode_as_base64(raw: bytes) -> Iterator[str]:
    """Yield the base64 forms of a secret.

    The first and last characters of a form are omitted if they depend on the bytes around the
    secret. Three forms are needed, because base64 encodes groups of three bytes, and the secret can
    begin at any byte of such a group.
    """
    for shift in range(3):
        start, end = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        context_free_part = base64.b64encode(bytes(shift) + raw).decode()[start:end]
        if len(context_free_part) >= MIN_BASE64_CHARACTERS:
            yield context_free_part
            yield context_free_part.replace("+", "-").replace("/", "_")
