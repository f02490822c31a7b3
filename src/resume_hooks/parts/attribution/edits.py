"""Extract the changes that a call made to files: texts before and after, if the records contain them.

A failed call changed nothing.

The client's ``structuredPatch`` is not used, because it has spaces in place of the file's tabs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest.shell import DOCUMENTS, folder_after_cd, simple_commands
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, mapping, objects, string

_PATH = r"""'[^'\n]+'|"[^"$`\\\n]+"|[^\s'"$`\\*?~;&|<>()]+"""
_DOCUMENT = re.compile(
    rf"""(?:\A|\n|;|&&)[ \t]*cat[ \t]*(?:(>>?)[ \t]*({_PATH}))?[ \t]*
    <<[ \t]*(['"]?)(\w{{1,80}})\3[ \t]*(?:(>>?)[ \t]*({_PATH}))?[ \t]*(?=\n)""",
    re.VERBOSE,
)
"""The beginning of a command that writes a here-document to a file.

The text that other commands write is uncertain.
"""

_EXPANDED = re.compile(r"[$`\\]")
_UPDATED = "has been updated"  # in the client's answer to a Write that replaced an existing file


class Hunk(NamedTuple):
    """A part of a file before and after an edit, or the ``whole`` file if that is known."""

    before: str
    after: str
    whole: bool = False


class Change(NamedTuple):
    """The change of the file at ``path`` by a call.

    ``blind`` is true if it may have overwritten a file with unknown text.
    """

    path: str
    hunks: tuple[Hunk, ...]
    blind: bool = False


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without line ends, since tools change these and records only have line feeds."""
    if text:
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return []


def changes_of(call: Record, result: Record, details: Record) -> Iterator[Change]:
    """Yield the files that a call changed, or read (without a hunk).

    ``result`` is the result block of the call, ``details`` are the client's notes on it.
    """
    name, given = string(call, "name"), mapping(call, "input")
    if records.is_error(result):
        return
    if name == "Bash":
        yield from _changes_by_heredocs(string(given, "command"))
    elif name == "Write":
        yield _change_of_write(given, details, updated=_UPDATED in records.result_text(result))
    elif name in {"Edit", "MultiEdit"}:
        yield Change(records.file_in(given), tuple(_hunks_of_edit(given, details)))
    elif name in records.READERS:
        yield Change(records.file_in(given), ())


def _change_of_write(given: Record, details: Record, *, updated: bool) -> Change:
    content, before = string(given, "content"), details.get("originalFile")
    path = records.file_in(given)
    if isinstance(before, str):
        return Change(path, (Hunk(before, content, whole=True),))
    if updated or details.get("type") == "update":
        return Change(path, (Hunk(content, content, whole=True),))  # its new lines are unknown
    return Change(path, (Hunk("", content, whole=True),))


def _hunks_of_edit(given: Record, details: Record) -> Iterator[Hunk]:
    """Yield the whole file if its previous text is known, else each part."""
    if isinstance(details.get("newString"), str):
        own = details
    else:
        own = given
    steps = [_replacement_of_step(step) for step in objects(given.get("edits"))] or [
        _replacement_of_step(own)
    ]
    before = details.get("originalFile", details.get("originalFileContents"))
    if isinstance(before, str):
        after = before
        for old, new, count in steps:
            if old not in after:
                break
            after = after.replace(old, new, count) if old else new
        else:
            yield Hunk(before, after, whole=True)
            return
    for old, new, _ in steps:
        yield Hunk(old, new)


def _replacement_of_step(step: Record) -> tuple[str, str, int]:
    old, new = (string(step, snake) or string(step, camel) for snake, camel in _STEP)
    return old, new, -1 if step.get("replace_all") is True or step.get("replaceAll") is True else 1


_STEP = (("old_string", "oldString"), ("new_string", "newString"))


def _changes_by_heredocs(command: str) -> Iterator[Change]:
    for found in islice(_DOCUMENT.finditer(command), DOCUMENTS):
        before, to, quote, word, behind, to_behind = found.groups("")
        how, path = before or behind, (to or to_behind).strip("'\"")
        end = f"{command}\n".find(f"\n{word}\n", found.end())
        body = command[found.end() + 1 : end + 1]
        folder = folder_after_cd(simple_commands(command[: found.start()]))
        if how and end >= 0 and folder is not None and (quote or not _EXPANDED.search(body)):
            yield Change(
                os.path.join(folder, path), (Hunk("", body, whole=how == ">"),), blind=how == ">"
            )
