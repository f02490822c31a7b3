"""A ledger: the one line of a project's file that says which session is the current one.

Invariant: every byte outside of that line stays as it is, line ends and byte order mark included.
"""

from __future__ import annotations

import re

from resume_hooks.errors import WriteFailed
from resume_hooks.storage import project_files
from resume_hooks.transcripts.lines import BOM

KEY = b"current session:"
LARGEST = 16 * 1024 * 1024  # bytes of a ledger; a larger file is something else
TRIES = 3  # how often a ledger is read anew that somebody else wrote meanwhile

_MARK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t]*(?:(?:[-*+]|#{1,6}|\d{1,9}[.)])[ \t]+)?")
_LONGEST_MARK = 64  # bytes before the key on its line; more is no mark of a list or a heading


def renew(path: str, current: str) -> str:
    """Put ``current`` behind the first "current session:" of the ledger at ``path``, or at its end.

    Returns a warning where the file has several such lines, else ``""``. WriteFailed leaves the file as it was.
    """
    for tries_left in reversed(range(TRIES)):
        content, state = project_files.read_state(path, LARGEST)
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
    """A ledger's ``content`` with its line renewed, and how many such lines it had. WriteFailed for what is no text."""
    if b"\0" in content or not _is_utf8(content):
        raise WriteFailed(f"{path} is no text in UTF-8, so it was left alone", "Name another file as the ledger.")
    told = f" {current}".encode("utf-8", "replace")
    keys = _keys(content)
    if not keys:
        newline = b"\r\n" if b"\r\n" in content else b"\n"
        joint = b"" if content in (b"", BOM) or content.endswith((b"\n", b"\r")) else newline
        return content + joint + KEY + told + newline, 0
    start = keys[0] + len(KEY)
    ends = [end for end in (content.find(b"\n", start), content.find(b"\r", start)) if end >= 0]
    return content[:start] + told + content[min(ends, default=len(content)) :], len(keys)


def _keys(content: bytes) -> list[int]:
    """Where the key stands at the beginning of a line, whatever its case, behind a mark or not."""
    lowered, found, at = content.lower(), [], -1
    while (at := lowered.find(KEY, at + 1)) >= 0:
        before = content[max(0, at - _LONGEST_MARK) : at]
        line = max(before.rfind(b"\n"), before.rfind(b"\r")) + 1
        if (line or len(before) == at) and _MARK.fullmatch(before[line:]):
            found.append(at)
    return found


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
