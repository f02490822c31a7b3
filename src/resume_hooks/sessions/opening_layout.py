"""Make the two records at the start of a fresh child.

The records contain the lineage for the model and a short card for the screen. ``lineage_block``
writes the lineage. This module defines the form and the order of the records, which were tested
with clients 2.0.76 to 2.1.329. The first record is a summary, which the client shows only in its
transcript view. The second is a synthetic answer. Without this answer, the client would insert its
own records between the summary and the next prompt.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.sessions.lineage_block import (
    LINEAGE_END_MARKER,
    LINEAGE_START_MARKER,
    shorten_lineage_block,
)
from resume_hooks.system.text import replace_all_surrogates
from resume_hooks.transcripts.metadata_records import CUSTOM_TITLE, make_label_record
from resume_hooks.transcripts.placeholders import MISSING_RESULT_TEXT
from resume_hooks.transcripts.records import ASSISTANT, RESULT, SYNTHETIC_MODEL, TEXT

_ZERO_USAGE = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}
NEXT_STEP_HEADING = "Next step, as the user put it:"
NEW_TASK_NOTICE = "This is a new task. Everything above is background from earlier work. Do not continue that work."
REPORT_HEADING = "The user's report of what was done after the mark:"
FORMER_REPORT_HEADING = REPORT_HEADING.replace("mark", "checkpoint")  # the heading in version 0.2.0

# Divisors of the opening's maximum length: the lineage may have at most half of it, and the next
# step at most a third.
BLOCK_DIVISOR, STEP_DIVISOR = 2, 3
TextShortener = Callable[
    [str, int], str
    # A function that shortens the part of an opening between the lineage and the next step. It
    # takes the part and the maximum number of characters, and returns "" if the part can't be made
    # that short.
]


class ChildAttributes(NamedTuple):
    """The values that all records of a new child have in common.

    ``created_at`` is the time at which the child is created. ``version`` is the client's version.
    """

    session_id: str
    cwd: str
    branch: str
    version: str
    created_at: str


def opening_text(
    lineage_block: str, next_step: str = "", *, summary: str = "", digest: str = ""
) -> str:
    """Join the texts that the model reads first. Empty texts are left out."""
    step = f"{NEXT_STEP_HEADING}\n{next_step}" if next_step else ""
    return "\n\n".join(part for part in (lineage_block, summary, digest, step) if part)


def make_new_task_step(task: str) -> str:
    """Return the next step for a new task for which the earlier work is only background."""
    return f"{NEW_TASK_NOTICE}\n{task.strip()}"


def extract_next_step(text: object) -> str | None:
    """Return the next step in an opening that we wrote, or ``""`` if the opening has none.

    Return None if ``text`` is not such an opening.
    """
    if not isinstance(text, str) or not text.startswith(LINEAGE_START_MARKER):
        return None
    _, _, text_after_block = text.partition(LINEAGE_END_MARKER)
    return text_after_block.partition(f"\n\n{NEXT_STEP_HEADING}\n")[2]


def shorten_opening(
    text: str, max_characters: int, full_reference: str, shorten_text: TextShortener | None = None
) -> str:
    """Shorten an opening to ``max_characters`` (at least 1,000), and add a reference to its full text.

    ``shorten_text`` shortens the part between the lineage and the next step. Return ``""`` if
    ``text`` is not an opening.
    """
    step = extract_next_step(text)
    if step is None or len(text) <= max_characters:
        if step is None:
            return ""
        return text
    block, _, text_after_block = text.partition(LINEAGE_END_MARKER)
    block = shorten_lineage_block(block + LINEAGE_END_MARKER, max_characters // BLOCK_DIVISOR)
    if len(step) > max_characters // STEP_DIVISOR:
        step = step[: max_characters // STEP_DIVISOR - 1] + "…"
    cut_notice = f"(cut here; all of it: resume-hooks read {full_reference})"
    middle = text_after_block.partition(f"\n\n{NEXT_STEP_HEADING}\n")[0].strip("\n")
    max_middle_characters = max_characters - len(
        opening_text(block, step, summary=f"\n{cut_notice}")
    )
    if len(middle) > max_middle_characters:
        if (
            shorten_text is not None
            and (shortened := shorten_text(middle, max_middle_characters))
            and len(shortened) <= max_middle_characters
        ):
            return opening_text(block, step, summary=shortened)
        middle = middle[: max(0, middle.rfind("\n", 0, max_middle_characters + 1))]
    return opening_text(block, step, summary=f"{middle}\n{cut_notice}" if middle else cut_notice)


def opening_lines(attributes: ChildAttributes, text: str, card: str) -> list[bytes]:
    """Return the two records of an opening as JSON lines without newlines.

    The user's record contains the text for the model, and the assistant's record contains the card.
    """
    return _context_lines(
        attributes, None, text, card, {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    )


def closing_lines(
    attributes: ChildAttributes, parent: str | None, text: str, card: str
) -> list[bytes]:
    """Return the two records at the end of a copied conversation as JSON lines without newlines.

    The records are not marked as a summary, because the client would treat a summary as a
    compaction. The client would also leave a summary out when it compacts a part of the
    conversation.
    """
    return _context_lines(attributes, parent, text, card, {"isVisibleInTranscriptOnly": True})


def _context_lines(
    attributes: ChildAttributes, parent: str | None, text: str, card: str, flags: dict[str, bool]
) -> list[bytes]:
    """Return two records: first the text for the model, then the card for the user.

    The client shows the text only in its transcript view.
    """
    # The ids of the records depend only on the child. If the child is written again, its records
    # have the same ids, so the records that a client has appended still have valid parents.
    id_seed = f"{attributes.session_id}/{parent}"
    user_id, answer_id, message_id = (
        str(uuid.uuid5(uuid.NAMESPACE_OID, f"{id_seed}/{part}"))
        for part in ("user", "answer", "id")
    )
    user = {
        **_common_chain_fields(attributes, parent, "user", user_id),
        "message": {"role": "user", "content": text},
        **flags,
    }
    # Client 2.1.42 resumes at the record with the latest time, or at the first of several records
    # with this time. The card gets a later time than the text, so that the client resumes at the
    # card.
    envelope = _common_chain_fields(
        attributes._replace(created_at=clock.add_millisecond(attributes.created_at)),
        user_id,
        "assistant",
        answer_id,
    )
    return [
        _encode_record(user),
        _encode_record({**envelope, "message": _make_card_answer(message_id, card)}),
    ]


def _make_card_answer(message_id: str, text: str) -> dict[str, Any]:
    return {
        "id": message_id,
        "type": "message",
        "role": ASSISTANT,
        "model": SYNTHETIC_MODEL,
        "content": [{"type": TEXT, "text": text}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "usage": _ZERO_USAGE,
    }


def message_line(
    attributes: ChildAttributes, parent: str, record_id: str, role: str, text: str
) -> bytes:
    """Return a message from another program's conversation as a JSON line without a newline."""
    if role == ASSISTANT:
        message = _make_card_answer(f"msg_{record_id}", text)
    else:
        message = {"role": role, "content": text}
    return _encode_record(
        {**_common_chain_fields(attributes, parent, role, record_id), "message": message}
    )


