"""What a session starts with after ``/clear`` or a compaction, in parts: the client takes little of each hook.

The first of the hooks, ``hooks/session-start``, claims the start for its process in a note,
``parts-<session>.json``. It runs this module, which leaves all parts but the last beside that note
and writes into it how many there are. The others, ``hooks/part``, give one each to the client, in
their order, and use it up; the last is the first hook's own.

Invariant: what nobody took is taken back before the first hook ends, so that no later start finds
it, and is told of. Standard library, Python 3.9.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from resume_hooks.hooks import hook_state, reply
from resume_hooks.storage import state_file
from resume_hooks.system.text import front_units, plain_text, utf16_length
from resume_hooks.transcripts.parted_text import LONGEST, MOST, parts_of

MOST_ALONE = 4_000  # units where no other hook brings further parts: Codex has none
WAIT = 4.0  # seconds for the others to take theirs; they look 20 times a second
PAUSE = 0.02
KEPT = 600  # seconds after which notes of starts that are over are swept

END_SHARE = (
    4  # the end of a text that has to be cut has a quarter of the room: the next step stands there
)
CUT = "\n(cut here: there is no room for what stood in between)\n"
_PREFIX = "parts-"


def hand_out_start(context: str, message: str, session_id: str) -> bytes:
    """The first hook's reply once the others have theirs: ``context`` for the model, a line for the user.

    At most ``LONGEST`` units of the context are delivered; of a longer one its middle is left out.
    """
    text = plain_text(context).strip()
    note = hook_state.read_note(_start_note_name(session_id))
    if not isinstance(note.get("pid"), int):
        return reply.start_reply(cut_out_middle(text, MOST_ALONE), message)
    text = cut_out_middle(text, LONGEST)
    *others, last = parts_of(text)
    left = _hand_out(session_id, note["pid"], others) if others else []
    if left and len(left) == len(others):
        return reply.start_reply(cut_out_middle(text, MOST), message)
    missing = "".join(f"\n(Part {number} could not be delivered.)" for number in left)
    return reply.start_reply(last + missing, message)


def sweep_start_notes() -> None:
    """Remove the notes of starts that are long over."""
    hook_state.sweep_notes(_PREFIX, KEPT)


def cut_out_middle(text: str, most: int) -> str:
    """A text in ``most`` units: what does not fit is cut out of its middle, by whole lines where there are lines."""
    if utf16_length(text) <= most:
        return text
    end = front_units(text[::-1], most // END_SHARE)[::-1]
    end = end.partition("\n")[2] or end
    begin = front_units(text, most - utf16_length(end) - len(CUT))
    return f"{begin.rpartition(chr(10))[0] or begin}{CUT}{end}"


def _hand_out(session_id: str, process: int, parts: Sequence[str]) -> list[int]:
    """Let the other hooks take the parts; the numbers of those that none took."""
    names = []
    for number in range(1, len(parts) + 1):
        names.append(f"{_PREFIX}{session_id}-{number}")
    try:
        for name, part in zip(names, parts):  # noqa: B905 - 3.9 has no strict
            hook_state.consume_note(name)
            state_file.create_file(
                hook_state.note_path(name), [reply.start_reply(part, "") + b"\n"], lasting=False
            )
        # Nobody looks at them before they are counted.
        hook_state.write_note(
            _start_note_name(session_id), {"pid": process, "count": len(parts) + 1}
        )
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline and any(
            os.path.lexists(hook_state.note_path(name)) for name in names
        ):
            time.sleep(PAUSE)
    except OSError:
        for name in names:
            hook_state.consume_note(name)
        return list(range(1, len(parts) + 1))
    return [number for number, name in enumerate(names, 1) if hook_state.consume_note(name)]


def _start_note_name(session_id: str) -> str:
    return f"{_PREFIX}{session_id}.json"
