"""Folders that moved: where that of a session went, copies for its new place, sessions that lie in two folders."""

from __future__ import annotations

from resume_hooks.seam import HOMES, NEW_FOLDER, NEW_FOLDER_LINE, SESSION_NOTE, Answer, Check, Option, Part, Verb

PART = Part(
    verbs=(Verb("rehome", "Give every session of a folder that moved a copy in its new place.", before="untrim"),),
    options=(
        Option(
            "delete",
            ("--other-copies",),
            "Of a SESSION in several folders: all copies but one.",
            "verbs.other_copies:delete_others",
        ),
    ),
    checks=(Check("copies", "checks:check", before="giants"),),
    answers=(
        Answer(HOMES, "find_moved_repo:homes"),
        Answer(SESSION_NOTE, "copies:copies_note"),
        Answer(NEW_FOLDER_LINE, "moved_folder:line"),
        Answer(NEW_FOLDER, "moved_folder:answer"),
    ),
)
