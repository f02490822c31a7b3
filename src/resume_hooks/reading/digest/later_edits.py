"""Find out how much of an edit's text is left after later edits of the same file.

The client replaces a text only if it occurs once in the file. So if an earlier edit wrote a text
that contains the old text of a later edit, the later edit replaced this part of it.
"""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, get_string

# The minimum number of characters in a replaced text. A shorter text may occur by chance.
MIN_REPLACED_CHARACTERS = 20
# If a later edit wrote more than this fraction of the changed text, only the later edit is shown.
MAX_REPLACED_TEXT_FRACTION = 0.6
MAX_REPLACEMENTS = 300  # At most this many later replacements are applied to one text.
# Search at most this many positions in a text for an overlap with a later edit.
MAX_OVERLAP_POSITIONS_TRIED = 5
OMITTED_ROW = "[...]"  # The line between the texts of two edits in one call.

# The inputs of a call that contain the text to write.
_WRITTEN_TEXT_INPUT_NAMES = ("new_string", "content", "new_source")


class _Replacement(NamedTuple):
    old_text: str
    new_text: str
    replaces_all: bool


class LaterEdits:
    """The replacements that later edits made. The edits are added from the last one to the first."""

    def __init__(self) -> None:
        self._replacements: dict[str, list[_Replacement]] = {}

    def add_edit(self, inputs: Record) -> None:
        """Add an edit, which must be older than all edits that have been added so far."""
        replacements = self._replacements.setdefault(records.file_path_from_input(inputs), [])
        for edit in reversed(list_edits(inputs)):
            old_text = get_string(edit, "old_string")
            if old_text and len(replacements) < MAX_REPLACEMENTS:
                replacements.append(
                    _Replacement(
                        old_text, get_string(edit, "new_string"), edit.get("replace_all") is True
                    )
                )

    def find_current_text(self, inputs: Record) -> str:
        """Return what later edits left of the text that a call wrote, or ``""`` if they left little of it."""
        replacements = self._replacements.get(records.file_path_from_input(inputs), [])
        edit_texts: list[str] = []
        for edit in list_edits(inputs):
            text = _find_edit_text(edit)
            for replacement in reversed(replacements):
                text = _apply_replacement(text, replacement)
            edit_texts.append(text)
        return _join_edit_texts(edit_texts)


def find_written_text(inputs: Record) -> str:
    """Return the text that a call wrote into a file, or ``""``."""
    return _join_edit_texts([_find_edit_text(edit) for edit in list_edits(inputs)])


def _join_edit_texts(edit_texts: list[str]) -> str:
    """Join the texts of one call's edits, without empty texts."""
    return f"\n{OMITTED_ROW}\n".join(filter(None, edit_texts))


def find_replaced_text(inputs: Record) -> str:
    """Return the text that a call replaced or removed, or ``""``."""
    return _join_edit_texts([get_string(edit, "old_string") for edit in list_edits(inputs)])


def find_removed_lines(inputs: Record) -> str:
    """Return the lines that a call's edits deleted without a replacement, or ``""``.

    An edit is ignored if it also wrote a new line or deleted its whole old text.
    """
    removed: list[str] = []
    for edit in list_edits(inputs):
        written_lines = get_string(edit, "new_string").splitlines()
        old_lines = get_string(edit, "old_string").splitlines()
        if written_lines and set(written_lines) <= set(old_lines):
            removed += [line for line in old_lines if line not in written_lines]
    return "\n".join(removed)


def list_edits(inputs: Record) -> list[Record]:
    """Return the edits of a call. If the call contains no list of edits, its inputs are the only edit."""
    return records.list_objects(inputs.get("edits")) or [inputs]


def _find_edit_text(edit: Record) -> str:
    for key in _WRITTEN_TEXT_INPUT_NAMES:
        if text := get_string(edit, key):
            return text
    return ""


def _apply_replacement(text: str, replacement: _Replacement) -> str:
    """Apply a later replacement to a text. Return ``""`` if little of the text remains."""
    if replacement.old_text in text:
        count = -1 if replacement.replaces_all else 1
        changed_text = text.replace(replacement.old_text, replacement.new_text, count)
        if len(replacement.new_text) > len(changed_text) * MAX_REPLACED_TEXT_FRACTION:
            return ""  # The later edit shows almost the same text.
        return changed_text
    stripped = text.strip()
    if len(stripped) >= MIN_REPLACED_CHARACTERS and stripped in replacement.old_text:
        return ""
    return _remove_replaced_ending(text, replacement)


def _remove_replaced_ending(text: str, replacement: _Replacement) -> str:
    """Cut off the end of a text if a later edit replaced that end and what followed it in the file.

    If the edit left the first lines of the replaced part unchanged, these lines are kept.
    """
    start = _find_overlap_start(text, replacement.old_text)
    if start is None:
        return text
    old_lines = text[start:].splitlines(keepends=True)
    new_lines = replacement.new_text.splitlines(keepends=True)
    kept_lines: list[str] = []
    for old_line, new_line in zip(old_lines, new_lines, strict=False):
        if old_line != new_line:
            break
        kept_lines.append(old_line)
    if len(kept_lines) == len(old_lines):
        return text
    kept_text = text[:start] + "".join(kept_lines)
    if len(kept_text) < len(text) * (1 - MAX_REPLACED_TEXT_FRACTION):
        return ""
    return f"{kept_text.rstrip()}\n{OMITTED_ROW}"


def _find_overlap_start(text: str, later_text: str) -> int | None:
    """Return the index from which ``text`` equals the start of ``later_text``, or None."""
    beginning = later_text[:MIN_REPLACED_CHARACTERS]
    if not beginning.strip():
        return None
    start = text.find(beginning)
    for _ in range(MAX_OVERLAP_POSITIONS_TRIED):
        if start < 0 or len(text[start:].strip()) < MIN_REPLACED_CHARACTERS:
            break  # Such a short overlap may be a coincidence.
        if later_text.startswith(text[start:]):
            return start
        start = text.find(beginning, start + 1)
    return None
