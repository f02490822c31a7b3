"""The latest tool calls of a session with their results, for what room an opening has left.

Read backwards from the end of the file, so that it costs what is shown and not what the session holds.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import BinaryIO

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import Kind, TalkMessage
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import lines_before, open_transcript
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

RESULT = 1_500  # characters of a result; of a longer one the middle is cut
PRINTED = 700  # the same of what a command printed that worked
CHANGES = 2  # changes of one file that are shown, the latest
INPUT = 600  # characters of what a call was given
PIECE = 1 << 20  # bytes that are read at once to count lines
REACH = 24_000_000  # bytes at the end of a file that are looked through
_BRIEFLY = ("command", "file_path", "pattern", "query", "url", "prompt", "description")
_COMMITS = late(r"\bgit\b[^\n;&|]*\scommit\b")
_FAILED = ("Exit code", "Error")
_CHANGE = ("new_string", "content", "new_source")  # what a call writes into a file
_NEVER = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "ExitPlanMode", "Task", "Agent"})
"""Tools whose calls the other sections tell of."""


def latest_calls(session: SessionFile, room: int) -> list[TalkMessage]:
    """The latest calls that were answered, oldest first, within about ``room`` characters; none of a file that is gone.

    A file that was written after it was read is shown by what was written.
    """
    results: dict[str, str] = {}
    found: list[tuple[int, Record, str]] = []
    written: Counter[str] = Counter()
    is_committed = False
    try:
        with open_transcript(session.path) as stream:
            end = stream.seek(0, os.SEEK_END)
            for line in lines_before(stream, end):
                if room <= 0 or end - line.offset > REACH:
                    break
                record = records.parse(line.body) if b'"tool_' in line.raw else None
                if record is None or record.get("isSidechain") is True:
                    continue
                results |= _results_in(record)
                for block in reversed(records.calls(record)):
                    answer = results.pop(string(block, "id"), None)
                    is_committed = is_committed or _commits(block)
                    if answer is None or not _is_shown(block, written, is_committed=is_committed):
                        continue
                    text = _text(block, answer)
                    found.append((line.offset, block, text))
                    room -= len(text)
            numbers = _numbers_of(stream, sorted({offset for offset, _, _ in found}))
    except OSError:
        return []
    return [
        TalkMessage(Kind.CALL, f"{session.session_id}:{numbers[offset]}", text) for offset, _, text in reversed(found)
    ]


def _commits(block: Record) -> bool:
    """Whether a call commits: what was written before that lies in the repository."""
    return _COMMITS.search(string(records.mapping(block, "input"), "command")) is not None


def _is_shown(block: Record, written: Counter[str], *, is_committed: bool) -> bool:
    """Whether a call is shown, the later ones being looked at first; ``written`` counts the changes of files."""
    tool, path = string(block, "name"), records.file_in(records.mapping(block, "input"))
    if tool in records.WRITERS:
        written[path] += 1
        return written[path] <= CHANGES and not is_committed
    return tool not in _NEVER and not (tool in records.READERS and path in written)


def _numbers_of(stream: BinaryIO, offsets: Sequence[int]) -> dict[int, int]:
    """The 0-based lines that begin at some bytes of a file, which are given in order."""
    numbers: dict[int, int] = {}
    number = at = 0
    stream.seek(0)
    for offset in offsets:
        while at < offset:
            piece = stream.read(min(PIECE, offset - at))
            if not piece:
                return numbers
            number += piece.count(b"\n")
            at += len(piece)
        numbers[offset] = number
    return numbers


def _results_in(record: Record) -> dict[str, str]:
    return {string(block, "tool_use_id"): records.result_text(block) for block in records.results(record)}


def _text(block: Record, answer: str) -> str:
    """A call as it is shown: what it was given, and what it wrote, or what it got for an answer."""
    given = records.mapping(block, "input")
    named = next((value for key in _BRIEFLY if (value := string(given, key))), "")
    what = talk.shown(named or json.dumps(given, ensure_ascii=False), INPUT)
    head = f"{string(block, 'name')}: {what}"
    written = next((value for key in _CHANGE if (value := string(given, key))), "")
    got = written or answer  # that a file was written is said by the call: what was written tells more than the answer
    most = PRINTED if string(block, "name") == "Bash" and not got.startswith(_FAILED) else RESULT
    shown = "" if is_placeholder(got) else talk.shown(got, most)
    return f"{head}\n{'wrote' if written else 'got'}:\n{shown}" if shown else head
