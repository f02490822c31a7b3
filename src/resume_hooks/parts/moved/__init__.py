"""Find the new path of a moved folder, copy sessions to it, and handle sessions in several folders."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Check, Option, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "rehome",
            "Copy every session of a moved folder to its new place.",
            insert_before="untrim",
        ),
    ),
    options=(
        Option(
            "delete",
            ("--other-copies",),
            "Delete all copies but one of a SESSION that is in several folders.",
            "verbs.other_copies:delete_other_copies",
        ),
    ),
    checks=(Check("copies", "copies:check_for_duplicate_sessions", insert_before="giants"),),
    answers=(
        Answer(questions.likely_folders_of_session, "find_moved_repo:find_likely_new_folders"),
        Answer(questions.note_on_session, "copies:format_copies_note"),
        Answer(questions.start_notice_in_new_folder, "rehome:format_moved_folder_notice"),
        Answer(
            questions.notice_after_search_in_new_folder,
            "rehome:format_moved_folder_notice_after_search",
        ),
        Answer(questions.note_on_other_sessions, "rehome:format_other_sessions_note"),
    ),
)
