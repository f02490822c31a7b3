"""Remove secrets from lines and texts: secrets that the scanner finds, and known secrets from other places.

A line remains valid JSON, and only its strings that contain a secret change. If thinking contains a
secret, the whole thinking block is removed, because its signature only matches the original text. A
line without a secret is returned unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.parts.secrets.literals import SHORTEST_NAMED, Literals
from resume_hooks.parts.secrets.locations import BINARY, LINE, Piece, pieces_of_file
from resume_hooks.redaction.json_lines import (
    find_secrets_in_bytes,
    find_secrets_in_line,
    folder_of_record,
    is_exempt,
    json_strings,
    replace_secrets_in_bytes,
    string_leaves,
)
from resume_hooks.redaction.texts import Secret, suspect_positions
from resume_hooks.transcripts import records
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import Record, parse

MAX_PASSES = 4
"""The maximum number of passes over a text. Removing a secret may reveal another one, which needs another pass."""

_PLACEHOLDER = re.compile(rb"\[secret removed: [^\]\n]{1,80}\]")
_TOOL_NAME_PATH = (b"message", b"content", b"name")
_NAME_PLACEHOLDER = b"secret_removed"
"""The placeholder in a tool's name, in which the API allows only these characters."""
_THINKING_TYPE = b'"thinking"'
_WORD_CHARACTERS = re.compile(rb"[A-Za-z0-9_-]+")


class RemovedSecret(NamedTuple):
    """A removed secret; ``values`` are its text with no, one, two or more levels of escapes resolved."""

    kind: str
    values: tuple[str, ...] = ()


class CleanedBytes(NamedTuple):
    """Bytes without secrets; ``found`` are the removed secrets.

    ``stuck`` is true if a known secret remains, because it is in a place that must not change.
    """

    raw: bytes
    found: tuple[RemovedSecret, ...]
    stuck: bool


