"""Find known secrets in all their forms: plain, and as written in JSON, URLs and base64.

The scanner recognises a secret by its shape and the words before it, which may be missing
elsewhere. So a secret that was found once is searched for as text, unless it is short or could be
any word.
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

NAMED = "named"
"""The kind of a secret that the user supplied."""

SHORTEST_NAMED = 6
"""The minimum characters of a secret from the user; shorter texts occur everywhere."""

SHORTEST = 12
"""The minimum characters of a found secret to be searched for as text."""

SHORTEST_TOKEN = 6
"""The minimum characters of a found secret to be searched for as a whole token."""

ANY_CHARACTERS = 20
"""The minimum characters of a found secret without digits to be searched for as text."""

MOST_NAMED = 100
LONGEST_NAMED = 16 * 1024

FEW = 64
"""Up to this many forms, bytes are searched for each form in turn, which is fastest if none occurs."""

HEAD = 6
"""Characters at the start of each form that the combined search for all forms uses.

Every form is at least this long.
"""

LEAST_CORE = 8
"""The minimum length of a base64 form, below which it could match by chance."""

CUT_AT = 0.6
"""The minimum share of a secret that counts at the end of a shortened title or preview.

At least ``LEAST_LEFT`` characters.
"""

LEAST_LEFT = 20

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|msg|req|call)_[A-Za-z0-9]+")
"""Ids of records, whose removal would break the session."""

_WORD = re.compile(r"[A-Za-z0-9_-]*")
"""Characters that can continue a secret."""

_MARK = re.compile(r"\[secret removed: [^\]\n]{1,80}\]")

_LINE_ENDS = re.compile(r"(?:\\+[nr]|[\r\n])+")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_DULL_SIGNS = frozenset("-_./: ")
"""Punctuation that also occurs in ordinary names."""

_EDGE = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})")
"""The beginning of a token, also after an escape."""

_NO_WORD = re.compile(r"(?![A-Za-z0-9])")


def parse_named_secrets(given: bytes) -> dict[str, str]:
    """Return the user's secrets, one per line, with their kind.

    The lines of a private key also count as one secret together.

    Raise UsageError for an unsearchable secret; no message contains any part of it.
    """
    if len(given) > LONGEST_NAMED:
        raise UsageError(
            f"The input is longer than {LONGEST_NAMED:,} bytes", "Give only the secrets."
        )
    try:
        text = given.decode().replace("\r\n", "\n").strip("\n")
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
    if len(lines) > MOST_NAMED:
        raise UsageError(f"More than {MOST_NAMED} secrets were given", "Give fewer at a time.")
    if any(len(line) < SHORTEST_NAMED for line in lines):
        raise UsageError(
            (
                f"A secret that was given has fewer than {SHORTEST_NAMED} characters: it "
                "would match everywhere"
            ),
            "Give the complete secret, one per line.",
        )
    if len(lines) > 1 and text.startswith("-----BEGIN "):
        whole = [text]
    else:
        whole = []
    return dict.fromkeys([*whole, *lines], NAMED)


def is_telling(value: str) -> bool:
    """Check whether the text of a found secret is distinctive enough to be removed everywhere."""
    if len(value) < SHORTEST or _ID.fullmatch(value) or _MARK.search(value):
        return False
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return mixed or (len(value) >= ANY_CHARACTERS and not any(sign.isspace() for sign in value))


def is_token(value: str) -> bool:
    """Check whether a short found secret is more than a plain word, so that it can be searched for as a whole token."""
    if (
        not SHORTEST_TOKEN <= len(value) < SHORTEST
        or _MARK.search(value)
        or any(sign.isspace() for sign in value)
    ):
        return False
    lettered = any(sign.isalpha() for sign in value)
    return lettered and any(not sign.isalpha() and sign not in _DULL_SIGNS for sign in value)


def encoded_lines_of(value: str) -> Iterator[str]:
    """Yield the lines in the encoded body of a multi-line secret, because each line reveals part of it."""
    lines = _LINE_ENDS.split(value)
    if len(lines) > 1:
        for line in map(str.strip, lines):
            if _ENCODED_LINE.fullmatch(line) and is_telling(line):
                yield line


def written_forms_of(value: str) -> Iterator[str]:
    """Yield all forms in which a secret may be written, in any order."""
    yield value
    once = list(_json_forms(value))
    yield from once
    for form in once:
        yield from _json_forms(form)
    raw = value.encode("utf-8", "replace")
    for percent in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield percent
        yield re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), percent)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield from _base64_cores(raw)
    yield raw.hex()
    yield raw.hex().upper()


class _Form(NamedTuple):
    """A form in which a secret may be written.

    If the text is only the beginning of the secret, ``rest`` is the remainder. With ``goes_on``,
    letters and digits after it belong to it, since a rule may match only part of a word. With
    ``alone``, it only counts as a whole token.
    """

    text: str
    kind: str
    rest: str = ""
    goes_on: bool = False
    alone: bool = False

    def end_of_form(self, text: str, start: int) -> int:
        """Return the end of the form that begins at ``start``, or 0 if it does not occur there."""
        if not text.startswith(self.text, start):
            return 0
        end = start + len(self.text)
        if self.alone and not (_EDGE.match(text, start) and _NO_WORD.match(text, end)):
            return 0
        for sign in self.rest:
            if text[end : end + 1] != sign:
                break
            end += 1
        if self.goes_on and _WORD.fullmatch(text[end - 1]):
            word = _WORD.match(text, end)
        else:
            word = None
        if word:
            return word.end()
        return end


class Literals:
    """Secrets as texts with their kinds; ``tokens`` are short ones that only count as whole tokens."""

    def __init__(self, values: Mapping[str, str], tokens: Mapping[str, str] | None = None) -> None:
        known = list(_forms_of_secrets(values))
        for value, kind in (tokens or {}).items():
            percent = quote(value.encode("utf-8", "replace"), safe="")
            known += (
                _Form(text, kind, alone=True) for text in (value, *_json_forms(value), percent)
            )
        forms = {form.text: form for form in reversed(known)}
        self._forms: dict[str, list[_Form]] = {}
        for form in sorted(forms.values(), key=lambda form: -len(form.text)):
            self._forms.setdefault(form.text[:HEAD], []).append(form)
        self._heads = re.compile(f"{_MARK.pattern}|{_prefix_pattern(self._forms)}")
        self._few: list[bytes] = []
        for text in forms if len(forms) <= FEW else ():
            with contextlib.suppress(UnicodeEncodeError):
                self._few.append(text.encode("utf-8", "surrogateescape"))

    def __bool__(self) -> bool:
        """Whether there are any secrets to search for."""
        return bool(self._forms)

    def are_in(self, raw: bytes) -> bool:
        """Check whether these bytes contain any form."""
        if not self._forms or (self._few and not any(form in raw for form in self._few)):
            return False
        return any(True for _ in self._places_of_forms(raw.decode("utf-8", "surrogateescape")))

    def replace_secrets(self, text: str) -> tuple[str, list[str]]:
        """Return a text with placeholders for all forms, and the kind of each removed secret."""
        parts: list[str] = []
        kinds: list[str] = []
        place = 0
        for start, end, kind in self._places_of_forms(text) if self._forms else ():
            parts += [text[place:start], placeholder_of_secret(kind)]
            kinds.append(kind)
            place = end
        return "".join([*parts, text[place:]]), kinds

    def _places_of_forms(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the start, end and kind of each form, the longest one at each position.

        Placeholders are skipped.

        The time does not depend on the number of forms: each position is checked once, and only
        against forms with the same beginning.
        """
        place = 0
        while head := self._heads.search(text, place):
            if _MARK.fullmatch(head[0]):
                place = head.end()
            else:
                place = head.start() + 1
            for form in self._forms.get(head[0], ()):
                if end := form.end_of_form(text, head.start()):
                    yield head.start(), end, form.kind
                    place = end
                    break


