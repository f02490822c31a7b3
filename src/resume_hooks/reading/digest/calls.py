"""The latest tool calls of a session with their results, for the room that an opening has left.

Read backwards from the end of the file, so that it costs what is shown and not what the session
holds.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import Digest, Kind, TalkMessage
from resume_hooks.reading.digest.facts import EMPTY_ANSWERS
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.lines import lines_before, open_transcript
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

RESULT = 1_500  # characters of a result; of a longer one the middle is cut
PRINTED = 700  # the same of what a command printed that worked
NEAR = 4  # times the characters that are shown of an end which are looked at there: a secret in them ends long before
CHANGES = 2  # changes of one file that are shown, the latest
TOOL, INPUT = 80, 600  # characters of the name of a tool, and of what a call was given
REACH = 24_000_000  # bytes at the end of a file that are looked through
_BRIEFLY = ("command", "file_path", "pattern", "query", "url", "prompt", "description")
_COMMITS = late(r"\bgit\b[^\n;&|]*\scommit\b")
_FAILED = ("Exit code", "Error")
_CHANGE = ("new_string", "content", "new_source")  # what a call writes into a file
_NEVER = frozenset(
    {"TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "ExitPlanMode", "Task", "Agent"}
)
"""Tools whose calls are in other sections."""


class _Answer(NamedTuple):
    """The answer to a call, and whether the call failed or was refused."""

    text: str
    is_error: bool


def latest_calls(session: SessionFile, digest: Digest, room: int) -> list[TalkMessage]:
    """The latest answered calls, oldest first, in about ``room`` characters.

    Empty for a file that is gone.

    They end where the ``digest`` does that was made of the session. A file that was written after
    it was read is shown by what was written.
    """
    results: dict[str, _Answer] = {}
    found: list[TalkMessage] = []
    written: Counter[str] = Counter()
    is_committed = False
    try:
        with open_transcript(session.file) as stream:
            end, number = digest.read_to
            for line in lines_before(stream, end):
                number -= 1
                if room <= 0 or end - line.offset > REACH:
                    break
                if b'"tool_' in line.raw:
                    record = records.parse(line.body)
                else:
                    record = None
                if (
                    record is None
                    or record.get("isSidechain") is True
                    or script_calls.is_copy_of_error(record)
                ):
                    continue
                results |= _results_in_record(record)
                for block in reversed(records.calls(record)):
                    answer = results.pop(string(block, "id"), None)
                    is_committed = is_committed or _is_commit(block)
                    if answer is None or _says_nothing(block, answer):
                        continue
                    if not _is_shown(block, written, is_committed=is_committed):
                        continue
                    text = _text_of_call(block, answer.text)
                    found.append(TalkMessage(Kind.CALL, f"{session.session_id}:{number}", text))
                    room -= len(text)
    except OSError:
        return []
    return found[::-1]


def _is_commit(block: Record) -> bool:
    """Whether a call is a commit: everything written before lies in the repository."""
    return _COMMITS.search(string(records.mapping(block, "input"), "command")) is not None


def _is_shown(block: Record, written: Counter[str], *, is_committed: bool) -> bool:
    """Whether a call is shown; later calls are decided first, and ``written`` counts their changes of files."""
    tool, path = string(block, "name"), records.file_in(records.mapping(block, "input"))
    if tool in records.WRITERS:
        written[path] += 1
        return written[path] <= CHANGES and not is_committed
    return tool not in _NEVER and not (tool in records.READERS and path in written)


def _results_in_record(record: Record) -> dict[str, _Answer]:
    return {
        string(block, "tool_use_id"): _Answer(records.result_text(block), records.is_error(block))
        for block in script_calls.results(record)
    }


def _says_nothing(block: Record, answer: _Answer) -> bool:
    """Whether a call is useless for going on: it failed to write, or searched without a hit."""
    if string(block, "name") in records.WRITERS:
        return answer.is_error
    return not answer.is_error and answer.text.strip() in _EMPTY


_EMPTY = EMPTY_ANSWERS | {
    "",
    "No matches found",
    "No files found",
    "(Bash completed with no output)",
}
"""The output of a search without a hit."""


def _text_of_call(block: Record, answer: str) -> str:
    """A call as it is shown: its input, and the text that it wrote, or its answer."""
    given = records.mapping(block, "input")
    named = next((value for key in _BRIEFLY if (value := string(given, key))), "")
    what = talk.shown_text(named or json.dumps(given, ensure_ascii=False), INPUT)
    head = f"{one_line(plain_line(string(block, 'name')), TOOL)}: {what}"
    written = next((value for key in _CHANGE if (value := string(given, key))), "")
    removed = "" if written else string(given, "old_string")
    if removed:
        return f"{head}\nremoved:\n{_both_ends_of_output(removed, RESULT)}"
    got = (
        written or answer
    )  # that a file was written is said by the call: what was written tells more than the answer
    if string(block, "name") == "Bash" and not got.startswith(_FAILED):
        most = PRINTED
    else:
        most = RESULT
    if is_placeholder(got):
        shown = ""
    else:
        shown = _both_ends_of_output(got, most)
    if shown:
        return f"{head}\n{'wrote' if written else 'got'}:\n{shown}"
    return head


def _both_ends_of_output(text: str, most: int) -> str:
    """A text as it is shown, in about ``most`` characters.

    Of a long text only the ends are read.
    """
    near = NEAR * most
    if len(text) <= 2 * near:
        return talk.shown_text(text, most)
    head = talk.beginning_of(talk.shown_text(text[:near], near), most * 2 // 3)
    tail = talk.ending_of(talk.shown_text(text[-near:], near), most // 3)
    left = len(text) - len(head) - len(tail)
    return "\n".join(part for part in (head, f"[... {left:,} characters ...]", tail) if part)
