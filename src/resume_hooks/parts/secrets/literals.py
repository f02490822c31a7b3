"""Find known secrets in all their encodings: plain, and as encoded in JSON, URLs and base64.

The scanner recognises a secret by its shape and by the words before it, which may be missing in
other places. So a secret that was found once is also searched for as text, unless it is short or
could be any word.
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

NAMED_KIND = "named"
"""The kind of a secret that the user supplied."""

MIN_NAMED_CHARACTERS = 6
"""The minimum length of a secret that the user supplies. Shorter texts occur everywhere."""

MIN_TEXT_CHARACTERS = 12
"""The minimum length of a found secret that is searched for as text."""

MIN_TOKEN_CHARACTERS = 6
"""The minimum length of a found secret that is searched for as a whole token."""

MIN_CHARACTERS_WITHOUT_DIGITS = 20
"""The minimum length of a found secret without digits that is searched for as text."""

MAX_NAMED_SECRETS = 100
MAX_NAMED_BYTES = 16 * 1024

MAX_SEPARATE_FORMS = 64
"""The maximum number of forms that are searched for one by one, which is fastest if none occurs."""

HEAD_CHARACTERS = 6
"""The length of each form's prefix in the combined search for all forms.

No form is shorter than this.
"""

MIN_CORE_CHARACTERS = 8
"""The minimum length of a base64 form. A shorter form could match by chance."""

MIN_PREFIX_FRACTION = 0.6
"""The minimum fraction of a secret that is removed at the end of a shortened title or preview.

The fraction must also have at least ``MIN_PREFIX_CHARACTERS`` characters.
"""

MIN_PREFIX_CHARACTERS = 20

_RECORD_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|msg|req|call)_[A-Za-z0-9]+"
)
"""Matches ids of records. Removing an id would break the session."""

_WORD_CHARACTERS = re.compile(r"[A-Za-z0-9_-]*")
"""Matches characters that can continue a secret."""

_PLACEHOLDER = re.compile(r"\[secret removed: [^\]\n]{1,80}\]")

_LINE_ENDS = re.compile(r"(?:\\+[nr]|[\r\n])+")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_NAME_PUNCTUATION = frozenset("-_./: ")
"""Punctuation that also occurs in ordinary names."""

_TOKEN_START = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})")
"""Matches the beginning of a token, which may follow an escape."""

_TOKEN_END = re.compile(r"(?![A-Za-z0-9])")


def parse_named_secrets(raw: bytes) -> dict[str, str]:
    """Return the user's secrets, one per line, with their kind.

    The lines of a private key together also count as one secret.

    Raise UsageError if a secret cannot be searched for. The message contains no part of the secret.
    """
    if len(raw) > MAX_NAMED_BYTES:
        raise UsageError(
            f"The input is longer than {MAX_NAMED_BYTES:,} bytes", "Give only the secrets."
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
            "No secret was given", "Write one per line to --secret-stdin, from a file or a prompt."
        )
    if len(lines) > MAX_NAMED_SECRETS:
        raise UsageError(
            f"More than {MAX_NAMED_SECRETS} secrets were given", "Give fewer at a time."
        )
    if any(len(line) < MIN_NAMED_CHARACTERS for line in lines):
        raise UsageError(
            (
                f"A secret that was given has fewer than {MIN_NAMED_CHARACTERS} characters: it "
                "would match everywhere"
            ),
            "Give the complete secret, one per line.",
        )
    if len(lines) > 1 and text.startswith("-----BEGIN "):
        whole_key = [text]
    else:
        whole_key = []
    return dict.fromkeys([*whole_key, *lines], NAMED_KIND)


def is_distinctive(value: str) -> bool:
    """Check whether a found secret is distinctive enough to be removed everywhere as text."""
    if (
        len(value) < MIN_TEXT_CHARACTERS
        or _RECORD_ID.fullmatch(value)
        or _PLACEHOLDER.search(value)
    ):
        return False
    is_mixed = any(character.isdigit() for character in value) and any(
        character.isalpha() for character in value
    )
    return is_mixed or (
        len(value) >= MIN_CHARACTERS_WITHOUT_DIGITS
        and not any(character.isspace() for character in value)
    )


def is_token(value: str) -> bool:
    """Check whether a short found secret is not just a plain word, so that it can be searched for as a whole token."""
    if (
        not MIN_TOKEN_CHARACTERS <= len(value) < MIN_TEXT_CHARACTERS
        or _PLACEHOLDER.search(value)
        or any(character.isspace() for character in value)
    ):
        return False
    has_letter = any(character.isalpha() for character in value)
    return has_letter and any(
        not character.isalpha() and character not in _NAME_PUNCTUATION for character in value
    )


def split_encoded_lines(value: str) -> Iterator[str]:
    """Yield the lines in the encoded body of a multi-line secret. Each line alone reveals part of the secret."""
    lines = _LINE_ENDS.split(value)
    if len(lines) > 1:
        for line in map(str.strip, lines):
            if _ENCODED_LINE.fullmatch(line) and is_distinctive(line):
                yield line


def encode_secret(value: str) -> Iterator[str]:
    """Yield all forms in which a secret may be encoded, in no particular order."""
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
    yield from _encode_base64_cores(raw)
    yield raw.hex()
    yield raw.hex().upper()


class _EncodedForm(NamedTuple):
    """A form in which a secret may be encoded.

    If the text is only a prefix of the secret, ``remaining_text`` is the rest of the secret. If
    ``extends_to_word_end`` is true, letters and digits after the text belong to the secret, because
    a rule may match only part of a word. If ``is_whole_token`` is true, the form only matches a
    whole token.
    """

    text: str
    kind: str
    remaining_text: str = ""
    extends_to_word_end: bool = False
    is_whole_token: bool = False

    def find_end(self, text: str, start: int) -> int:
        """Return the end of the form if it begins at ``start``, or 0 otherwise."""
        if not text.startswith(self.text, start):
            return 0
        end = start + len(self.text)
        if self.is_whole_token and not (
            _TOKEN_START.match(text, start) and _TOKEN_END.match(text, end)
        ):
            return 0
        for character in self.remaining_text:
            if text[end : end + 1] != character:
                break
            end += 1
        if self.extends_to_word_end and _WORD_CHARACTERS.fullmatch(text[end - 1]):
            word = _WORD_CHARACTERS.match(text, end)
        else:
            word = None
        if word:
            return word.end()
        return end


class Literals:
    """Known secrets as texts with their kinds; ``tokens`` are short secrets that only match whole tokens."""

    def __init__(self, values: Mapping[str, str], tokens: Mapping[str, str] | None = None) -> None:
        all_forms = list(_build_forms(values))
        for value, kind in (tokens or {}).items():
            percent = quote(value.encode("utf-8", "replace"), safe="")
            all_forms += (
                _EncodedForm(text, kind, is_whole_token=True)
                for text in (value, *_encode_as_json(value), percent)
            )
        forms = {form.text: form for form in reversed(all_forms)}
        self._forms: dict[str, list[_EncodedForm]] = {}
        for form in sorted(forms.values(), key=lambda form: -len(form.text)):
            self._forms.setdefault(form.text[:HEAD_CHARACTERS], []).append(form)
        self._heads = re.compile(f"{_PLACEHOLDER.pattern}|{_build_prefix_pattern(self._forms)}")
        self._separate_forms: list[bytes] = []
        for text in forms if len(forms) <= MAX_SEPARATE_FORMS else ():
            with contextlib.suppress(UnicodeEncodeError):
                self._separate_forms.append(text.encode("utf-8", "surrogateescape"))

    def __bool__(self) -> bool:
        """Check whether there are any secrets to search for."""
        return bool(self._forms)

    def is_secret_in(self, raw: bytes) -> bool:
        """Check whether the bytes contain any form of a secret."""
        if not self._forms or (
            self._separate_forms and not any(form in raw for form in self._separate_forms)
        ):
            return False
        return any(True for _ in self._find_forms(raw.decode("utf-8", "surrogateescape")))

    def replace_secrets(self, text: str) -> tuple[str, list[str]]:
        """Return a text with all forms replaced by placeholders, and the kind of each removed secret."""
        parts: list[str] = []
        kinds: list[str] = []
        position = 0
        for start, end, kind in self._find_forms(text) if self._forms else ():
            parts += [text[position:start], placeholder_of_secret(kind)]
            kinds.append(kind)
            position = end
        return "".join([*parts, text[position:]]), kinds

    def _find_forms(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the start, end and kind of each match. At each position, the longest form is matched.

        Placeholders are skipped.

        The time does not depend on the number of forms: each position is checked once, against the
        forms with the same prefix.
        """
        position = 0
        while head := self._heads.search(text, position):
            if _PLACEHOLDER.fullmatch(head[0]):
                position = head.end()
            else:
                position = head.start() + 1
            for form in self._forms.get(head[0], ()):
                if end := form.find_end(text, head.start()):
                    yield head.start(), end, form.kind
                    position = end
                    break