class Cleaner:
    """Removes the known ``literals`` and, if ``scanning`` is true, the secrets that the scanner finds.

    If ``kinds`` is not empty, the scanner only finds secrets of these kinds.
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
        """The last scanned folder name, if it contained no secret."""

    def clean_file(self, path: str, *, lines: bool) -> Iterator[CleanedBytes]:
        """Return the cleaned pieces of a file, read as ``lines`` or as one text. Raise OSError."""
        return map(self.clean_piece, pieces_of_file(path, lines=lines))

    def finds_in(self, path: str, *, lines: bool) -> bool:
        """Check whether a file contains a secret that must be removed. Raise OSError."""
        return any(cleaned.found for cleaned in self.clean_file(path, lines=lines))

    def clean_piece(self, piece: Piece) -> CleanedBytes:
        """Return a piece without its secrets, cleaned according to its format. Binary data is returned unchanged."""
        if piece.form == BINARY:
            return self._cleaned_bytes(piece.raw, [])
        if piece.form == LINE:
            return self.clean_record(piece.raw)
        return self.clean_text(piece.raw)

    def clean_record(self, raw: bytes) -> CleanedBytes:
        """Return a cleaned transcript line, with or without its line end."""
        body = raw.rstrip(b"\r\n")
        if len(body) < SHORTEST_NAMED:
            return CleanedBytes(raw, (), stuck=False)
        removed: list[RemovedSecret] = []
        cleaned = _repeat_until_stable(body, lambda each: self._clean_line_once(each, removed))
        done = self._cleaned_bytes(cleaned + raw[len(body) :], removed)
        return done._replace(stuck=done.stuck or self.finds_in_folder(folder_of_record(body)))

    def finds_in_folder(self, folder: bytes) -> bool:
        """Check whether a record's folder name, which cannot be changed, contains a secret of the selected kinds."""
        if not self._scanning or folder == self._clean_folder:
            return False
        is_found = any(
            not self._kinds or secret.kind in self._kinds
            for secret in find_secrets_in_bytes(folder)
        )
        self._clean_folder = self._clean_folder if is_found else folder
        return is_found

    def clean_text(self, raw: bytes) -> CleanedBytes:
        """Return a cleaned text. A secret in it may span several lines.

        Binary data is returned unchanged.
        """
        removed: list[RemovedSecret] = []

        def clean_once(raw_text: bytes) -> bytes:
            return self._remove_known(self._remove_scanned(raw_text, removed), removed)

        return self._cleaned_bytes(
            raw if b"\0" in raw else _repeat_until_stable(raw, clean_once), removed
        )

    def clean_words(self, text: str) -> str:
        """Return one of our own texts, such as a title, without secrets."""
        return self.clean_text(text.encode("utf-8", "surrogatepass")).raw.decode(
            "utf-8", "surrogatepass"
        )

    def is_secret_thought(self, block: Record, removed: list[RemovedSecret]) -> bool:
        """Check whether a block is thinking with a secret. If so, append its secrets to ``found``."""
        if block.get("type") != records.THINKING:
            return False
        secrets = self.clean_text(
            records.string(block, "thinking").encode("utf-8", "surrogatepass")
        ).found
        removed += secrets
        return bool(secrets)

    def _cleaned_bytes(self, raw: bytes, removed: list[RemovedSecret]) -> CleanedBytes:
        return CleanedBytes(raw, tuple(removed), self._literals.occur_in(raw))

    def _clean_line_once(self, body: bytes, removed: list[RemovedSecret]) -> bytes:
        start = body.lstrip(b"\xef\xbb\xbf \t")[:1]
        if start != b"{" or not body.endswith(b"}"):  # not JSON, or an incomplete line
            return self._remove_known(self._remove_scanned(body, removed), removed)
        if _THINKING_TYPE in body:
            body = self._without_thoughts(body, removed)
        secrets = find_secrets_in_line(body) if self._scanning else []
        body = self._remove_selected(body, secrets, removed)
        if self._scanning:
            body = self._clean_names(body, removed)
        if self._may_contain_known(body):
            return self._clean_strings(body, removed)
        return body

    def _clean_names(self, body: bytes, removed: list[RemovedSecret]) -> bytes:
        """Return a JSON line without secrets in its keys and in the names of tools."""
        if next(suspect_positions(body), None) is None:
            return body
        spans = []
        for key in json_strings(body):
            if key.is_key:
                spans.append((key.start, key.end))
        names = _tool_name_spans(body)
        parts, position = [], 0
        for start, end in sorted([*spans, *names.items()]):
            cleaned = self._remove_scanned(body[start:end], removed)
            parts += [
                body[position:start],
                _PLACEHOLDER.sub(_NAME_PLACEHOLDER, cleaned) if start in names else cleaned,
            ]
            position = end
        return b"".join([*parts, body[position:]])

    def _clean_strings(self, body: bytes, removed: list[RemovedSecret]) -> bytes:
        """Return a JSON line without known secrets in strings and keys. Some keys are questions from the client."""
        names = _tool_name_spans(body)
        kept_starts = {
            leaf.start for leaf in string_leaves(body) if is_exempt(body, leaf)
        } - names.keys()
        parts, position = [], 0
        for string in json_strings(body):
            quoted = body[string.start - 1 : string.end + 1]
            if string.start not in kept_starts and self._may_contain_known(quoted):
                cleaned = self._clean_string(quoted, removed)
                is_tool_name = string.start in names
                parts += [
                    body[position : string.start - 1],
                    _PLACEHOLDER.sub(_NAME_PLACEHOLDER, cleaned) if is_tool_name else cleaned,
                ]
                position = string.end + 1
        return b"".join([*parts, body[position:]])

    def _remove_scanned(self, raw: bytes, removed: list[RemovedSecret]) -> bytes:
        if self._scanning:
            return self._remove_selected(raw, find_secrets_in_bytes(raw), removed)
        return raw

    def _remove_selected(
        self, raw: bytes, secrets: Sequence[Secret], removed: list[RemovedSecret]
    ) -> bytes:
        """Return bytes without those of the given secrets that have a selected kind."""
        selected = []
        for secret in secrets:
            if not self._kinds or secret.kind in self._kinds:
                selected.append(secret)
        for one in selected:
            removed.append(RemovedSecret(one.kind, _secret_values(raw[one.start : one.end])))
        if selected:
            return replace_secrets_in_bytes(raw, _extend_to_words(raw, selected))
        return raw

    def _clean_string(self, token: bytes, removed: list[RemovedSecret]) -> bytes:
        try:
            text = json.loads(token.decode("utf-8", "surrogateescape"), strict=False)
        except ValueError:
            return self._remove_known(token, removed)
        cleaned, kinds = self._literals.replace_secrets(text)
        removed += map(RemovedSecret, kinds)
        if not kinds:
            return token
        try:
            return json.dumps(cleaned, ensure_ascii=False).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # write a lone surrogate as an escape
            return json.dumps(cleaned).encode()

    def _remove_known(self, raw: bytes, removed: list[RemovedSecret]) -> bytes:
        if not self._literals.occur_in(raw):
            return raw
        cleaned, kinds = self._literals.replace_secrets(raw.decode("utf-8", "surrogateescape"))
        removed += map(RemovedSecret, kinds)
        return cleaned.encode("utf-8", "surrogateescape")

    def _may_contain_known(self, raw: bytes) -> bool:
        """Check whether JSON bytes contain a known secret, or escapes that may hide one."""
        return self._literals.occur_in(raw) or (bool(self._literals) and b"\\u" in raw)

    def _without_thoughts(self, body: bytes, removed: list[RemovedSecret]) -> bytes:
        """Return the line without any thinking that contains a secret.

        If an answer has no other content, its content becomes empty. All clients skip such an
        answer (2.1.42 to 2.1.329).
        """
        record = parse(body)
        content = records.blocks(record) if record is not None else []
        remaining = []
        for block in content:
            if not self.is_secret_thought(block, removed):
                remaining.append(block)
        if record is None or len(remaining) == len(content):
            return body
        return encode_record(records.with_content(record, remaining))


