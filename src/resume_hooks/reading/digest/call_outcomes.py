"""How a tool call ended, as far as its answer tells: refused, never carried out, run to which end."""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.reading.digest.facts import Call, Place, Refusal, Run, Said
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, string

TELLING = 2_000
"""Characters at each end of an output that are looked at."""

_EXIT = re.compile(r"\s*(?:Error: )?Exit code (\d{1,9})\b")
_BACKGROUND = re.compile(r"Command (?:running in background|did not complete within|was manually backgrounded)")
_TASK = re.compile(r"\bID: ([\w-]{1,40})")
_NOTIFICATION = "<task-notification"
_NOTIFIED = re.compile(
    r"<task-id>([\w-]{1,40})</task-id>.*?<status>(completed|failed|killed)</status>(?:.*?\(exit code (\d{1,9})\))?",
    re.DOTALL,
)
_REJECTED = (f"{records.REJECTION} proceed with this tool use", f"{records.REJECTION} take this action right now")
_NOT_RUN = re.compile(
    r"(?:Error: )?PreToolUse:|Hook PreToolUse:|Permission to use |Claude requested permissions? to |"
    r"\w{1,40} operation blocked by hook|This command requires approval"
)
"""How the answer begins where a rule or a hook forbade the call; of recent clients its record says so too."""

_MISFIT = "<tool_use_error>"
"""How the answer begins to a call that no client could carry out."""


class Ending(NamedTuple):
    """What became of a command in the background: its ``task``, its exit status where one was told."""

    task: str
    status: int | None
    failed: bool


def is_placeholder(text: str) -> bool:
    """Whether a trim left a text in the place of contents."""
    if not text.startswith("[") and not text.endswith((" chars).", "]")):
        return False
    from resume_hooks.transcripts import placeholders  # noqa: PLC0415 - few sessions were trimmed

    return placeholders.is_placeholder(text)


def refusal(call: Call, record: Record, block: Record, text: str, place: Place) -> Refusal | None:
    """The refusal that an answer is, by the user or by a rule of the client's; None for any other answer."""
    uuid, denied = string(record, "uuid"), string(record, "toolDenialKind")
    if denied == "user-rejected" or text.startswith(_REJECTED):
        return Refusal(call, Said(text.partition("the user said:\n")[2].strip(), place, uuid), by_user=True)
    if records.is_error(block) and (denied not in {"", "interrupted"} or _NOT_RUN.match(text)):
        return Refusal(call, Said(text[:TELLING], place, uuid), by_user=False)
    return None


def run_of(call: Call, record: Record, block: Record, text: str, place: Place) -> Run | None:
    """How a shell command ended; None where it did not run, or a trim left a placeholder of it."""
    command = call.text("command")
    if not command or is_placeholder(command) or text.startswith(_MISFIT):
        return None
    more = records.tool_details(record)
    failed = records.is_error(block) or more.get("interrupted") is True or text.startswith("[Request interrupted")
    background = _is_in_background(more, text)
    told = _EXIT.match(text)
    status = int(told[1]) if told else None if failed or background else 0
    output = "" if is_placeholder(text) else text
    if len(output) > 2 * TELLING:
        output = f"{output[:TELLING]}\n{output[-TELLING:]}"
    return Run(command, call.place, place, call.folder, status, failed or bool(status), output, background)


def task_of(record: Record, text: str) -> str:
    """The id under which a command goes on in the background; ``""`` where it doesn't."""
    more = records.tool_details(record)
    if not _is_in_background(more, text):
        return ""
    found = _TASK.search(text[:TELLING])
    return string(more, "backgroundTaskId") or (found[1] if found else "")


def notified(text: str) -> Ending | None:
    """The end of a command in the background that the client told of."""
    told = _NOTIFIED.search(text[: 2 * TELLING]) if text.startswith(_NOTIFICATION) else None
    if told is None:
        return None
    worked = told[2] == "completed" and int(told[3] or 0) == 0
    return Ending(told[1], int(told[3]) if told[3] else 0 if worked else None, not worked)


def _is_in_background(more: Record, text: str) -> bool:
    return "backgroundTaskId" in more or _BACKGROUND.match(text) is not None
