"""Which children are being made: a note a child in the state folder, so that what a killed command left can go.

What lies beside a session is put there before its file has its name: a crash in between leaves a
folder that nobody would ever look at, a scrub's with what was to be taken out. Invariant: only what
a note of ours names goes, never where there is a session of that id.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks.paths import ENDING, Where, find_session, is_private, is_session_id
from resume_hooks.storage import removal, state_file

FOLDER = "making"
"""In the state folder; a note is ``<process>.<session id>.<project folder>``, empty."""


@contextlib.contextmanager
def claim_child(session_id: str, project: str, where: Where) -> Iterator[None]:
    """Note for the length of the block that a child is being made in a project folder.

    What was killed before goes.

    Where the state folder can't be written there is no note.
    """
    sweep_claims(where)
    folder, known = os.path.join(where.state, FOLDER), os.path.lexists(where.state)
    note = os.path.join(folder, f"{os.getpid()}.{session_id}.{project}")
    with contextlib.suppress(OSError):
        state_file.leave_mark(note, where)
    try:
        yield
    finally:
        removal.discard(note, where.state)
        with contextlib.suppress(
            OSError
        ):  # another child is being made, or something was kept beside it
            removal.remove_empty(folder, where.state)
            if not known:
                removal.remove_empty(where.state, os.path.dirname(where.state), follow_root=True)


def sweep_claims(where: Where) -> None:
    """Remove what lies beside sessions that were never made, since what made them was killed."""
    folder = os.path.join(where.state, FOLDER)
    try:
        names = os.listdir(folder) if is_private(folder, where) else []
    except OSError:
        return
    for name in names:
        process, _, rest = name.partition(".")
        session_id, _, project = rest.partition(".")
        if (
            not process.isdecimal()
            or not is_session_id(session_id)
            or state_file.process_runs(int(process))
        ):
            continue
        if find_session(session_id, where) is None and not os.path.lexists(
            os.path.join(where.projects, project, session_id + ENDING)
        ):
            removal.discard(
                os.path.join(where.projects, project, session_id), where.projects, follow_root=True
            )
            removal.discard(
                os.path.join(where.file_history, session_id), where.file_history, follow_root=True
            )
        removal.discard(os.path.join(folder, name), where.state)
