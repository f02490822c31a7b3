"""Puts files back as a plan says, once: copies first, then each file whole, none that changed since it was looked at.

A crash leaves every file as it was or as it is to be, and the copies with their manifest. Ctrl+C lets the file at hand
be finished.
"""

from __future__ import annotations

import contextlib
import os
import shutil

from resume_hooks.errors import Interrupted, WriteFailed
from resume_hooks.parts.rewind_files import plan
from resume_hooks.parts.rewind_files.backup import back_up
from resume_hooks.parts.rewind_files.plan import Change, FilesPlan
from resume_hooks.paths import Where
from resume_hooks.storage import project_files, safe_tree
from resume_hooks.storage.state_file import sweep
from resume_hooks.system.capture import ending_signals


def write(decided: FilesPlan, where: Where) -> str:
    """Put the files back; the folder with copies of what they replaced.

    WriteFailed and Interrupted say how far it came; what was done by then has its copies all the same.
    """
    root = decided.root.real
    try:
        with safe_tree.opened(root) as top:
            return _write(decided, top, where)
    except OSError as error:
        raise project_files.refused(root, error) from error


def _write(decided: FilesPlan, top: int, where: Where) -> str:
    root = decided.root.real
    kept = back_up(decided, top, where)
    done = 0
    with ending_signals() as ended:
        for folder in {os.path.dirname(os.path.join(root, change.place.path)) for change in decided.wanted}:
            sweep(folder)
        try:
            for change in decided.wanted:
                if ended.is_set():
                    raise Interrupted(*_how_far(decided, kept, done, "it was interrupted"))
                _apply(root, top, change)
                done += 1
        except (OSError, WriteFailed) as error:
            raise WriteFailed(*_how_far(decided, kept, done, plan.reason(error))) from error
    for folder in sorted(decided.folders, key=len, reverse=True):
        _remove_folder(decided, top, folder)
    return kept


def _apply(root: str, top: int, change: Change) -> None:
    path = os.path.join(root, change.place.path)
    with safe_tree.folder(top, change.place.parts[:-1], make=change.action == "create") as within:
        if change.source is None or change.after is None:
            if change.over is not None:
                project_files.remove(path, change.over, within)
            return
        content, _ = plan.taken(change.source)
        if plan.version_of(content, change.after.mode) != change.after:
            raise WriteFailed(f"The backup of {change.place.path} changed while it was looked at")
        same = change.before is not None and change.before.mode == change.after.mode
        # None: the file's own mode, with its set-group-id bit and the like, which no backup brings.
        mode = None if same else change.after.mode
        project_files.write(path, content, change.over, mode=mode, within=within)


def _how_far(decided: FilesPlan, kept: str, done: int, why: str) -> tuple[str, str]:
    """How far it came and what to do about it. Copies of nothing that was lost go again."""
    if not done:
        shutil.rmtree(kept, ignore_errors=True)
    undo = f"resume-hooks rewind-files {decided.session_id} --undo takes them back; copies are in {kept}."
    return (
        f"{done:,} of {len(decided.wanted):,} files were put back, then: {why}",
        undo if done else "No file was changed. Run the command again.",
    )


def _remove_folder(decided: FilesPlan, top: int, folder: str) -> None:
    """Remove a folder that was made for a file that is gone again, if nothing else is in it."""
    place = decided.root.place(folder)
    if place.parts:
        with contextlib.suppress(OSError, WriteFailed), safe_tree.folder(top, place.parts[:-1]) as within:
            os.rmdir(place.parts[-1], dir_fd=within)
