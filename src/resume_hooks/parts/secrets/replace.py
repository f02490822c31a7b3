"""A file rewritten without its secrets, as a trim in place rewrites: whole or not at all, checked as read back.

The copy that it is compared with lies in a folder of its own in the state folder, and goes in any case: killed at any
point, the next scrub sweeps it. The new file is another one, so that no hard link to the old is changed.
"""

from __future__ import annotations

import contextlib
import os
import stat

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.secrets.cleaner import Cleaner
from resume_hooks.parts.secrets.contents import is_lines
from resume_hooks.parts.secrets.locations import RECORDS, Location
from resume_hooks.paths import Where, private_folder
from resume_hooks.sessions.held_links import release
from resume_hooks.storage.atomic import replace_session
from resume_hooks.storage.backups import copied
from resume_hooks.storage.state_file import MODE, sweep, temporary_in
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.invariants import Check, shape_checks
from resume_hooks.transcripts.transcript import scan

FOLDER = "scrub"
"""The folder in the state folder for copies of what is being rewritten; it is there only meanwhile."""

AGAIN = "Run the command once more."


def replace(place: Location, cleaner: Cleaner, where: Where) -> None:
    """Put a file without its secrets in its place; one that holds none stays as it is.

    OSError, WriteFailed or CheckFailed leave it as it was, unless the message says otherwise.
    """
    folder = private_folder(os.path.join(where.state, FOLDER), where)
    copy = temporary_in(folder)
    try:
        with copied(place.path, copy) as original:
            _replace(place, original, copy, cleaner, where)
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def sweep_copies(where: Where) -> None:
    """Remove the copies that a scrub which was killed left behind."""
    folder = os.path.join(where.state, FOLDER)
    if not os.path.islink(folder):
        sweep(folder)
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _replace(place: Location, original: int, copy: str, cleaner: Cleaner, where: Where) -> None:
    lines = is_lines(place.path)
    if not cleaner.finds_in(copy, lines=lines):
        return

    def check(path: str) -> None:
        os.chmod(path, MODE if place.kind in RECORDS else stat.S_IMODE(os.fstat(original).st_mode))
        clean = Check("no secret is found in it", not cleaner.finds_in(path, lines=lines))
        alike = shape_checks(scan(copy), scan(path)) if place.kind in RECORDS else []
        invariants.require([clean, *alike], place.path)

    chunks = (each.raw for each in cleaner.file(copy, lines=lines))
    release(place.path, where)  # our link would keep the secrets
    replace_session(place.path, original, copy, chunks, check)
    if cleaner.finds_in(place.path, lines=lines):
        raise WriteFailed(f"{place.path} was written to while it was rewritten, and holds secrets again", AGAIN)
