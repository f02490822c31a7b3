"""Folders that moved: where a session's folder went, copies for the new place, sessions that lie in two folders."""

from __future__ import annotations

from resume_hooks.part import Answer, Check, Option, Part, Verb

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
    checks=(Check("copies", "copies:check", before="giants"),),
    answers=(
        Answer("homes of a session", "find_moved_repo:homes"),
        Answer("notes on a session", "copies:copies_note"),
        Answer("at a start in a new folder", "rehome:start_line"),
        Answer("of a new folder", "rehome:folder_line"),
        Answer("of the others of a folder", "rehome:others"),
    ),
)
