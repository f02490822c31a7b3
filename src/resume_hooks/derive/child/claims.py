"""Manage claims: files in the state folder that name the children that commands are writing.

A child's tool outputs and file backups are written before its transcript. While a child is being
written, its claim exists. If the command is killed, a later command finds the claim and deletes
what the killed command wrote. Without a claim, the folders of outputs and backups would remain
forever. If the killed command was a scrub, they could even contain secrets that the scrub had not
removed yet.

Invariant: the cleanup deletes only folders that a claim names, and never the folders of an existing
session.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    find_session,
    is_private_folder,
    is_session_id,
)
from resume_hooks.storage import removal, state_file

CLAIMS_FOLDER_NAME = "making"
"""The name of the folder for claims, inside the state folder.

A claim is an empty file with the name ``<process id>.<session id>.<project folder>``.
"""


@contextlib.contextmanager
def claim_child(session_id: str, project: str, where: Where) -> Iterator[None]:
    """Mark a child in a project folder as unfinished, until the end of the ``with`` block.

    The claim is a file in the state folder. If that folder is not writable, no claim is written.
    Before the block runs, the files that killed commands left behind are deleted.
    """
    remove_sidecars_of_killed_commands(where)
    folder, state_existed = (
        os.path.join(where.state, CLAIMS_FOLDER_NAME),
        os.path.lexists(where.state),
    )
    claim_path = os.path.join(folder, f"{os.getpid()}.{session_id}.{project}")
    with contextlib.suppress(OSError):
        state_file.create_marker(claim_path, where)
    try:
        yield
    finally:
        removal.remove_if_possible(claim_path, where.state)
        # If the folder still contains the claim of another child, it cannot be removed.
        with contextlib.suppress(OSError):
            removal.remove_empty_folder(folder, where.state)
            if not state_existed:
                removal.remove_empty_folder(
                    where.state, os.path.dirname(where.state), follow_root=True
                )


def remove_sidecars_of_killed_commands(where: Where) -> None:
    """Remove the tool outputs and file backups that killed commands wrote for unfinished children."""
    folder = os.path.join(where.state, CLAIMS_FOLDER_NAME)
    try:
        claim_names = os.listdir(folder) if is_private_folder(folder, where) else []
    except OSError:
        return
    for claim_name in claim_names:
        process, _, rest = claim_name.partition(".")
        session_id, _, project = rest.partition(".")
        if (
            not process.isdecimal()
            or not is_session_id(session_id)
            or state_file.is_process_running(int(process))
        ):
            continue
        if find_session(session_id, where) is None and not os.path.lexists(
            os.path.join(where.projects, project, session_id + TRANSCRIPT_SUFFIX)
        ):
            removal.remove_if_possible(
                os.path.join(where.projects, project, session_id), where.projects, follow_root=True
            )
            removal.remove_if_possible(
                os.path.join(where.file_history, session_id), where.file_history, follow_root=True
            )
        removal.remove_if_possible(os.path.join(folder, claim_name), where.state)
