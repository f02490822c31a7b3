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

LOOKAHEAD = 16_384
"""The number of characters after a cut that are also searched for secrets; more than any private key has."""

# the depth up to which a tool's input keeps its structure; deeper values become text
MAX_DEPTH = 40
WORD_LENGTH = 500  # the maximum length of a word that its key may mark as a secret


class ExportRedactor:
    """Redacts texts; ``left_out`` counts the removed secrets by kind, and ``cut`` counts the texts that were cut.

    ``redactor`` knows the secrets found in the sessions, which are removed from every text. If it
    is None, secrets and home folders are kept, and ``left_out`` is empty. ``limit`` is in
    characters; 0 means no limit.
    """

    def __init__(
        self, where: Where, folders: Iterable[str], redactor: Redactor | None, *, limit: int
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self.cut = 0
        self._redactor = redactor
        self._limit = limit
        self._homes = HomeFolders(where, folders) if redactor else None

    def export_text(self, text: str) -> str:
        """Return a redacted text, cut to the character limit."""
        length = len(text)
        if not 0 < self._limit < length:
            return self._clean_text(text, self.left_out)
        clean = self._clean_text(text[: self._limit + LOOKAHEAD], self.left_out)
        # A secret may begin before the end of the searched text and continue after it. So no text
        # near that end is shown, even if redaction shortened the text before it.
        if length > self._limit + LOOKAHEAD:
            end = min(self._limit, len(clean) - LOOKAHEAD)
        else:
            end = self._limit
        if end >= len(clean):
            return clean
        self.cut += 1
        return f"{clean[: max(end, 0)]}\n[cut: {length - max(end, 0):,} characters more]"

    def export_line(self, text: str) -> str:
        """Return a short text, such as a title, redacted but not cut. The text also appears elsewhere.

        The removed secrets are not counted.

        If the text was shortened earlier, its last word is dropped, because it may be part of a
        secret that no rule recognises.
        """
        if self._redactor and text.endswith("…"):
            last = text.rsplit(None, 1)[-1]
            text = f"{text.removesuffix(last)}…"
        return self._clean_text(text, Counter())

    def _clean_text(self, text: str, left_out: Counter[str]) -> str:
        if self._redactor is None or not text:
            return text
        clean, secrets = self._redactor.redact_and_list_secrets(text)
        left_out.update(secret.kind for secret in secrets)
        if self._homes:
            return self._homes.hide_homes(clean)[0]
        return clean

    def export_block(self, block: Record) -> Record:
        """Return a message block, or a whole message, with all texts redacted."""
        redacted = self._export_value(block, 0)
        if isinstance(redacted, dict):
            return redacted
        return {}

    def _export_value(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self.export_text(value)
        if isinstance(value, (dict, list)) and depth > MAX_DEPTH:
            return self.export_text(fields_text({"": value}))
        if isinstance(value, dict):
            if value.get("type") == "base64":  # image data; the renderer checks that it is not text
                return value
            return {
                self.export_line(key): self._export_field(key, inner, depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self._export_value(inner, depth + 1) for inner in value]
        return value

    def _export_field(self, key: str, value: object, depth: int) -> object:
        """Redact a value together with its key, because a key such as ``password`` may mark the value as a secret."""
        if (
            isinstance(value, str)
            and 0 < len(value) <= WORD_LENGTH
            and not any(map(str.isspace, value))
        ):
            beginning = f"{key}="
            clean = self._clean_text(beginning + value, Counter())
            if clean.startswith(beginning) and "[secret removed" in clean:
                return self._clean_text(beginning + value, self.left_out).removeprefix(beginning)
        return self._export_value(value, depth)
