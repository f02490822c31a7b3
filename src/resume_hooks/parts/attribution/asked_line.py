"""The line that is asked about: of a file as it is now, in which its neighbours say whether a text is its own."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from resume_hooks.errors import UsageError
from resume_hooks.parts.attribution.edits import split
from resume_hooks.paths import Where, canonical, read_regular
from resume_hooks.system.git_worktrees import project_at, root_above
from resume_hooks.system.text import counted, plain_line

LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is looked at; nobody edits a larger one by hand."""

_ASKED = re.compile(r"(.+):(\d{1,9})", re.DOTALL)
_ALL = "To see who read or wrote it, leave the line out."


class AskedLine(NamedTuple):
    """Line ``number``, from 1, of ``lines`` without their ends, in the file at ``path``, links resolved.

    ``tail`` is what every checkout of its project calls the file, ``folders`` where these lie.
    """

    path: str
    tail: str
    folders: frozenset[str]
    lines: list[str]
    number: int

    def is_named(self, recorded: str, cwd: str) -> bool:
        """Whether a path that a session recorded, working in ``cwd``, is this file, or was in a checkout that moved."""
        whole = os.path.normpath(os.path.join(cwd, recorded))
        if not os.path.isabs(whole) or canonical(whole) == self.path:
            return os.path.isabs(whole)
        root = whole.removesuffix(f"{os.sep}{self.tail}")
        if root == whole:
            return False
        return canonical(root) in self.folders or (
            f"{cwd}{os.sep}".startswith(f"{root}{os.sep}") and not os.path.isdir(root)
        )


def asked_line(given: str, cwd: str, where: Where) -> AskedLine | None:
    """The line that ``path:42`` names, seen from ``cwd``; None for a path alone. UsageError where there is none."""
    match = _ASKED.fullmatch(given)
    if match is None or os.path.lexists(os.path.join(cwd, given)):  # a colon may be part of a name
        return None
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(match[1])))
    lines, number = _lines(path), int(match[2])
    shown = plain_line(path)
    if not 0 < number <= len(lines):
        raise UsageError(f"{shown} has no line {number}", f"It has {counted(len(lines), 'line')}, counted from 1.")
    if "\ufffd" in lines[number - 1]:
        raise UsageError(f"Line {number} of {shown} is not UTF-8", f"Sessions hold no such text. {_ALL}")
    path = canonical(path)
    root = root_above(os.path.dirname(path)) or os.path.dirname(path)
    return AskedLine(path, os.path.relpath(path, root), frozenset(project_at(root, where).folders), lines, number)


def _lines(path: str) -> list[str]:
    shown = plain_line(path)
    if os.path.isdir(path):
        raise UsageError(f"{shown} is a folder, which has no lines", "Name a file in it.")
    try:
        raw = read_regular(path, LARGEST)
    except OSError as error:
        raise UsageError(f"{shown} can't be read: {error.strerror}", f"Name a file that is there. {_ALL}") from error
    if b"\0" in raw:
        raise UsageError(f"{shown} is binary, which has no lines", _ALL)
    return split(raw.decode("utf-8-sig", "replace"))
