"""The latest tool calls of a session with their results, for what room an opening has left.

Read backwards from the end of the file, so that it costs what is shown and not what the session holds.
"""

from __future__ import annotations

import json

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import Kind, TalkMessage
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import lines_before, open_transcript
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

RESULT = 1_500  # characters of a result; of a longer one the middle is cut
INPUT = 600  # characters of what a call was given
REACH = 24_000_000  # bytes at the end of a file that are looked through
_BRIEFLY = ("command", "file_path", "pattern", "query", "url", "prompt", "description")
_CHANGE = ("new_string", "content", "new_source")  # what a call writes into a file
_NEVER = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "ExitPlanMode", "Task", "Agent"})
"""Tools whose calls the other sections tell of."""


def latest_calls(session: SessionFile, room: int) -> list[TalkMessage]:
    """The latest calls that were answered, oldest first, within about ``room`` characters; none of a file that is gone.

    A record is named by the byte at which its line begins, ``<session>:@<offset>``: counting lines would take reading
    all of them.
    """
    results: dict[str, str] = {}
    found: list[TalkMessage] = []
    try:
        with open_transcript(session.path) as stream:
            end = stream.seek(0, 2)
            for line in lines_before(stream, end):
                if room <= 0 or end - line.offset > REACH:
                    break
                record = records.parse(line.body) if b'"tool_' in line.raw else None
                if record is None or record.get("isSidechain") is True:
                    continue
                results |= _results_in(record)
                for block in reversed(records.calls(record)):
                    answer = results.pop(string(block, "id"), None)
                    if answer is not None and string(block, "name") not in _NEVER:
                        found.append(_message(block, answer, f"{session.session_id}:@{line.offset}"))
                        room -= len(found[-1].text)
    except OSError:
        return []
    return found[::-1]


def _results_in(record: Record) -> dict[str, str]:
    return {string(block, "tool_use_id"): records.result_text(block) for block in records.results(record)}


def _message(block: Record, answer: str, ref: str) -> TalkMessage:
    given = records.mapping(block, "input")
    named = next((value for key in _BRIEFLY if (value := string(given, key))), "")
    what = talk.shown(named or json.dumps(given, ensure_ascii=False), INPUT)
    written = next((value for key in _CHANGE if (value := string(given, key))), "")
    # That a file was written is said by the call: what was written tells more than the answer.
    result = talk.shown(written or answer, RESULT) if not is_placeholder(written or answer) else ""
    return TalkMessage(Kind.CALL, ref, f"{string(block, 'name')}: {what}\n-> {result}".rstrip("-> \n"))
