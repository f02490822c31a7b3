"""Known secrets wherever they stand: as they are, and in the forms that JSON, addresses and base64 give them.

The scanner recognises a secret by its looks and the words before it, which the same text may lack
elsewhere. So a secret that was found once is looked for as text, unless it is short or could be any
word.
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
"""The kind of a secret that the user gave."""

SHORTEST_NAMED = 6
"""Characters of a secret that the user gives: fewer stand everywhere."""

SHORTEST = 12
"""Characters of a found secret that is looked for as text."""

SHORTEST_TOKEN = 6
"""Characters of a found secret that is looked for as a whole token."""

ANY_CHARACTERS = 20
"""Characters of a found secret without digits that is looked for as text."""

MOST_NAMED = 100
LONGEST_NAMED = 16 * 1024

FEW = 64
"""Up to so many forms, bytes are searched for each in turn, which is fastest where none of them stands."""

HEAD = 6
"""Characters at the beginning of a form by which all forms are looked for at once.

No form is shorter.
"""

LEAST_CORE = 8
"""Characters of base64 that can only be a part of the secret."""

CUT_AT = 0.6
"""The least share of a secret at the end of a title or preview that was cut short.

At least ``LEAST_LEFT``.
"""

LEAST_LEFT = 20

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|msg|req|call)_[A-Za-z0-9]+")
"""Ids of records: to take them out everywhere would break the session."""

_WORD = re.compile(r"[A-Za-z0-9_-]*")
"""The characters with which a secret goes on."""

_MARK = re.compile(r"\[secret removed: [^\]\n]{1,80}\]")

_LINE_ENDS = re.compile(r"(?:\\+[nr]|[\r\n])+")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_DULL_SIGNS = frozenset("-_./: ")
"""Signs that names of things have, too."""

_EDGE = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})")
"""The beginning of a token, also behind an escape."""

_NO_WORD = re.compile(r"(?![A-Za-z0-9])")


def parse_named_secrets(given: bytes) -> dict[str, str]:
    """The user's secrets, one per line, with their kind.

    The lines of a private key count as one secret, too.

    UsageError for one that can't be looked for; no message holds any part of it.
    """
    if len(given) > LONGEST_NAMED:
        raise UsageError(
            f"What was given is longer than {LONGEST_NAMED:,} bytes", "Give the secrets alone."
        )
    try:
        text = given.decode().replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            "What was given is not text in UTF-8", "Give the secrets as text, one a line."
        ) from error
    lines = []
    for line in text.split("\n"):
        if line.strip():
            lines.append(line.strip())
    if not lines:
        raise UsageError(
            "No secret was given", "Write one a line to --secret-stdin, from a file or a prompt."
        )
    if len(lines) > MOST_NAMED:
        raise UsageError(f"More than {MOST_NAMED} secrets were given", "Give fewer at a time.")
    if any(len(line) < SHORTEST_NAMED for line in lines):
        raise UsageError(
            (
                f"A secret that was given has fewer than {SHORTEST_NAMED} characters: it "
                "would be found everywhere"
            ),
            "Give the whole of it, one secret a line.",
        )
    if len(lines) > 1 and text.startswith("-----BEGIN "):
        whole = [text]
    else:
        whole = []
    return dict.fromkeys([*whole, *lines], NAMED)


def is_telling(value: str) -> bool:
    """Whether the text of a found secret is a secret wherever it stands."""
    if len(value) < SHORTEST or _ID.fullmatch(value) or _MARK.search(value):
        return False
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return mixed or (len(value) >= ANY_CHARACTERS and not any(sign.isspace() for sign in value))


def is_token(value: str) -> bool:
    """Whether a short found secret is more than a plain word, and looked for as a whole token."""
    if (
        not SHORTEST_TOKEN <= len(value) < SHORTEST
        or _MARK.search(value)
        or any(sign.isspace() for sign in value)
    ):
        return False
    lettered = any(sign.isalpha() for sign in value)
    return lettered and any(not sign.isalpha() and sign not in _DULL_SIGNS for sign in value)


def encoded_lines_of(value: str) -> Iterator[str]:
    """The lines of the encoded body of a multi-line secret: each discloses a part of it."""
    lines = _LINE_ENDS.split(value)
    if len(lines) > 1:
        for line in map(str.strip, lines):
            if _ENCODED_LINE.fullmatch(line) and is_telling(line):
                yield line


def written_forms_of(value: str) -> Iterator[str]:
    """The texts that a secret may be written as, in no order."""
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
    """A text that a secret may be written as.

    ``rest`` is what follows it in the whole secret, where the text is only its beginning;
    ``goes_on``: the letters and digits behind it belong to it, since a rule may see only a part of
    a word; ``alone``: it counts as a whole token.
    """

    text: str
    kind: str
    rest: str = ""
    goes_on: bool = False
    alone: bool = False

    def end_of_form(self, text: str, start: int) -> int:
        """The end of the form that begins at ``start``; 0 if it does not stand there."""
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
    """Secrets as texts, each with its kind; ``tokens`` are short ones, which count only as whole tokens."""

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
        """Whether there is anything to look for."""
        return bool(self._forms)

    def are_in(self, raw: bytes) -> bool:
        """Whether any form stands in these bytes as it is."""
        if not self._forms or (self._few and not any(form in raw for form in self._few)):
            return False
        return any(True for _ in self._places_of_forms(raw.decode("utf-8", "surrogateescape")))

    def replace_secrets(self, text: str) -> tuple[str, list[str]]:
        """A text with a placeholder for each form, and the kind of each secret that was taken out."""
        parts: list[str] = []
        kinds: list[str] = []
        place = 0
        for start, end, kind in self._places_of_forms(text) if self._forms else ():
            parts += [text[place:start], placeholder_of_secret(kind)]
            kinds.append(kind)
            place = end
        return "".join([*parts, text[place:]]), kinds

    def _places_of_forms(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and kind of each form; of those at one place the longest.

        No form within a placeholder.

        However many forms there are, each place is looked at once, and compared with those that
        begin as it does.
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
    """The forms of secrets, whole and cut short."""
    for value, kind in values.items():
        found = kind != NAMED
        for text in written_forms_of(value):
            yield _Form(text, kind, goes_on=found and text == value)
    for value, kind in values.items():
        head = value[: max(LEAST_LEFT, int(len(value) * CUT_AT))]
        if len(head) < len(value):
            yield _Form(head, kind, value[len(head) :], goes_on=kind != NAMED)


def _prefix_pattern(texts: Iterable[str]) -> str:
    """A pattern of any of many texts that branches character by character."""
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
    """A text as it may stand within a string of JSON."""
    for plain in (True, False):
        written = json.dumps(text, ensure_ascii=plain)[1:-1]
        yield written
        yield written.replace("/", "\\/")


def _base64_cores(raw: bytes) -> Iterator[str]:
    """The base64 of a secret without the signs that depend on the bytes before and behind it."""
    for shift in range(3):
        start, end = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        core = base64.b64encode(bytes(shift) + raw).decode()[start:end]
        if len(core) >= LEAST_CORE:
            yield core
            yield core.replace("+", "-").replace("/", "_")