def _forms_of_secrets(values: Mapping[str, str]) -> Iterator[_Form]:
    """Yield the forms of secrets, complete and shortened."""
    for value, kind in values.items():
        found = kind != NAMED
        for text in written_forms_of(value):
            yield _Form(text, kind, goes_on=found and text == value)
    for value, kind in values.items():
        head = value[: max(LEAST_LEFT, int(len(value) * CUT_AT))]
        if len(head) < len(value):
            yield _Form(head, kind, value[len(head) :], goes_on=kind != NAMED)


def _prefix_pattern(texts: Iterable[str]) -> str:
    """Return a pattern that matches any of many texts and branches character by character."""
    tree: dict[str, Any] = {}
    for text in texts:
        branch = tree
        for sign in text:
            branch = branch.setdefault(sign, {})
    return _pattern_of_branches(tree)


def _pattern_of_branches(tree: Mapping[str, Any]) -> str:
    rows = []
    for sign, below in tree.items():
        rows.append(re.escape(sign) + (_pattern_of_branches(below) if below else ""))
    if len(rows) == 1:
        return rows[0]
    return f"(?:{'|'.join(rows)})"


def _json_forms(text: str) -> Iterator[str]:
    """Yield the forms of a text inside a JSON string."""
    for plain in (True, False):
        written = json.dumps(text, ensure_ascii=plain)[1:-1]
        yield written
        yield written.replace("/", "\\/")


def _base64_cores(raw: bytes) -> Iterator[str]:
    """Yield the base64 of a secret without the characters that depend on the bytes around it."""
    for shift in range(3):
        start, end = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        core = base64.b64encode(bytes(shift) + raw).decode()[start:end]
        if len(core) >= LEAST_CORE:
            yield core
            yield core.replace("+", "-").replace("/", "_")