def lineage_line(
    attributes: ChildAttributes, parent: str | None, record_id: str, block: str
) -> bytes:
    """Return the record that contains the lineage block in a child with many records.

    The client does not display the record.
    """
    content = {"message": {"role": "user", "content": block}, "isMeta": True}
    return _encode_record(
        {**_common_chain_fields(attributes, parent, "user", record_id), **content}
    )


def missing_result_line(
    attributes: ChildAttributes, parent: str | None, record_id: str, call_id: str
) -> bytes:
    """Return a record with an error result for a tool call that has no result.

    The API rejects a conversation that contains a call without a result.
    """
    result = {
        "type": RESULT,
        "tool_use_id": call_id,
        "content": MISSING_RESULT_TEXT,
        "is_error": True,
    }
    message = {"role": "user", "content": [result]}
    return _encode_record(
        {**_common_chain_fields(attributes, parent, "user", record_id), "message": message}
    )


def title_line(session_id: str, title: str) -> bytes:
    """Return the record that sets a session's title, as a JSON line without a newline."""
    return _encode_record(make_label_record(CUSTOM_TITLE, title, session_id))


def _common_chain_fields(
    attributes: ChildAttributes, parent: str | None, kind: str, record_id: str
) -> dict[str, Any]:
    """Return the fields that every record of a conversation has.

    ``parentUuid`` comes first, as the client's own readers expect.
    """
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "cli",
        "cwd": attributes.cwd,
        "sessionId": attributes.session_id,
        "version": attributes.version,
        "gitBranch": attributes.branch,
        "type": kind,
        "uuid": record_id,
        "timestamp": attributes.created_at,
    }


def _encode_record(record: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(record)
    except orjson.JSONEncodeError:  # The parent's folder or branch contains an unpaired surrogate.
        return orjson.dumps(replace_all_surrogates(record))
