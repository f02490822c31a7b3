"""Answer two hook events of Codex: the start of an automatic compaction, and the end of a turn.

Codex compacts a full session before it calls the prompt hook. Without this module, a prompt that
triggers an action of this plugin, such as a rollover, would cause a needless compaction. This module stops
the compaction, but only if the prompt is certainly a trigger. The compaction event does not contain
the prompt. However, the Codex TUI appends each prompt to ``history.jsonl`` when it sends the
prompt, and this module reads the prompt there. ``codex exec`` and other front ends do not write
this file, so their compactions are never stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable

from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import context_notice, hook_replies
from resume_hooks.hooks.prompt import is_trigger_off
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.parts.codex.sessions.strategy import AGENT_NAME
from resume_hooks.parts.codex.transcripts.lines import EVENT_LINE, MAX_ORDINAL
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import OTHER_AGENT_ROWS, readable_session
from resume_hooks.transcripts.records import (
    Record,
    get_mapping,
    get_string,
    parse_positive_count,
    parse_record,
)

# The name of a file in the folder CODEX_HOME. Each line contains a prompt, the id of its session,
# and the time of the prompt in seconds since the epoch.
PROMPT_HISTORY_FILE = "history.jsonl"
MAX_TAIL_BYTES = 256 * 1024  # Maximum number of bytes to read from the end of a file.
# The maximum number of seconds between a prompt and the start of its turn.
MAX_PROMPT_DELAY_SECONDS = 2
COMPACTION_STOP_REASON = "resume-hooks answers the prompt without a compaction"


def main(event_name: str) -> None:
    """Answer an event on stdin: ``compact`` (a compaction begins) or ``notice`` (a turn has ended).

    Print nothing if the event needs no answer, or if a file cannot be read.
    """
    event = hook_replies.read_stdin()
    if event is None:
        return
    handlers: dict[str, Callable[[hook_replies.Event], Record]] = {
        "compact": _build_compaction_reply,
        "notice": _build_turn_end_reply,
    }
    with contextlib.suppress(OSError, ResumeHooksError):
        if answer := handlers[event_name](event):
            hook_replies.write_reply(json.dumps(answer).encode())


def _build_compaction_reply(event: hook_replies.Event) -> Record:
    if is_compaction_caused_by_trigger(event, Where()):
        return {"continue": False, "stopReason": COMPACTION_STOP_REASON}
    return {}


def is_compaction_caused_by_trigger(event: hook_replies.Event, where: Where) -> bool:
    """Check whether a compaction was certainly caused by a trigger, which is a prompt for this plugin.

    This is certain only if the trigger is the session's only prompt since shortly before the start
    of the turn.
    """
    turn_start = _find_turn_start(event)
    if not turn_start:
        return False
    session_id = hook_replies.text_field(event, "session_id")
    codex_home = OTHER_AGENT_ROWS[AGENT_NAME].agent_home(where)
    prompts = []
    for line in _read_last_lines(os.path.join(codex_home, PROMPT_HISTORY_FILE)):
        if get_string(line, "session_id") == session_id:
            prompts.append(line)
    recent_prompts = []
    for line in prompts:
        if _read_epoch_seconds(line, "ts") >= turn_start - MAX_PROMPT_DELAY_SECONDS:
            recent_prompts.append(line)
    if len(recent_prompts) != 1 or recent_prompts[0] is not prompts[-1]:
        return False
    trigger = recognise_trigger(get_string(recent_prompts[0], "text"))
    return trigger is not None and not is_trigger_off(trigger.verb)


def _find_turn_start(event: hook_replies.Event) -> int:
    """Return the time in epoch seconds at which the turn started, or 0 if no trigger can have started it.

    The result is 0 in three cases: the user did not start the turn, the rollout already contains
    more than the turn's first line, or another turn began less than ``MAX_PROMPT_DELAY_SECONDS``
    before this turn. In the last case, the prompt could belong to either turn.
    """
    lines = _read_last_lines(hook_replies.text_field(event, "transcript_path"))
    last_payload = get_mapping(lines[-1], "payload") if lines else {}
    if get_string(last_payload, "type") != "task_started" or get_string(
        last_payload, "turn_id"
    ) != hook_replies.text_field(event, "turn_id"):
        return 0
    if get_string(get_mapping(last_payload, "turn_attribution"), "turn_trigger") != "user":
        return 0
    turn_start = _read_epoch_seconds(last_payload, "started_at")
    for line in lines[:-1]:
        payload = get_mapping(line, "payload")
        is_turn = (
            get_string(line, "type") == EVENT_LINE and get_string(payload, "type") == "task_started"
        )
        if (
            is_turn
            and _read_epoch_seconds(payload, "started_at") >= turn_start - MAX_PROMPT_DELAY_SECONDS
        ):
            return 0
    return turn_start


def _read_epoch_seconds(record: Record, key: str) -> int:
    return parse_positive_count(record.get(key), MAX_ORDINAL)


def _read_last_lines(path: str) -> list[Record]:
    """Return the JSON objects in the last ``MAX_TAIL_BYTES`` bytes of a file."""
    with open(path, "rb") as stream:
        file_bytes = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, file_bytes - MAX_TAIL_BYTES))
        raw = stream.read()
    complete_lines = raw.split(b"\n") if file_bytes <= MAX_TAIL_BYTES else raw.split(b"\n")[1:]
    parsed_lines = map(parse_record, complete_lines)
    return [line for line in parsed_lines if line is not None]


def _build_turn_end_reply(event: hook_replies.Event) -> Record:
    """Return a message for the user if the session's context is almost full.

    Each session gets this message only once, and sessions of ``codex exec`` never get it.
    """
    path = hook_replies.text_field(event, "transcript_path")
    if read_meta(path).source == "exec":
        return {}
    line = context_notice.claim_notice(
        hook_replies.text_field(event, "session_id"), readable_session(path, Where()).path
    )
    if line:
        return {"systemMessage": line.replace("/resume-hooks:", ">")}
    return {}