def _tool_name_spans(body: bytes) -> dict[int, int]:
    """Return the spans of tool names in calls. They may change, because clients never run calls from a transcript."""
    names = {}
    for leaf in string_leaves(body):
        if leaf.path[-3:] == _TOOL_NAME_PATH and is_exempt(body, leaf):
            names[leaf.start] = leaf.end
    return names


def _repeat_until_stable(raw: bytes, clean_once: Callable[[bytes], bytes]) -> bytes:
    for _ in range(MAX_PASSES):
        cleaned = clean_once(raw)
        if cleaned == raw:
            break
        raw = cleaned
    return raw


def _extend_to_words(raw: bytes, secrets: Sequence[Secret]) -> list[Secret]:
    """Return the secrets, each extended to the end of its word, because a rule may match only part of a word."""
    starts = [secret.start for secret in secrets[1:]] + [len(raw)]
    extended = []
    for secret, limit in zip(secrets, starts, strict=True):
        is_word = (
            _WORD_CHARACTERS.match(raw, secret.end - 1)
            and raw[secret.end - 2 : secret.end - 1] != b"\\"
        )
        if is_word:
            tail = _WORD_CHARACTERS.match(raw, secret.end, max(secret.end, limit))
        else:
            tail = None
        extended.append(secret._replace(end=tail.end() if tail else secret.end))
    return extended


def _secret_values(raw: bytes) -> tuple[str, ...]:
    """Return a secret's text as written, then with one more level of nested escapes resolved at each step."""
    texts = [raw.decode("utf-8", "replace")]
    while "\\" in texts[-1] and len(texts) < MAX_PASSES:
        try:
            texts.append(json.loads(f'"{texts[-1]}"', strict=False))
        except ValueError:
            break
    return tuple(texts)
