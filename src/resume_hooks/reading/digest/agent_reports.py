"""Read the report of a sub-agent without a transcript to find out which files it changed.

A report also lists files that the sub-agent only reviewed. It is better to miss a changed file than
to list an unchanged file. So if a report is a review, only those files are listed that the
sub-agent explicitly says it wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.redaction.lazy_patterns import compile_lazily

MAX_REPORT_CHARACTERS = 20_000  # At most this many characters are read from a report.
# This many characters at the start of a report are searched for words such as "review", which show
# what kind of report it is.
MAX_REPORT_BEGINNING_CHARACTERS = 400
MAX_FILES_PER_REPORT = 40  # At most this many files are returned for a single report.

_PATH_PATTERN = r"`?\*{0,2}`?([~\w./@-]{1,200}\.\w{1,8})`?"
_CLAIMED_FILE_PATTERN = compile_lazily(
    r"\bI(?:'ve| have)?\s+(?:created|added|written|wrote|updated|modified|edited|changed|rewrote|rewritten)\s+"
    rf"(?:the\s+|a\s+|an\s+)?(?:new\s+)?(?:file\s+)?{_PATH_PATTERN}|"
    rf"\b(?:was|were|has been|have been)\s+(?:written|saved)\s+(?:to|at|in)\s+{_PATH_PATTERN}",
    re.IGNORECASE,
)
_PHRASES_CLAIMING_A_CHANGE = (
    "I've ", "I have ", " written ", " saved ", "I created", "I added", "I wrote", "I updated", "I modified",
           "I edited", "I changed", "I rewrote",
)  # fmt: skip
"""A report without any of these words does not claim that the sub-agent changed files. Searching
for the words first avoids most of the slow searches with ``_CLAIMED_FILE_PATTERN``."""

_FILE_LIST_HEADING_PATTERN = compile_lazily(
    r"[\s#*_]*(?:all\s+)?(?:files?\s+(?:i\s+)?(?:changed|modified|created|updated|edited|added|written|touched)"
    r"(?:\s*(?:/|and|or)\s*\w+)?|(?:changed|modified|created|updated|edited|new)\s+files?)\b[^\n]{0,20}",
    re.IGNORECASE,
)
_LIST_ITEM_PATTERN = compile_lazily(rf"\s*(?:[-*+•]|\d+[.)])\s+{_PATH_PATTERN}(?=[\s:,(`*]|\Z)")
_SINGLE_FILE_HEADING_PATTERN = compile_lazily(
    rf"#{{1,6}}\s+(?:\d+[.)]\s+)?{_PATH_PATTERN}\s*(?:\([^)\n]*\))?\s*\Z"
)
_REVIEW_WORD_PATTERN = compile_lazily(
    r"\b(?:review|audit|verdict|findings?|analysis)\b", re.IGNORECASE
)
_WORD_FOR_CHANGE_PATTERN = compile_lazily(
    r"\b(?:changes|simplif\w+|refactor\w*|implement\w*|fixes)\b", re.IGNORECASE
)
_AGENT_ID_PATTERN = compile_lazily(r"\n+agentId: \w+[^\n]*(?:\n<usage>[\s\S]*)?\s*\Z")


def strip_agent_id(report: str) -> str:
    """Return a report without its last lines, in which the client gives the sub-agent's id."""
    trailer_start = report.rfind("\nagentId: ")
    if trailer_start >= 0 and _AGENT_ID_PATTERN.match(report, trailer_start):
        return report[:trailer_start].rstrip()
    return report


def find_changed_files(report: str) -> Iterator[str]:
    """Yield each file that the sub-agent changed according to ``report``. No file is repeated."""
    text = report[:MAX_REPORT_CHARACTERS]
    paths: list[str] = []
    if any(claim_word in text for claim_word in _PHRASES_CLAIMING_A_CHANGE):
        paths += [first or second for first, second in _CLAIMED_FILE_PATTERN.findall(text)]
    if _REVIEW_WORD_PATTERN.search(text[:MAX_REPORT_BEGINNING_CHARACTERS]) is None:
        paths += _find_files_under_headings(text)
    yield from list(dict.fromkeys(paths))[:MAX_FILES_PER_REPORT]


def _find_files_under_headings(text: str) -> list[str]:
    """Return the files that a report names in a heading, or lists under a heading.

    For example, a report may list files under the heading "Files changed".
    """
    files: list[str] = []
    mentions_changes = (
        _WORD_FOR_CHANGE_PATTERN.search(text[:MAX_REPORT_BEGINNING_CHARACTERS]) is not None
    )
    if not mentions_changes and "files" not in text.lower():
        return []
    is_in_file_list = False
    for line in text.split("\n"):
        item = _LIST_ITEM_PATTERN.match(line)
        heading = _SINGLE_FILE_HEADING_PATTERN.match(line) if line.startswith("#") else None
        if item is not None and is_in_file_list:
            files.append(item[1])
        elif heading is not None and mentions_changes:
            files.append(heading[1])
        elif line.strip():
            is_in_file_list = (
                _FILE_LIST_HEADING_PATTERN.fullmatch(line.strip().rstrip(":*")) is not None
            )
    return files
