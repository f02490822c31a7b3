"""The records that a fresh child opens with: lineage for the model, a short card for the screen.

The first words are those of ``lineage_block``; form and order are here, as measured on clients
2.0.76 to 2.1.329: a summary record that only the transcript view shows, then a synthetic answer, so
that nothing is inserted between them and the next prompt.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.sessions.lineage_block import CLOSING, OPENING, shorten_block
from resume_hooks.system.text import replace_all_surrogates
from resume_hooks.transcripts.bookkeeping import CUSTOM_TITLE, label
from resume_hooks.transcripts.placeholders import UNANSWERED
from resume_hooks.transcripts.records import ASSISTANT, RESULT, SYNTHETIC_MODEL, TEXT

_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}
NEXT_STEP = "Next step, as the user put it:"
NEW_TASK = (
    "This is a new task. What stands above is known from earlier work, which is not to be "
    "gone on with."
)
REPORT = "The user's report of what was done after the mark:"
FORMER_REPORT = REPORT.replace("mark", "checkpoint")  # that of 0.2.0

BLOCK_SHARE, STEP_SHARE = 2, 3  # a lineage has at most half of the room, a next step a third
Shorter = Callable[
    [str, int], str
]  # fits what stands between lineage and next step; "" where it can't


class ChildSetting(NamedTuple):
    """Where and when a child is created: its id, folder, branch, the client's version, the instant."""

    session_id: str
    cwd: str
    branch: str
    version: str
    at: str


def opening_text(block: str, next_step: str = "", *, summary: str = "", digest: str = "") -> str:
    """What the model reads first, of what is given.

    No blank line in summary or digest hides the next step.
    """
    step = f"{NEXT_STEP}\n{next_step}" if next_step else ""
    return "\n\n".join(part for part in (block, summary, digest, step) if part)


def task_step(task: str) -> str:
    """The next step of a session that is to do something else with what is known."""
    return f"{NEW_TASK}\n{task.strip()}"


def next_step_of(text: object) -> str | None:
    """The next step in an opening of ours: ``""`` where none was given, None if ``text`` is not an opening."""
    if not isinstance(text, str) or not text.startswith(OPENING):
        return None
    _, _, after = text.partition(CLOSING)
    return after.partition(f"\n\n{NEXT_STEP}\n")[2]


def short_opening(text: str, most: int, whole: str, shorter: Shorter | None = None) -> str:
    """``text`` in ``most`` (1,000 or more) characters, ``whole`` prints the rest; ``""`` for no opening of ours."""
    step = next_step_of(text)
    if step is None or len(text) <= most:
        if step is None:
            return ""
        return text
    block, _, after = text.partition(CLOSING)
    block = shorten_block(block + CLOSING, most // BLOCK_SHARE)
    if len(step) > most // STEP_SHARE:
        step = step[: most // STEP_SHARE - 1] + "…"
    cut = f"(cut here; all of it: resume-hooks read {whole})"
    between = after.partition(f"\n\n{NEXT_STEP}\n")[0].strip("\n")
    room = most - len(opening_text(block, step, summary=f"\n{cut}"))
    if len(between) > room:
        if shorter is not None and (fitting := shorter(between, room)) and len(fitting) <= room:
            return opening_text(block, step, summary=fitting)
        between = between[: max(0, between.rfind("\n", 0, room + 1))]
    return opening_text(block, step, summary=f"{between}\n{cut}" if between else cut)


def opening_lines(setting: ChildSetting, text: str, card: str) -> list[bytes]:
    """The two chain records, user and assistant, as lines without endings."""
    return _context_lines(
        setting, None, text, card, {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    )


def closing_lines(setting: ChildSetting, parent: str | None, text: str, card: str) -> list[bytes]:
    """What is told at the end of a kept conversation, as lines without endings.

    Not marked as a summary: there clients would take it for a compaction, and leave it out of a
    partial one.
    """
    return _context_lines(setting, parent, text, card, {"isVisibleInTranscriptOnly": True})


def _context_lines(
    setting: ChildSetting, parent: str | None, text: str, card: str, marks: dict[str, bool]
) -> list[bytes]:
    """A text for the model, which the transcript view alone shows, and the card that answers it."""
    # The same child written anew keeps its ids, so that what a client may have appended meanwhile
    # still hangs on them.
    told = f"{setting.session_id}/{parent}"
    user_id, answer_id, message_id = (
        str(uuid.uuid5(uuid.NAMESPACE_OID, f"{told}/{part}")) for part in ("user", "answer", "id")
    )
    user = {
        **_envelope(setting, parent, "user", user_id),
        "message": {"role": "user", "content": text},
        **marks,
    }
    # Client 2.1.42 resumes at the latest record, and at the first of two that are equally late.
    envelope = _envelope(
        setting._replace(at=clock.add_millisecond(setting.at)), user_id, "assistant", answer_id
    )
    return [_dump(user), _dump({**envelope, "message": _card_answer(message_id, card)})]


def _card_answer(message_id: str, text: str) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": ASSISTANT,
        "model": SYNTHETIC_MODEL,
        "content": [{"type": TEXT, "text": text}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "usage": _USAGE,
    }


def spoken_line(setting: ChildSetting, parent: str, record_id: str, role: str, text: str) -> bytes:
    """A message of a conversation that was held elsewhere."""
    if role == ASSISTANT:
        message = _card_answer(f"msg_{record_id}", text)
    else:
        message = {"role": role, "content": text}
    return _dump({**_envelope(setting, parent, role, record_id), "message": message})


def lineage_line(setting: ChildSetting, parent: str | None, record_id: str, block: str) -> bytes:
    """The record that tells a child of many records where it comes from.

    The screen doesn't show it.
    """
    content = {"message": {"role": "user", "content": block}, "isMeta": True}
    return _dump({**_envelope(setting, parent, "user", record_id), **content})


def stub_line(setting: ChildSetting, parent: str | None, record_id: str, call: str) -> bytes:
    """The answer to a tool call that was never answered: without one no API takes the conversation."""
    result = {"type": RESULT, "tool_use_id": call, "content": UNANSWERED, "is_error": True}
    message = {"role": "user", "content": [result]}
    return _dump({**_envelope(setting, parent, "user", record_id), "message": message})


def title_line(session_id: str, title: str) -> bytes:
    """The record that names a session; readers look for it at the start of a line."""
    return _dump(label(CUSTOM_TITLE, title, session_id))


def _envelope(
    setting: ChildSetting, parent: str | None, kind: str, record_id: str
) -> dict[str, Any]:
    """Fields of every chain record, ``parentUuid`` first, as the client's own readers expect."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "cli",
        "cwd": setting.cwd,
        "sessionId": setting.session_id,
        "version": setting.version,
        "gitBranch": setting.branch,
        "type": kind,
        "uuid": record_id,
        "timestamp": setting.at,
    }


def _dump(record: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(record)
    except orjson.JSONEncodeError:  # a lone surrogate in a folder or a branch of the parent
        return orjson.dumps(replace_all_surrogates(record))
