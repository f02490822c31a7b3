"""Remove secrets from lines and texts.

A cleaner removes the secrets that the scanner recognises, and secrets that are known from other
files. A line remains valid JSON, and only strings that contain a secret are changed. If a thinking
block contains a secret, the whole block is removed, because its signature is valid only for the
original text. A line without a secret is returned unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.parts.secrets.literals import MIN_SUPPLIED_SECRET_CHARACTERS, KnownSecrets
from resume_hooks.parts.secrets.locations import (
    BINARY_FORMAT,
    LINE_FORMAT,
    FileChunk,
    read_file_chunks,
)
from resume_hooks.redaction.json_lines import (
    find_secrets_in_bytes,
    find_secrets_in_line,
    folder_of_record,
    is_exempt_from_redaction,
    json_strings,
    replace_secrets_in_bytes,
    string_leaves,
)
from resume_hooks.redaction.texts import Secret, positions_of_possible_secrets
from resume_hooks.transcripts import records
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import Record, parse_record

MAX_REDACTION_PASSES = 4
"""The maximum number of passes over a text. When a secret has been removed, the scanner may
recognise another one, which the next pass removes."""

_PLACEHOLDER_PATTERN = re.compile(rb"\[secret removed: [^\]\n]{1,80}\]")
_TOOL_NAME_KEYS = (b"message", b"content", b"name")
_TOOL_NAME_PLACEHOLDER = b"secret_removed"
"""The placeholder for a secret in a tool's name. It contains only characters that the API allows in
such names."""
_THINKING_BLOCK_MARKER = b'"thinking"'
_WORD_CHARACTERS_PATTERN = re.compile(rb"[A-Za-z0-9_-]+")


class RemovedSecret(NamedTuple):
    """A secret that was removed from a text.

    The first of the ``values`` is the secret as it is written in the text. For each further value,
    one more level of JSON escapes has been decoded.
    """

    kind: str
    values: tuple[str, ...] = ()


class CleanedBytes(NamedTuple):
    """Bytes without secrets, and the secrets that were removed from them.

    ``has_unremovable_secret`` is true if a secret had to stay in the bytes because it is part of
    something that must not change, for example a record's id.
    """

    cleaned_bytes: bytes
    removed_secrets: tuple[RemovedSecret, ...]
    has_unremovable_secret: bool


class SecretCleaner:
    """Removes known secrets and the secrets that the scanner recognises.

    Known secrets (``known_secrets``) are removed whatever their kind. If ``kinds`` is not empty,
    recognised secrets are removed only if they are of one of these kinds. If ``scanning`` is false,
    only known secrets are removed.
    """

    def __init__(
        self,
        kinds: Collection[str] = (),
        known_secrets: KnownSecrets | None = None,
        *,
        scanning: bool = True,
    ) -> None:
        self._kinds = frozenset(kinds)
        self._known_secrets = known_secrets or KnownSecrets({})
        self._scans_for_secrets = scanning
        self._last_clean_folder = b""
        """The last scanned folder name without a secret."""

    def read_cleaned_chunks(self, path: str, *, is_read_by_line: bool) -> Iterator[CleanedBytes]:
        """Yield the chunks of a file without their secrets. Raise OSError if the file cannot be read.

        With ``is_read_by_line``, each chunk is a line. Otherwise the whole file is one chunk.
        """
        return map(self.clean_chunk, read_file_chunks(path, is_read_by_line=is_read_by_line))

    def file_has_secret(self, path: str, *, is_read_by_line: bool) -> bool:
        """Check whether a file has a secret that can be removed. Raise OSError if the file is unreadable."""
        return any(
            cleaned_chunk.removed_secrets
            for cleaned_chunk in self.read_cleaned_chunks(path, is_read_by_line=is_read_by_line)
        )

    def clean_chunk(self, chunk: FileChunk) -> CleanedBytes:
        """Return a chunk of a file without its secrets. Return binary data unchanged."""
        if chunk.format == BINARY_FORMAT:
            return self._build_cleaned_bytes(chunk.raw_bytes, [])
        if chunk.format == LINE_FORMAT:
            return self.clean_record(chunk.raw_bytes)
        return self.clean_text(chunk.raw_bytes)

    def clean_record(self, raw: bytes) -> CleanedBytes:
        """Return a line of a transcript without its secrets. The line may end with a line feed."""
        body = raw.rstrip(b"\r\n")
        if len(body) < MIN_SUPPLIED_SECRET_CHARACTERS:
            return CleanedBytes(raw, (), has_unremovable_secret=False)
        removed_secrets: list[RemovedSecret] = []
        cleaned_body = _clean_until_stable(
            body, lambda body_to_clean: self._clean_line_in_one_pass(body_to_clean, removed_secrets)
        )
        result = self._build_cleaned_bytes(cleaned_body + raw[len(body) :], removed_secrets)
        return result._replace(
            has_unremovable_secret=result.has_unremovable_secret
            or self.has_secret_in_folder_name(folder_of_record(body))
        )

    def has_secret_in_folder_name(self, folder: bytes) -> bool:
        """Check whether the folder name in a record contains a secret of the selected kinds.

        A secret in a folder name cannot be removed, because the client uses this name to find the
        session.
        """
        if not self._scans_for_secrets or folder == self._last_clean_folder:
            return False
        has_secret = any(
            not self._kinds or secret.kind in self._kinds
            for secret in find_secrets_in_bytes(folder)
        )
        self._last_clean_folder = self._last_clean_folder if has_secret else folder
        return has_secret

    def clean_text(self, raw: bytes) -> CleanedBytes:
        """Return a text without its secrets. Return binary data unchanged.

        A secret may extend over several lines.
        """
        removed_secrets: list[RemovedSecret] = []

        def clean_once(raw_text: bytes) -> bytes:
            return self._remove_known_secrets(
                self._remove_scanned_secrets(raw_text, removed_secrets), removed_secrets
            )

        return self._build_cleaned_bytes(
            raw if b"\0" in raw else _clean_until_stable(raw, clean_once), removed_secrets
        )

    def clean_generated_text(self, text: str) -> str:
        """Return a text that this program wrote, for example a title, without secrets."""
        return self.clean_text(text.encode("utf-8", "surrogatepass")).cleaned_bytes.decode(
            "utf-8", "surrogatepass"
        )

    def collect_thinking_secrets(self, block: Record, removed_secrets: list[RemovedSecret]) -> bool:
        """Check whether a content block is a thinking block that contains a secret.

        The secrets found in the block are appended to ``removed_secrets``.
        """
        if block.get("type") != records.THINKING:
            return False
        secrets = self.clean_text(
            records.get_string(block, "thinking").encode("utf-8", "surrogatepass")
        ).removed_secrets
        removed_secrets += secrets
        return bool(secrets)

    def _build_cleaned_bytes(
        self, raw: bytes, removed_secrets: list[RemovedSecret]
    ) -> CleanedBytes:
        return CleanedBytes(raw, tuple(removed_secrets), self._known_secrets.has_secret_in(raw))

    def _clean_line_in_one_pass(self, body: bytes, removed_secrets: list[RemovedSecret]) -> bytes:
        first_byte = body.lstrip(b"\xef\xbb\xbf \t")[:1]
        # A line that is not a complete JSON object is cleaned as plain text.
        if first_byte != b"{" or not body.endswith(b"}"):
            return self._remove_known_secrets(
                self._remove_scanned_secrets(body, removed_secrets), removed_secrets
            )
        if _THINKING_BLOCK_MARKER in body:
            body = self._remove_thinking_with_secrets(body, removed_secrets)
        secrets = find_secrets_in_line(body) if self._scans_for_secrets else []
        body = self._remove_selected_secrets(body, secrets, removed_secrets)
        if self._scans_for_secrets:
            body = self._clean_keys_and_tool_names(body, removed_secrets)
        if self._may_contain_known_secret(body):
            return self._clean_strings(body, removed_secrets)
        return body

    def _clean_keys_and_tool_names(
        self, body: bytes, removed_secrets: list[RemovedSecret]
    ) -> bytes:
        """Return a JSON line without the secrets that the scanner finds in its keys and in the names of tools."""
        if next(positions_of_possible_secrets(body), None) is None:
            return body
        spans = []
        for key in json_strings(body):
            if key.is_key:
                spans.append((key.start, key.end))
        name_spans = _map_tool_name_starts_to_ends(body)
        parts, position = [], 0
        for start, end in sorted([*spans, *name_spans.items()]):
            cleaned_name = self._remove_scanned_secrets(body[start:end], removed_secrets)
            parts += [
                body[position:start],
                _PLACEHOLDER_PATTERN.sub(_TOOL_NAME_PLACEHOLDER, cleaned_name)
                if start in name_spans
                else cleaned_name,
            ]
            position = end
        return b"".join([*parts, body[position:]])

    def _clean_strings(self, body: bytes, removed_secrets: list[RemovedSecret]) -> bytes:
        """Return a JSON line without the known secrets in its strings and keys.

        Keys are included because some of them contain text, for example the client's questions.
        """
        name_spans = _map_tool_name_starts_to_ends(body)
        exempt_starts = {
            leaf.start for leaf in string_leaves(body) if is_exempt_from_redaction(body, leaf)
        } - name_spans.keys()
        parts, position = [], 0
        for string in json_strings(body):
            quoted_string = body[string.start - 1 : string.end + 1]
            if string.start not in exempt_starts and self._may_contain_known_secret(quoted_string):
                cleaned_string = self._clean_string(quoted_string, removed_secrets)
                is_tool_name = string.start in name_spans
                parts += [
                    body[position : string.start - 1],
                    _PLACEHOLDER_PATTERN.sub(_TOOL_NAME_PLACEHOLDER, cleaned_string)
                    if is_tool_name
                    else cleaned_string,
                ]
                position = string.end + 1
        return b"".join([*parts, body[position:]])

    def _remove_scanned_secrets(self, raw: bytes, removed_secrets: list[RemovedSecret]) -> bytes:
        if self._scans_for_secrets:
            return self._remove_selected_secrets(raw, find_secrets_in_bytes(raw), removed_secrets)
        return raw

    def _remove_selected_secrets(
        self, raw: bytes, secrets: Sequence[Secret], removed_secrets: list[RemovedSecret]
    ) -> bytes:
        """Return ``raw`` without those ``secrets`` whose kind is selected.

        The removed secrets are appended to ``removed_secrets``.
        """
        selected_secrets = []
        for secret in secrets:
            if not self._kinds or secret.kind in self._kinds:
                selected_secrets.append(secret)
        for selected_secret in selected_secrets:
            removed_secrets.append(
                RemovedSecret(
                    selected_secret.kind,
                    _list_unescaped_variants(raw[selected_secret.start : selected_secret.end]),
                )
            )
        if selected_secrets:
            return replace_secrets_in_bytes(
                raw, _extend_secrets_to_word_ends(raw, selected_secrets)
            )
        return raw

    def _clean_string(self, quoted_string: bytes, removed_secrets: list[RemovedSecret]) -> bytes:
        try:
            text = json.loads(quoted_string.decode("utf-8", "surrogateescape"), strict=False)
        except ValueError:
            return self._remove_known_secrets(quoted_string, removed_secrets)
        cleaned_text, kinds = self._known_secrets.replace_secrets(text)
        removed_secrets += map(RemovedSecret, kinds)
        if not kinds:
            return quoted_string
        try:
            return json.dumps(cleaned_text, ensure_ascii=False).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # A lone surrogate can only be written as an escape.
            return json.dumps(cleaned_text).encode()

    def _remove_known_secrets(self, raw: bytes, removed_secrets: list[RemovedSecret]) -> bytes:
        if not self._known_secrets.has_secret_in(raw):
            return raw
        cleaned_text, kinds = self._known_secrets.replace_secrets(
            raw.decode("utf-8", "surrogateescape")
        )
        removed_secrets += map(RemovedSecret, kinds)
        return cleaned_text.encode("utf-8", "surrogateescape")

    def _may_contain_known_secret(self, raw: bytes) -> bool:
        """Check whether JSON bytes contain a known secret, or a JSON escape that may hide part of one."""
        return self._known_secrets.has_secret_in(raw) or (
            bool(self._known_secrets) and b"\\u" in raw
        )

    def _remove_thinking_with_secrets(
        self, body: bytes, removed_secrets: list[RemovedSecret]
    ) -> bytes:
        """Return a line without the thinking blocks that contain a secret.

        If an answer consists only of such blocks, its content becomes an empty list. Claude Code
        2.1.42 to 2.1.329 skips an empty answer.
        """
        record = parse_record(body)
        content_blocks = records.list_blocks(record) if record is not None else []
        remaining_blocks = []
        for block in content_blocks:
            if not self.collect_thinking_secrets(block, removed_secrets):
                remaining_blocks.append(block)
        if record is None or len(remaining_blocks) == len(content_blocks):
            return body
        return encode_record(records.replace_content(record, remaining_blocks))


def _map_tool_name_starts_to_ends(body: bytes) -> dict[int, int]:
    """Map the start of each tool name in a line's tool calls to the end of the name.

    Changing these names is safe, because clients never run the calls in a transcript.
    """
    name_spans = {}
    for leaf in string_leaves(body):
        if leaf.path[-3:] == _TOOL_NAME_KEYS and is_exempt_from_redaction(body, leaf):
            name_spans[leaf.start] = leaf.end
    return name_spans


def _clean_until_stable(raw: bytes, clean_once: Callable[[bytes], bytes]) -> bytes:
    for _ in range(MAX_REDACTION_PASSES):
        cleaned_bytes = clean_once(raw)
        if cleaned_bytes == raw:
            break
        raw = cleaned_bytes
    return raw


def _extend_secrets_to_word_ends(raw: bytes, secrets: Sequence[Secret]) -> list[Secret]:
    """Return the secrets, each extended to the end of its last word.

    The rule by which the scanner found the secret may have matched only a part of that word.
    """
    next_starts = [secret.start for secret in secrets[1:]] + [len(raw)]
    extended_secrets = []
    for secret, next_start in zip(secrets, next_starts, strict=True):
        is_word = (
            _WORD_CHARACTERS_PATTERN.match(raw, secret.end - 1)
            and raw[secret.end - 2 : secret.end - 1] != b"\\"
        )
        if is_word:
            word_end = _WORD_CHARACTERS_PATTERN.match(raw, secret.end, max(secret.end, next_start))
        else:
            word_end = None
        extended_secrets.append(secret._replace(end=word_end.end() if word_end else secret.end))
    return extended_secrets


def _list_unescaped_variants(raw: bytes) -> tuple[str, ...]:
    """Return a secret's text with different levels of JSON escapes.

    The first text is the secret as written. For each further text, one more level of escapes is
    decoded.
    """
    texts = [raw.decode("utf-8", "replace")]
    while "\\" in texts[-1] and len(texts) < MAX_REDACTION_PASSES:
        try:
            texts.append(json.loads(f'"{texts[-1]}"', strict=False))
        except ValueError:
            break
    return tuple(texts)
