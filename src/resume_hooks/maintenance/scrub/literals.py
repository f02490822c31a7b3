"""Known secrets wherever they stand: as they are, and in the forms that JSON, addresses and base64 give them.

The scanner knows a secret by its looks and by the words before it; the same text elsewhere has neither. So what was
once found is looked for as text. A value that is short, or could be any word, is none that this is done with.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from resume_hooks.errors import UsageError

NAMED = "named"
"""The kind of a secret that the user gave."""

SHORTEST_NAMED = 6
"""Characters of a secret that the user gives: fewer stand everywhere."""

SHORTEST = 12
"""Characters of a found secret that is looked for as text."""

SHORTEST_TOKEN = 6
"""Characters of a found secret that is looked for as a whole token."""

ANY_CHARACTERS = 20
"""Characters from which on one without digits is, too."""

MOST_NAMED = 100
LONGEST_NAMED = 16 * 1024

MANY = 64
"""Forms from which on their beginnings are looked for first, all at once."""

GATE = 6
"""Bytes of such a beginning."""

LEAST_CORE = 8
"""Characters of base64 that can be nothing else but a part of the secret."""

CUT_AT = 0.6
"""The share of a secret that has to be left of it where a title or a preview was cut short; at least ``LEAST_LEFT``."""

LEAST_LEFT = 20

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:toolu|msg|req|call)_[A-Za-z0-9]+")
"""What names records: taken out everywhere, it would break the session."""

_WORD = re.compile(r"[A-Za-z0-9_-]*")
"""How a secret goes on."""

_MARK = re.compile(r"\[secret removed: [^\]\n]{1,80}\]")

_LINE_ENDS = re.compile(r"(?:\\+[nr]|[\r\n])+")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_DULL_SIGNS = frozenset("-_./: ")
"""Signs that names of things have, too."""

_BEFORE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4}))"
"""Where a token begins, also behind an escape."""


def mark(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"[secret removed: {kind}]"


def named(given: bytes) -> dict[str, str]:
    """The secrets in what the user gave, one a line, with their kind; all of it as one, too, where it is of several.

    UsageError for what can't be looked for; no message holds any of it.
    """
    if len(given) > LONGEST_NAMED:
        raise UsageError(f"What was given is longer than {LONGEST_NAMED:,} bytes", "Give the secrets alone.")
    try:
        text = given.decode().replace("\r\n", "\n").strip("\n")
    except UnicodeDecodeError as error:
        raise UsageError("What was given is no text in UTF-8", "Give the secrets as text, one a line.") from error
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        raise UsageError("No secret was given", "Write one a line to --secret-stdin, from a file or a prompt.")
    if len(lines) > MOST_NAMED:
        raise UsageError(f"More than {MOST_NAMED} secrets were given", "Give fewer at a time.")
    if any(len(line) < SHORTEST_NAMED for line in lines):
        raise UsageError(
            f"A secret that was given has fewer than {SHORTEST_NAMED} characters: it would be found everywhere",
            "Give the whole of it, one secret a line.",
        )
    whole = [text] if len(lines) > 1 and text.startswith("-----BEGIN ") else []
    return dict.fromkeys([*whole, *lines], NAMED)


def is_telling(value: str) -> bool:
    """Whether a found secret can be nothing else wherever it stands."""
    if len(value) < SHORTEST or _ID.fullmatch(value) or _MARK.search(value):
        return False
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return mixed or (len(value) >= ANY_CHARACTERS and not any(sign.isspace() for sign in value))


def is_token(value: str) -> bool:
    """Whether a short found secret is no plain word, and looked for as a whole token."""
    if not SHORTEST_TOKEN <= len(value) < SHORTEST or _MARK.search(value) or any(sign.isspace() for sign in value):
        return False
    lettered = any(sign.isalpha() for sign in value)
    return lettered and any(not sign.isalpha() and sign not in _DULL_SIGNS for sign in value)


def lines_of(value: str) -> Iterator[str]:
    """The lines of a secret of several that are nothing but its encoded body: each tells a part of it."""
    lines = _LINE_ENDS.split(value)
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if _ENCODED_LINE.fullmatch(line) and is_telling(line))


def forms_of(value: str) -> Iterator[str]:
    """The texts that a secret may be written as; the longest come to stand first where they are replaced."""
    yield value
    once = list(_escaped(value))
    yield from once
    yield from (twice for form in once for twice in _escaped(form))
    raw = value.encode("utf-8", "replace")
    for percent in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield percent
        yield re.sub("%[0-9A-F]{2}", lambda found: found.group().lower(), percent)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield from _cores(raw)
    yield raw.hex()
    yield raw.hex().upper()


class Literals:
    """Secrets as texts, each with its kind; ``tokens`` are short ones, which count where no word goes on."""

    def __init__(self, values: Mapping[str, str], tokens: Mapping[str, str] | None = None) -> None:
        self._tokens = {form: kind for value, kind in (tokens or {}).items() for form in _token_forms(value)}
        told = "|".join(map(re.escape, sorted(self._tokens, key=len, reverse=True)))
        pattern = rf"{_MARK.pattern}|{_BEFORE}({told})(?![A-Za-z0-9])"
        self._token = re.compile(pattern)
        self._raw_token = re.compile(pattern.encode("utf-8", "surrogateescape"))
        self._raw_tokens = [form.encode("utf-8", "surrogateescape") for form in self._tokens]
        self._kinds: dict[str, str] = {}
        for value, kind in values.items():
            for form in forms_of(value):
                self._kinds.setdefault(form, kind)
        self._values = frozenset(values)
        heads = {value[: max(LEAST_LEFT, int(len(value) * CUT_AT))]: value for value in values}
        self._heads = {head: value for head, value in heads.items() if len(value) > len(head)}
        self._ordered = sorted(self._kinds, key=len, reverse=True)
        looked_for = dict.fromkeys([*self._ordered, *self._heads])
        self._raw = [form.encode("utf-8", "surrogateescape") for form in looked_for if _is_encodable(form)]
        self._gate = _gate(self._raw) if len(self._raw) > MANY else None

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._kinds or self._tokens)

    def stand_in(self, raw: bytes) -> bool:
        """Whether any form stands in these bytes as it is."""
        return self._texts_stand_in(raw) or (
            any(form in raw for form in self._raw_tokens) and any(found[1] for found in self._raw_token.finditer(raw))
        )

    def _texts_stand_in(self, raw: bytes) -> bool:
        if self._gate is not None and self._gate.search(raw) is None:
            return False
        return any(form in raw for form in self._raw)

    def without(self, text: str) -> tuple[str, list[str]]:
        """A text with a mark in place of each form, and the kinds of what was taken out, one each."""
        kinds: list[str] = []

        def taken(found: re.Match[str]) -> str:
            kinds.append(self._kinds[next(form for form in present if found.group().startswith(form))])
            return mark(kinds[-1])

        present = [form for form in self._ordered if form in text]
        cleaned = re.sub("|".join(map(self._pattern, present)), taken, text) if present else text
        return self._without_tokens(self._without_cut(cleaned, kinds), kinds), kinds

    def _without_tokens(self, text: str, kinds: list[str]) -> str:
        def taken(found: re.Match[str]) -> str:
            if not found[1]:
                return found[0]  # a mark of ours
            kinds.append(self._tokens[found[1]])
            return mark(kinds[-1])

        return self._token.sub(taken, text) if any(form in text for form in self._tokens) else text

    def _pattern(self, form: str) -> str:
        """What finds a form; a secret that was found goes with its whole word, of which a rule may see only a part."""
        goes_on = form in self._values and self._kinds[form] != NAMED and _WORD.fullmatch(form[-1])
        return re.escape(form) + (_WORD.pattern if goes_on else "")

    def _without_cut(self, text: str, kinds: list[str]) -> str:
        """A text without what is left of a secret that was cut short."""
        for head, value in self._heads.items():
            while (start := text.find(head)) >= 0:
                end = start + len(head)
                while end - start < len(value) and text[end : end + 1] == value[end - start]:
                    end += 1
                kinds.append(self._kinds[value])
                if kinds[-1] != NAMED and _WORD.fullmatch(text[end - 1]) and (rest := _WORD.match(text, end)):
                    end = rest.end()
                text = f"{text[:start]}{mark(kinds[-1])}{text[end:]}"
        return text


def _gate(forms: Iterable[bytes]) -> re.Pattern[bytes]:
    """What finds the beginning of any of many forms in one go: an expression that branches byte by byte."""
    tree: dict[int, Any] = {}
    for form in forms:
        branch = tree
        for byte in form[:GATE]:
            branch = branch.setdefault(byte, {})
    return re.compile(_branches(tree))


def _branches(tree: Mapping[int, Any]) -> bytes:
    rows = [re.escape(bytes([byte])) + (_branches(below) if below else b"") for byte, below in tree.items()]
    return rows[0] if len(rows) == 1 else b"(?:" + b"|".join(rows) + b")"


def _escaped(text: str) -> Iterator[str]:
    """A text as it stands within a string of JSON."""
    for plain in (True, False):
        written = json.dumps(text, ensure_ascii=plain)[1:-1]
        yield written
        yield written.replace("/", "\\/")


def _token_forms(value: str) -> set[str]:
    forms = {value, *_escaped(value), quote(value.encode("utf-8", "replace"), safe="")}
    return {form for form in forms if _is_encodable(form)}


def _cores(raw: bytes) -> Iterator[str]:
    """What base64 makes of a secret for certain, whatever stands before and behind it."""
    for shift in range(3):
        start, end = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        core = base64.b64encode(bytes(shift) + raw).decode()[start:end]
        if len(core) >= LEAST_CORE:
            yield core
            yield core.replace("+", "-").replace("/", "_")


def _is_encodable(form: str) -> bool:
    try:
        form.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
