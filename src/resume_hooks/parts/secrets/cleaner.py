"""Remove secrets from lines and texts: those that the scanner finds, and known ones from elsewhere.

A line stays valid JSON, and only its strings with a secret change. Thinking with a secret is
removed completely, because its signature only fits the original text. A line without a secret is
returned as the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.parts.secrets.literals import SHORTEST_NAMED, Literals
from resume_hooks.parts.secrets.locations import BINARY, LINE, Piece, pieces_of_file
from resume_hooks.redaction.json_lines import (
    find_in_bytes,
    find_in_line,
    folder_of,
    is_kept,
    json_strings,
    string_leaves,
    without_secrets,
)
from resume_hooks.redaction.texts import Secret, suspect_places
from resume_hooks.transcripts import records
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.records import Record, parse

ROUNDS = 4
"""The maximum passes over a text, because a removed secret may have hidden another one."""

_MARK = re.compile(rb"\[secret removed: [^\]\n]{1,80}\]")
_TOOL_NAME = (b"message", b"content", b"name")
_NAME_MARK = b"secret_removed"
"""The placeholder in a tool's name, since the API allows only these characters there."""
_THINKING = b'"thinking"'
_TOKEN = re.compile(rb"[A-Za-z0-9_-]+")


class RemovedSecret(NamedTuple):
    """A removed secret; ``values`` are its text, with one level of escapes resolved at each step."""

    kind: str
    values: tuple[str, ...] = ()


class Cleaned(NamedTuple):
    """Bytes without secrets, and the secrets ``found`` in them.

    ``stuck`` if a known one is where nothing may change.
    """

    raw: bytes
    found: tuple[RemovedSecret, ...]
    stuck: bool


