"""Deliver the text after ``/clear`` or a compaction in parts, because a hook's output is limited.

The first hook, ``hooks/session-start``, writes a note ``parts-<session>.json`` with its process id
and runs this module. The module writes each part except the last to a file next to that note, and
then writes the number of parts into the note. Each of the other hooks, ``hooks/part``, prints one
part for the client and deletes its file. The first hook prints the last part.

Invariant: parts that no hook has printed are deleted before the first hook ends, so that no later
start prints them. In this case, the last part says which parts are missing. This module uses only
the standard library and must run on Python 3.9.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from resume_hooks.hooks import hook_replies, hook_state
from resume_hooks.storage import state_file
from resume_hooks.system.text import cut_to_utf16_units, plain_text, utf16_length
from resume_hooks.transcripts.parted_text import (
    MAX_TEXT_UTF16_UNITS,
    MAX_UTF16_UNITS_PER_PART,
    split_into_parts,
)

# the maximum number of UTF-16 units if no other hooks run, as in Codex
MAX_UNITS_WITHOUT_PARTS = 4_000
# the number of seconds in which the other hooks must print their parts; they look for them 20 times
# a second
MAX_WAIT_SECONDS = 4.0
POLL_SECONDS = 0.02
NOTE_LIFETIME_SECONDS = 600  # the number of seconds after which old notes are deleted

# If the middle of a text is cut out, the available characters divided by this number are kept for
# the end, which contains the next step.
KEPT_END_DIVISOR = 4
CUT_NOTICE = "\n(cut here: the middle of this text did not fit)\n"
_NOTE_PREFIX = "parts-"


def deliver_start_text(context: str, message: str, session_id: str) -> bytes:
    """Deliver a text in parts, and return the reply with the last part. Other hooks print the other parts.

    ``context`` is for the model, ``message`` for the user. If the context is longer than
    ``MAX_TEXT_UTF16_UNITS``, its middle is cut.
    """
    text = plain_text(context).strip()
    note = hook_state.read_note(_start_note_name(session_id))
    if not isinstance(note.get("pid"), int):
        return hook_replies.start_reply(remove_middle(text, MAX_UNITS_WITHOUT_PARTS), message)
    text = remove_middle(text, MAX_TEXT_UTF16_UNITS)
    *other_parts, last_part = split_into_parts(text)
    missing_numbers = (
        _offer_parts_and_list_missing_numbers(session_id, note["pid"], other_parts)
        if other_parts
        else []
    )
    if missing_numbers and len(missing_numbers) == len(other_parts):
        return hook_replies.start_reply(remove_middle(text, MAX_UTF16_UNITS_PER_PART), message)
    missing_notice = "".join(
        f"\n(Part {number} could not be delivered.)" for number in missing_numbers
    )
    return hook_replies.start_reply(last_part + missing_notice, message)


def delete_old_start_notes() -> None:
    """Delete the notes of earlier starts."""
    hook_state.delete_old_notes(_NOTE_PREFIX, NOTE_LIFETIME_SECONDS)


def remove_middle(text: str, max_units: int) -> str:
    """Return ``text``, shortened to ``max_units`` UTF-16 units by removing lines from its middle.

    A text that is short enough is returned unchanged.
    """
    if utf16_length(text) <= max_units:
        return text
    end = cut_to_utf16_units(text[::-1], max_units // KEPT_END_DIVISOR)[::-1]
    end = end.partition("\n")[2] or end
    beginning = cut_to_utf16_units(text, max_units - utf16_length(end) - len(CUT_NOTICE))
    return f"{beginning.rpartition(chr(10))[0] or beginning}{CUT_NOTICE}{end}"


def _offer_parts_and_list_missing_numbers(
    session_id: str, process_id: int, parts: Sequence[str]
) -> list[int]:
    """Write the parts for the other hooks and wait. Return the numbers of the parts that no hook printed."""
    names = []
    for number in range(1, len(parts) + 1):
        names.append(f"{_NOTE_PREFIX}{session_id}-{number}")
    try:
        for name, part in zip(names, parts):  # noqa: B905 - 3.9 has no strict
            hook_state.consume_note(name)
            state_file.create_file(
                hook_state.note_path(name), [hook_replies.start_reply(part, "") + b"\n"], sync=False
            )
        # The other hooks print nothing until the note contains the number of parts.
        hook_state.write_note(
            _start_note_name(session_id), {"pid": process_id, "count": len(parts) + 1}
        )
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while time.monotonic() < deadline and any(
            os.path.lexists(hook_state.note_path(name)) for name in names
        ):
            time.sleep(POLL_SECONDS)
    except OSError:
        for name in names:
            hook_state.consume_note(name)
        return list(range(1, len(parts) + 1))
    return [number for number, name in enumerate(names, 1) if hook_state.consume_note(name)]


def _start_note_name(session_id: str) -> str:
    return f"{_NOTE_PREFIX}{session_id}.json"
