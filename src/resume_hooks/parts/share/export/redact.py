"""Redact a document. This module redacts every text once, before the text is formatted.

Placeholders replace secrets, and ``~`` replaces home folders. A text that is too long is cut and
gets a notice. It is redacted before it is cut, so that no part of a secret remains at the cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from resume_hooks.paths import Where
from resume_hooks.reading.bundle import HomeFolders
from resume_hooks.reading.render import format_fields
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.transcripts.records import Record

LOOKAHEAD_CHARACTERS = 16_384
"""Number of characters after a cut that are also searched for secrets. No private key is longer
than this."""

# The maximum depth at which nested values in a tool's input keep their structure. A deeper value is
# shown as text.
MAX_NESTING_DEPTH = 40
# The value of a key such as ``password`` is a secret only if it has no more than this number of
# characters.
MAX_SECRET_CHARACTERS_AFTER_KEY = 500


class ExportRedactor:
    """Redacts texts, and counts the removed secrets by kind in ``removed_secret_counts``.

    ``redactor`` knows the secrets in the sessions and removes them from every text. If it is None,
    secrets and home folders are kept. ``max_characters`` is the maximum length of a text, or 0 for
    no limit. ``shortened_text_count`` is the number of texts that were cut.
    """

    def __init__(
        self,
        where: Where,
        folders: Iterable[str],
        redactor: Redactor | None,
        *,
        max_characters: int,
    ) -> None:
        self.removed_secret_counts: Counter[str] = Counter()
        self.shortened_text_count = 0
        self._redactor = redactor
        self._max_characters = max_characters
        self._home_folders = HomeFolders(where, folders) if redactor else None

    def redact_and_cut_text(self, text: str) -> str:
        """Return a text without secrets. If it is too long, cut it after the maximum number of characters."""
        text_length = len(text)
        if not 0 < self._max_characters < text_length:
            return self._clean_text(text, self.removed_secret_counts)
        clean_text = self._clean_text(
            text[: self._max_characters + LOOKAHEAD_CHARACTERS], self.removed_secret_counts
        )
        # The last characters of the searched text may be the first part of a secret that continues
        # after it. These characters are therefore never shown, not even if redaction has made the
        # text before them shorter.
        if text_length > self._max_characters + LOOKAHEAD_CHARACTERS:
            end_position = min(self._max_characters, len(clean_text) - LOOKAHEAD_CHARACTERS)
        else:
            end_position = self._max_characters
        if end_position >= len(clean_text):
            return clean_text
        self.shortened_text_count += 1
        return f"{clean_text[: max(end_position, 0)]}\n[cut: {text_length - max(end_position, 0):,} more characters]"

    def redact_line(self, text: str) -> str:
        """Return a short text, such as a title, without secrets. The secrets are not counted.

        The text is not cut. If it ends with an ellipsis, it has already been shortened. Its last
        word is then removed, because the word may be a part of a secret that no rule recognises.
        """
        if self._redactor and text.endswith("…"):
            last_word = text.rsplit(None, 1)[-1]
            text = f"{text.removesuffix(last_word)}…"
        return self._clean_text(text, Counter())

    def _clean_text(self, text: str, removed_secret_counts: Counter[str]) -> str:
        if self._redactor is None or not text:
            return text
        clean_text, secrets = self._redactor.redact_and_list_secrets(text)
        removed_secret_counts.update(secret.kind for secret in secrets)
        if self._home_folders:
            return self._home_folders.hide_and_count_home_folders(clean_text)[0]
        return clean_text

    def redact_block(self, block: Record) -> Record:
        """Return a content block or a whole message with every text in it redacted."""
        redacted_block = self._redact_value(block, 0)
        if isinstance(redacted_block, dict):
            return redacted_block
        return {}

    def _redact_value(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self.redact_and_cut_text(value)
        if isinstance(value, (dict, list)) and depth > MAX_NESTING_DEPTH:
            return self.redact_and_cut_text(format_fields({"": value}))
        if isinstance(value, dict):
            # The value is the data of an image. The code that writes the document checks that the
            # data is really base64.
            if value.get("type") == "base64":
                return value
            return {
                self.redact_line(key): self._redact_field(key, inner_value, depth + 1)
                for key, inner_value in value.items()
            }
        if isinstance(value, list):
            return [self._redact_value(inner_value, depth + 1) for inner_value in value]
        return value

    def _redact_field(self, key: str, value: object, depth: int) -> object:
        """Redact a value together with its key.

        Sometimes only the key, such as ``password``, shows that the value is a secret.
        """
        if (
            isinstance(value, str)
            and 0 < len(value) <= MAX_SECRET_CHARACTERS_AFTER_KEY
            and not any(map(str.isspace, value))
        ):
            field_prefix = f"{key}="
            clean_field = self._clean_text(field_prefix + value, Counter())
            if clean_field.startswith(field_prefix) and "[secret removed" in clean_field:
                return self._clean_text(
                    field_prefix + value, self.removed_secret_counts
                ).removeprefix(field_prefix)
        return self._redact_value(value, depth)
