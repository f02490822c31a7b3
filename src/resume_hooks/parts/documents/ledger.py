"""A ledger: the one line of a project's file that says which session is the current one.

Invariant: every byte outside of that line stays as it is, line ends and byte order mark included.
"""

from __future__ import annotations

import re

from resume_hooks.errors import WriteFailed
from resume_hooks.storage import project_files
from resume_hooks.transcripts.lines import BOM

KEY = b"current session:"
MAX_LEDGER = 16 * 1024 * 1024  # bytes; a larger file is something else
TRIES = 3  # how often a ledger is read again that somebody else wrote meanwhile

_LINE = re.compile(rb"(?i)(?:\xef\xbb\xbf)?[ \t]{0,60}(?:(?:[-*+]|#{1,6}|\d{1,9}[.)])[ \t]{1,60})?" + KEY)
"""The beginning of the line, in whatever case, in a list or a heading too."""


def renew(path: str, current: str) -> str:
    """Put ``current`` behind the first "current session:" of the ledger at ``path``, or at its end.

    Returns a warning if the file has several such lines, else ``""``. WriteFailed leaves the file as it was.
    """
    for tries_left in reversed(range(TRIES)):
        content, state = project_files.read_state(path, MAX_LEDGER)
        renewed, count = with_current(content, current, path)
        try:
            project_files.write(path, renewed, state)
            break
        except WriteFailed:
            if not tries_left:
                raise
    several = f"{path} has {count} lines that begin with 'current session:'; the first was renewed."
    return several if count > 1 else ""


def with_current(content: bytes, current: str, path: str) -> tuple[bytes, int]:
    """A ledger's ``content`` with its line renewed, and how many such lines it had. WriteFailed if it is no text."""
    if b"\0" in content or content.decode(errors="replace").encode() != content:
        raise WriteFailed(f"{path} is no text in UTF-8, so it was left alone", "Name another file as the ledger.")
    value = f" {current}".encode("utf-8", "replace")
    lines = content.splitlines(keepends=True)
    keys = [(number, key.end()) for number, line in enumerate(lines) if (key := _LINE.match(line))]
    if not keys:
        newline = b"\r\n" if b"\r\n" in content else b"\n"
        joint = b"" if content in (b"", BOM) or content.endswith((b"\n", b"\r")) else newline
        return content + joint + KEY + value + newline, 0
    number, end = keys[0]
    line = lines[number]
    lines[number] = line[:end] + value + line[len(line.rstrip(b"\r\n")) :]
    return b"".join(lines), len(keys)
