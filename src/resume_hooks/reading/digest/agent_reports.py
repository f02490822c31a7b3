"""The reports of sub-agents: the files that a sub-agent says it changed, for sub-agents without a transcript.

Precision comes before recall: a report also lists files that the sub-agent only reviewed. So in a
review only explicit claims to have written a file count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.redaction.lazy_patterns import compile_lazily

READ = 20_000  # the maximum characters of a report that are read
# the number of characters at the start of a report that show what kind of report it is
BEGINNING = 400
MOST_FILES = 40  # the maximum number of files from one report

_PATH = r"`?\*{0,2}`?([~\w./@-]{1,200}\.\w{1,8})`?"
_CLAIM = compile_lazily(
    r"\bI(?:'ve| have)?\s+(?:created|added|written|wrote|updated|modified|edited|changed|rewrote|rewritten)\s+"
    rf"(?:the\s+|a\s+|an\s+)?(?:new\s+)?(?:file\s+)?{_PATH}|"
    rf"\b(?:was|were|has been|have been)\s+(?:written|saved)\s+(?:to|at|in)\s+{_PATH}",
    re.IGNORECASE,
)
_CLAIMS = ("I've ", "I have ", " written ", " saved ", "I created", "I added", "I wrote", "I updated", "I modified",
           "I edited", "I changed", "I rewrote")  # fmt: skip
"""A text without any of these words claims no changes. Searching for them is fast."""

_FILES_HEADING = compile_lazily(
    r"[\s#*_]*(?:all\s+)?(?:files?\s+(?:i\s+)?(?:changed|modified|created|updated|edited|added|written|touched)"
    r"(?:\s*(?:/|and|or)\s*\w+)?|(?:changed|modified|created|updated|edited|new)\s+files?)\b[^\n]{0,20}",
    re.IGNORECASE,
)
_ROW = compile_lazily(rf"\s*(?:[-*+•]|\d+[.)])\s+{_PATH}(?=[\s:,(`*]|\Z)")
_PART = compile_lazily(rf"#{{1,6}}\s+(?:\d+[.)]\s+)?{_PATH}\s*(?:\([^)\n]*\))?\s*\Z")
_REVIEW = compile_lazily(r"\b(?:review|audit|verdict|findings?|analysis)\b", re.IGNORECASE)
_CHANGES = compile_lazily(
    r"\b(?:changes|simplif\w+|refactor\w*|implement\w*|fixes)\b", re.IGNORECASE
)
_TRAILER = compile_lazily(r"\n+agentId: \w+[^\n]*(?:\n<usage>[\s\S]*)?\s*\Z")


def without_trailer(report: str) -> str:
    """Return a report without the note that the client adds for the sub-agent's caller."""
    at = report.rfind("\nagentId: ")
    if at >= 0 and _TRAILER.match(report, at):
        return report[:at].rstrip()
    return report


def files_changed(report: str) -> Iterator[str]:
    """Yield the distinct files that the sub-agent changed according to its report."""
    text = report[:READ]
    claimed: list[str] = []
    if any(words in text for words in _CLAIMS):
        claimed += [first or second for first, second in _CLAIM.findall(text)]
    if _REVIEW.search(text[:BEGINNING]) is None:
        claimed += _files_under_headings(text)
    yield from list(dict.fromkeys(claimed))[:MOST_FILES]


def _files_under_headings(text: str) -> list[str]:
    """Return the files that are listed under a heading for changes, and the files with a section of their own."""
    files: list[str] = []
    tells_changes = _CHANGES.search(text[:BEGINNING]) is not None
    if not tells_changes and "files" not in text.lower():
        return []
    is_list = False
    for row in text.split("\n"):
        item = _ROW.match(row)
        part = _PART.match(row) if row.startswith("#") else None
        if item is not None and is_list:
            files.append(item[1])
        elif part is not None and tells_changes:
            files.append(part[1])
        elif row.strip():
            is_list = _FILES_HEADING.fullmatch(row.strip().rstrip(":*")) is not None
    return files
