"""Redact a document. Every text is redacted here once, before it is formatted.

Secrets become placeholders, home folders become ``~``, and a text that is too long is cut with a
notice. Texts are cut after they are redacted, so that no part of a secret remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from resume_hooks.paths import Where
from resume_hooks.reading.bundle import HomeFolders
from resume_hooks.reading.render import fields_text
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.transcripts.records import Record

LOOKAHEAD_CHARACTERS = 16_384
"""The number of characters after a cut that are also searched for secrets; more than any private key has."""

# up to this depth, a tool's input keeps its structure; deeper values become text
MAX_NESTING_DEPTH = 40
MAX_WORD_CHARACTERS = 500  # a longer value is not a single word that its key could mark as a secret


class ExportRedactor:
    """Redacts texts; ``removed_secrets`` counts the removed secrets by kind.

    ``cut_text_count`` is the number of texts that were cut. ``redactor`` knows the secrets found in
    the sessions, which are removed from every text. If it is None, secrets and home folders are
    kept, and ``removed_secrets`` is empty. ``max_characters`` is in characters; 0 means no limit.
    """

    def __init__(
        self,
        where: Where,
        folders: Iterable[str],
        redactor: Redactor | None,
        *,
        max_characters: int,
    ) -> None:
        self.removed_secrets: Counter[str] = Counter()
        self.cut_text_count = 0
        self._redactor = redactor
        self._max_characters = max_characters
        self._homes = HomeFolders(where, folders) if redactor else None

    def redact_and_cut_text(self, text: str) -> str:
        """Return a text without its secrets, cut to the character limit."""
        text_length = len(text)
        if not 0 < self._max_characters < text_length:
            return self._clean_text(text, self.removed_secrets)
        clean_text = self._clean_text(
            text[: self._max_characters + LOOKAHEAD_CHARACTERS], self.removed_secrets
        )
        # A secret may begin before the end of the searched text and continue after it. So no text
        # near that end is shown, even if redaction shortened the text before it.
        if text_length > self._max_characters + LOOKAHEAD_CHARACTERS:
            end_position = min(self._max_characters, len(clean_text) - LOOKAHEAD_CHARACTERS)
        else:
            end_position = self._max_characters
        if end_position >= len(clean_text):
            return clean_text
        self.cut_text_count += 1
        return f"{clean_text[: max(end_position, 0)]}\n[cut: {text_length - max(end_position, 0):,} characters more]"

    def redact_line(self, text: str) -> str:
        """Return a short text, such as a title, without its secrets. It is not cut.

        The removed secrets are not counted.

        If the text was shortened earlier, its last word is dropped, because it may be part of a
        secret that no rule recognises.
        """
        if self._redactor and text.endswith("…"):
            last_word = text.rsplit(None, 1)[-1]
            text = f"{text.removesuffix(last_word)}…"
        return self._clean_text(text, Counter())

    def _clean_text(self, text: str, removed_secrets: Counter[str]) -> str:
        if self._redactor is None or not text:
            return text
        clean_text, secrets = self._redactor.redact_and_list_secrets(text)
        removed_secrets.update(secret.kind for secret in secrets)
        if self._homes:
            return self._homes.hide_homes(clean_text)[0]
        return clean_text

    def redact_block(self, block: Record) -> Record:
        """Return a message block, or a whole message, with every text redacted."""
        redacted_block = self._redact_value(block, 0)
        if isinstance(redacted_block, dict):
            return redacted_block
        return {}

    def _redact_value(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self.redact_and_cut_text(value)
        if isinstance(value, (dict, list)) and depth > MAX_NESTING_DEPTH:
            return self.redact_and_cut_text(fields_text({"": value}))
        if isinstance(value, dict):
            if value.get("type") == "base64":  # image data; the renderer checks that it is not text
                return value
            return {
                self.redact_line(key): self._redact_field(key, inner_value, depth + 1)
                for key, inner_value in value.items()
            }
        if isinstance(value, list):
            return [self._redact_value(inner_value, depth + 1) for inner_value in value]
        return value

    def _redact_field(self, key: str, value: object, depth: int) -> object:
        """Redact a value together with its key, because a key such as ``password`` may mark the value as a secret."""
        if (
            isinstance(value, str)
            and 0 < len(value) <= MAX_WORD_CHARACTERS
            and not any(map(str.isspace, value))
        ):
            field_prefix = f"{key}="
            clean_field = self._clean_text(field_prefix + value, Counter())
            if clean_field.startswith(field_prefix) and "[secret removed" in clean_field:
                return self._clean_text(field_prefix + value, self.removed_secrets).removeprefix(
                    field_prefix
                )
        return self._redact_value(value, depth)
