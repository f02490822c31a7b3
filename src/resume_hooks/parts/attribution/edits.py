"""Read how a call changed files: the text of each file before and after the change.

The text before the change is known only if the records contain it. A failed call changes nothing.
The client's field ``structuredPatch`` is not used, because the client replaces tabs in it with
spaces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest.shell import (
    MAX_HERE_DOCUMENTS,
    find_start_folder,
    parse_simple_commands,
)
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, get_mapping, get_string, list_objects

_PATH_PATTERN = r"""'[^'\n]+'|"[^"$`\\\n]+"|[^\s'"$`\\*?~;&|<>()]+"""
_HEREDOC_PATTERN = re.compile(
    rf"""(?:\A|\n|;|&&)[ \t]*cat[ \t]*(?:(>>?)[ \t]*({_PATH_PATTERN}))?[ \t]*
    <<[ \t]*(['"]?)(\w{{1,80}})\3[ \t]*(?:(>>?)[ \t]*({_PATH_PATTERN}))?[ \t]*(?=\n)""",
    re.VERBOSE,
)
"""Matches the beginning of a command that writes a here-document to a file.

Other commands are ignored, because the text that they write cannot be known for certain.
"""

_SHELL_EXPANSION_PATTERN = re.compile(r"[$`\\]")
# The client's result of a Write contains this text if the Write replaced an existing file.
_UPDATED_FILE_RESULT_PHRASE = "has been updated"


class EditHunk(NamedTuple):
    """A part of a file before and after an edit. If ``is_whole_file`` is true, the part is the whole file."""

    old_text: str
    new_text: str
    is_whole_file: bool = False


class FileChange(NamedTuple):
    """The change that a call made to the file at ``path``.

    If ``is_content_unknown`` is true, the call may have overwritten a file whose text is unknown.
    """

    path: str
    hunks: tuple[EditHunk, ...]
    is_content_unknown: bool = False


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without their line endings.

    Line endings are not compared, because tools change them and records contain only line feeds.
    """
    if text:
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return []


def read_file_changes_of_call(
    call: Record, result: Record, details: Record
) -> Iterator[FileChange]:
    """Yield the files that a call has changed or read. A file that was only read has no hunks.

    ``result`` is the result block of the call, and ``details`` contains the additional fields that
    the client recorded for the result.
    """
    name, inputs = get_string(call, "name"), get_mapping(call, "input")
    if records.is_error(result):
        return
    if name == "Bash":
        yield from _read_heredoc_changes(get_string(inputs, "command"))
    elif name == "Write":
        yield _parse_write_call(
            inputs,
            details,
            replaces_existing_file=_UPDATED_FILE_RESULT_PHRASE in records.result_text(result),
        )
    elif name in {"Edit", "MultiEdit"}:
        yield FileChange(
            records.file_path_from_input(inputs), tuple(_read_edit_hunks(inputs, details))
        )
    elif name in records.READING_TOOLS:
        yield FileChange(records.file_path_from_input(inputs), ())


def _parse_write_call(
    inputs: Record, details: Record, *, replaces_existing_file: bool
) -> FileChange:
    content, original = get_string(inputs, "content"), details.get("originalFile")
    path = records.file_path_from_input(inputs)
    if isinstance(original, str):
        return FileChange(path, (EditHunk(original, content, is_whole_file=True),))
    if replaces_existing_file or details.get("type") == "update":
        # The text before the change is unknown.
        return FileChange(path, (EditHunk(content, content, is_whole_file=True),))
    return FileChange(path, (EditHunk("", content, is_whole_file=True),))


def _read_edit_hunks(inputs: Record, details: Record) -> Iterator[EditHunk]:
    """Yield the text before and after an edit.

    If the records contain the text of the whole file before the edit, yield one hunk for the whole
    file. Otherwise, yield one hunk for each part that was changed.
    """
    if isinstance(details.get("newString"), str):
        source = details
    else:
        source = inputs
    steps = [_parse_edit_step(step) for step in list_objects(inputs.get("edits"))] or [
        _parse_edit_step(source)
    ]
    original = details.get("originalFile", details.get("originalFileContents"))
    if isinstance(original, str):
        after = original
        for old, new, count in steps:
            if old not in after:
                break
            after = after.replace(old, new, count) if old else new
        else:
            yield EditHunk(original, after, is_whole_file=True)
            return
    for old, new, _ in steps:
        yield EditHunk(old, new)


class _EditStep(NamedTuple):
    """A replacement in an edit. ``max_replacements`` is -1 if the step replaces every occurrence."""

    old_text: str
    new_text: str
    max_replacements: int


def _parse_edit_step(step: Record) -> _EditStep:
    old, new = (
        get_string(step, snake) or get_string(step, camel)
        for snake, camel in _OLD_AND_NEW_TEXT_KEYS
    )
    replaces_all = step.get("replace_all") is True or step.get("replaceAll") is True
    return _EditStep(old, new, -1 if replaces_all else 1)


_OLD_AND_NEW_TEXT_KEYS = (("old_string", "oldString"), ("new_string", "newString"))


def _read_heredoc_changes(command: str) -> Iterator[FileChange]:
    for match in islice(_HEREDOC_PATTERN.finditer(command), MAX_HERE_DOCUMENTS):
        redirect_before, path_before, quote, word, redirect_after, path_after = match.groups("")
        redirect, path = redirect_before or redirect_after, (path_before or path_after).strip("'\"")
        end = f"{command}\n".find(f"\n{word}\n", match.end())
        body = command[match.end() + 1 : end + 1]
        folder = find_start_folder(parse_simple_commands(command[: match.start()]))
        if (
            redirect
            and end >= 0
            and folder is not None
            and (quote or not _SHELL_EXPANSION_PATTERN.search(body))
        ):
            yield FileChange(
                os.path.join(folder, path),
                (EditHunk("", body, is_whole_file=redirect == ">"),),
                is_content_unknown=redirect == ">",
            )