def _build_forms(values: Mapping[str, str]) -> Iterator[_EncodedForm]:
    """Yield the forms of all secrets, including their shortened forms."""
    for value, kind in values.items():
        was_scanned = kind != NAMED_KIND
        for text in encode_secret(value):
            yield _EncodedForm(text, kind, extends_to_word_end=was_scanned and text == value)
    for value, kind in values.items():
        prefix = value[: max(MIN_PREFIX_CHARACTERS, int(len(value) * MIN_PREFIX_FRACTION))]
        if len(prefix) < len(value):
            yield _EncodedForm(
                prefix, kind, value[len(prefix) :], extends_to_word_end=kind != NAMED_KIND
            )


def _build_prefix_pattern(texts: Iterable[str]) -> str:
    """Return a pattern that matches any of many texts, built as a prefix tree."""
    tree: dict[str, Any] = {}
    for text in texts:
        branch = tree
        for character in text:
            branch = branch.setdefault(character, {})
    return _build_branch_pattern(tree)


def _build_branch_pattern(tree: Mapping[str, Any]) -> str:
    alternatives = []
    for character, subtree in tree.items():
        alternatives.append(
            re.escape(character) + (_build_branch_pattern(subtree) if subtree else "")
        )
    if len(alternatives) == 1:
        return alternatives[0]
    return f"(?:{'|'.join(alternatives)})"


def _encode_as_json(text: str) -> Iterator[str]:
    """Yield the ways to encode a text in a JSON string."""
    for as_ascii in (True, False):
        encoded = json.dumps(text, ensure_ascii=as_ascii)[1:-1]
        yield encoded
        yield encoded.replace("/", "\\/")


def _encode_base64_cores(raw: bytes) -> Iterator[str]:
    """Yield the base64 of a secret, without the characters that depend on the bytes before and after it."""
    for shift in range(3):
        start, end = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        core = base64.b64encode(bytes(shift) + raw).decode()[start:end]
        if len(core) >= MIN_CORE_CHARACTERS:
            yield core
            yield core.replace("+", "-").replace("/", "_")