class Cleaner:
    """Removes the known ``literals`` and, if ``scanning``, the secrets that the scanner finds.

    ``kinds`` limits the scanner to some kinds; if empty, it finds all. ``kinds`` limits the scanner
    to some kinds; if empty, it finds all.
    """

    def __init__(
        self,
        kinds: Collection[str] = (),
        literals: Literals | None = None,
        *,
        scanning: bool = True,
    ) -> None:
        self._kinds = frozenset(kinds)
        self._literals = literals or Literals({})
        self._scanning = scanning
        self._clean_folder = b""
        """The last scanned folder name without a secret."""

    def clean_file(self, path: str, *, lines: bool) -> Iterator[Cleaned]:
        """Return the cleaned pieces of a file, read as ``lines`` or as one text. Raise OSError."""
        return map(self.clean_piece, pieces_of_file(path, lines=lines))

    def finds_in(self, path: str, *, lines: bool) -> bool:
        """Check whether a file contains a secret to remove. Raise OSError."""
        return any(each.found for each in self.clean_file(path, lines=lines))

    def clean_piece(self, piece: Piece) -> Cleaned:
        """Return a cleaned piece, depending on its form; binary data stays unchanged."""
        if piece.form == BINARY:
            return self._clean_raw(piece.raw, [])
        if piece.form == LINE:
            return self.clean_record(piece.raw)
        return self.clean_text(piece.raw)

    def clean_record(self, raw: bytes) -> Cleaned:
        """Return a cleaned transcript line, with or without its line ending."""
        body = raw.rstrip(b"\r\n")
        if len(body) < SHORTEST_NAMED:
            return Cleaned(raw, (), stuck=False)
        found: list[RemovedSecret] = []
        cleaned = _until_stable(body, lambda each: self._clean_line_once(each, found))
        done = self._clean_raw(cleaned + raw[len(body) :], found)
        return done._replace(stuck=done.stuck or self.finds_in_folder(folder_of(body)))

    def finds_in_folder(self, folder: bytes) -> bool:
        """Check whether a record's folder name contains a secret of the selected kinds, which cannot be removed."""
        if not self._scanning or folder == self._clean_folder:
            return False
        is_found = any(
            not self._kinds or secret.kind in self._kinds for secret in find_in_bytes(folder)
        )
        self._clean_folder = self._clean_folder if is_found else folder
        return is_found

    def clean_text(self, raw: bytes) -> Cleaned:
        """Return a cleaned text, in which a secret may span several lines.

        Binary data is returned unchanged.
        """
        found: list[RemovedSecret] = []

        def once(each: bytes) -> bytes:
            return self._remove_known(self._remove_scanned(each, found), found)

        return self._clean_raw(raw if b"\0" in raw else _until_stable(raw, once), found)

    def clean_words(self, text: str) -> str:
        """Return a text of our own, such as a title, without secrets."""
        return self.clean_text(text.encode("utf-8", "surrogatepass")).raw.decode(
            "utf-8", "surrogatepass"
        )

    def is_secret_thought(self, block: Record, found: list[RemovedSecret]) -> bool:
        """Check whether a block is thinking with a secret; its secrets are appended to ``found``."""
        if block.get("type") != records.THINKING:
            return False
        held = self.clean_text(
            records.string(block, "thinking").encode("utf-8", "surrogatepass")
        ).found
        found += held
        return bool(held)

    def _clean_raw(self, raw: bytes, found: list[RemovedSecret]) -> Cleaned:
        return Cleaned(raw, tuple(found), self._literals.are_in(raw))

    def _clean_line_once(self, body: bytes, found: list[RemovedSecret]) -> bytes:
        start = body.lstrip(b"\xef\xbb\xbf \t")[:1]
        if start != b"{" or not body.endswith(b"}"):  # not JSON, or truncated
            return self._remove_known(self._remove_scanned(body, found), found)
        if _THINKING in body:
            body = self._without_thoughts(body, found)
        secrets = find_in_line(body) if self._scanning else []
        body = self._remove_wanted(body, secrets, found)
        if self._scanning:
            body = self._clean_names(body, found)
        if self._may_hold(body):
            return self._clean_strings(body, found)
        return body

    def _clean_names(self, body: bytes, found: list[RemovedSecret]) -> bytes:
        """Return a JSON line without secrets in its keys and in the names of tools."""
        if next(suspect_places(body), None) is None:
            return body
        places = []
        for key in json_strings(body):
            if key.is_key:
                places.append((key.start, key.end))
        names = _spans_of_tool_names(body)
        parts, place = [], 0
        for start, end in sorted([*places, *names.items()]):
            cleaned = self._remove_scanned(body[start:end], found)
            parts += [
                body[place:start],
                _MARK.sub(_NAME_MARK, cleaned) if start in names else cleaned,
            ]
            place = end
        return b"".join([*parts, body[place:]])

    def _clean_strings(self, body: bytes, found: list[RemovedSecret]) -> bytes:
        """Return a JSON line without known secrets in strings and keys; a key may be one of the client's questions."""
        names = _spans_of_tool_names(body)
        kept = {leaf.start for leaf in string_leaves(body) if is_kept(body, leaf)} - names.keys()
        parts, place = [], 0
        for string in json_strings(body):
            quoted = body[string.start - 1 : string.end + 1]
            if string.start not in kept and self._may_hold(quoted):
                cleaned = self._clean_string(quoted, found)
                name = string.start in names
                parts += [
                    body[place : string.start - 1],
                    _MARK.sub(_NAME_MARK, cleaned) if name else cleaned,
                ]
                place = string.end + 1
        return b"".join([*parts, body[place:]])

    def _remove_scanned(self, raw: bytes, found: list[RemovedSecret]) -> bytes:
        if self._scanning:
            return self._remove_wanted(raw, find_in_bytes(raw), found)
        return raw

    def _remove_wanted(
        self, raw: bytes, secrets: Sequence[Secret], found: list[RemovedSecret]
    ) -> bytes:
        """Return bytes without those of these secrets that have a selected kind."""
        wanted = []
        for secret in secrets:
            if not self._kinds or secret.kind in self._kinds:
                wanted.append(secret)
        for one in wanted:
            found.append(RemovedSecret(one.kind, _values_of_secret(raw[one.start : one.end])))
        if wanted:
            return without_secrets(raw, _extend_to_words(raw, wanted))
        return raw

    def _clean_string(self, token: bytes, found: list[RemovedSecret]) -> bytes:
        try:
            text = json.loads(token.decode("utf-8", "surrogateescape"), strict=False)
        except ValueError:
            return self._remove_known(token, found)
        cleaned, taken = self._literals.replace_secrets(text)
        found += map(RemovedSecret, taken)
        if not taken:
            return token
        try:
            return json.dumps(cleaned, ensure_ascii=False).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # keep a lone surrogate as an escape
            return json.dumps(cleaned).encode()

    def _remove_known(self, raw: bytes, found: list[RemovedSecret]) -> bytes:
        if not self._literals.are_in(raw):
            return raw
        cleaned, taken = self._literals.replace_secrets(raw.decode("utf-8", "surrogateescape"))
        found += map(RemovedSecret, taken)
        return cleaned.encode("utf-8", "surrogateescape")

    def _may_hold(self, raw: bytes) -> bool:
        """Check whether JSON bytes contain a known secret, or escapes that could hide one."""
        return self._literals.are_in(raw) or (bool(self._literals) and b"\\u" in raw)

    def _without_thoughts(self, body: bytes, found: list[RemovedSecret]) -> bytes:
        """Return the line without thinking that contains a secret.

        An answer with no other content becomes empty, and all clients skip such an answer (2.1.42
        to 2.1.329).
        """
        record = parse(body)
        content = records.blocks(record) if record is not None else []
        kept = []
        for block in content:
            if not self.is_secret_thought(block, found):
                kept.append(block)
        if record is None or len(kept) == len(content):
            return body
        return encode(records.with_content(record, kept))


def _spans_of_tool_names(body: bytes) -> dict[int, int]:
    """Return the spans of called tools' names, which may change, because clients do not run calls from a transcript."""
    names = {}
    for leaf in string_leaves(body):
        if leaf.path[-3:] == _TOOL_NAME and is_kept(body, leaf):
            names[leaf.start] = leaf.end
    return names


def _until_stable(raw: bytes, once: Callable[[bytes], bytes]) -> bytes:
    for _ in range(ROUNDS):
        cleaned = once(raw)
        if cleaned == raw:
            break
        raw = cleaned
    return raw


def _extend_to_words(raw: bytes, secrets: Sequence[Secret]) -> list[Secret]:
    """Return the secrets extended to the ends of their words, since a rule may match only part of one."""
    starts = [one.start for one in secrets[1:]] + [len(raw)]
    whole = []
    for one, limit in zip(secrets, starts, strict=True):
        inside = _TOKEN.match(raw, one.end - 1) and raw[one.end - 2 : one.end - 1] != b"\\"
        if inside:
            tail = _TOKEN.match(raw, one.end, max(one.end, limit))
        else:
            tail = None
        whole.append(one._replace(end=tail.end() if tail else one.end))
    return whole


def _values_of_secret(raw: bytes) -> tuple[str, ...]:
    """Return the text of a secret as written, then with its nested escapes resolved level by level."""
    texts = [raw.decode("utf-8", "replace")]
    while "\\" in texts[-1] and len(texts) < ROUNDS:
        try:
            texts.append(json.loads(f'"{texts[-1]}"', strict=False))
        except ValueError:
            break
    return tuple(texts)
