"""What each part adds to the core. ``make docs`` generates this from ``parts/<name>/__init__.py``."""

from typing import Dict, List, Tuple, Union

VERBS: Dict[str, Tuple[str, str, str]] = {
    "mark": ("marks", "Mark a point in a session, to return to it later.", "fork"),
    "back": (
        "marks",
        "Go back to the mark in a new session, with a report of what came after it.",
        "fork",
    ),
    "rehome": ("moved", "Copy every session of a moved folder to its new place.", "untrim"),
    "rewind-files": (
        "rewind_files",
        "Restore the files to their state at a message of a session.",
        "untrim",
    ),
    "export": (
        "share",
        "Write a session as a page, as Markdown, or as a bundle for import.",
        "fsck",
    ),
    "share": ("share", "Write a session to one file that a colleague can read or import.", "fsck"),
    "import": (
        "share",
        "Import a transcript from a file or standard input as a new session.",
        "fsck",
    ),
    "team": (
        "team",
        "Push, pull, resume, search and share sessions on your team's PostgreSQL.",
        "fsck",
    ),
    "scrub": (
        "secrets",
        "Remove secrets in a new child, or in place from the session and all its copies; --list shows them.",
        "doctor",
    ),
    "stats": ("stats", "Show turns, tokens and savings by month, and hook durations.", "doctor"),
}
"""Maps each verb of a part to the part, its description, and the core's verb that follows it in lists."""

FORMER_VERBS: Dict[str, Tuple[str, str]] = {
    "checkpoint": ("marks", "mark"),
    "rewind": ("marks", "back"),
    "audit": ("secrets", "scrub --list"),
}
"""Maps each former verb of a part to the part and the verb that replaces it."""

WAYS_TO_CONTINUE: Dict[str, Tuple[str, str, str]] = {
    "trim --smart": (
        "smart_trim",
        "a copy without the content that {model} considers unneeded; asking {model} costs tokens",
        "handoff",
    )
}
"""Maps the name of each part's way to continue a session to the part, the result, and the next way."""

SETTINGS: Dict[str, Tuple[str, Union[int, str], str, str, Tuple[object, ...], str]] = {
    "handoff_dir": (
        "documents",
        "",
        "The folder in which each handoff writes a document, for example _handoffs in the project; empty = off.",
        "path",
        ("", "a folder, such as _handoffs"),
        "vault",
    )
}
"""Maps the name of each setting of a part to the part and the other fields of ``part.Setting``."""

TRIGGERS: Dict[
    str, Tuple[str, str, str, str, str, str, Tuple[str, ...], str, bool, bool, bool, bool]
] = {
    "mark": (
        "marks",
        "[goal]",
        "Mark this place before you try something",
        "trigger_answers",
        "search",
        "mark [goal]           mark this place; back report: go back to the mark",
        (),
        "mark",
        False,
        True,
        False,
        False,
    ),
    "back": (
        "marks",
        "report",
        "Go back to the mark (or from a fork to its parent) in a new session that contains only a report",
        "trigger_answers",
        "search",
        "",
        (),
        "back",
        False,
        False,
        False,
        False,
    ),
}
"""Maps the name of each trigger of a part to the part and the other fields of ``seam.Trigger``."""

CHECKS: Dict[str, Tuple[str, str, str]] = {
    "copies": ("moved", "copies:check_for_duplicate_sessions", "giants"),
    "team": ("team", "answers:check_pushes", "clipboard"),
    "prompts": ("lost", "strategy:check_for_lost_prompts", "giants"),
}
"""Maps the name of each part's check for doctor to the part, the function, and the core's next check."""

AGENTS: Dict[str, Tuple[str, str, str, Tuple[str, ...], str, str, str, str, str, str, str, str]] = {
    "codex": (
        "codex",
        "CODEX_HOME",
        ".codex",
        ("sessions", "archived_sessions"),
        "rollout-\\d{4}-[\\dT-]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[0-9a-f_-]*\\.jsonl(?:\\.zst)?",
        "CODEX_THREAD_ID",
        "",
        "sessions.strategy:Codex",
        "writer:CodexWriter",
        "defects:find_thread_defects",
        "defects:is_content_loss",
        "model:CodexExec",
    ),
    "prompts": (
        "lost",
        "",
        "history.jsonl",
        (),
        "(?!)",
        "",
        "Only its prompts are left, from history.jsonl: answers, tool calls and their output are gone",
        "strategy:LostPromptsAgent",
        "",
        "",
        "",
        "",
    ),
}
"""Maps the name of each agent of a part to the part and the other fields of ``part.Agent``."""

HOSTS: Dict[str, Tuple[str, Tuple[str, ...], str]] = {
    "codex": ("codex", ("turn_id", "model"), "host:CODEX_ANSWER_FORMAT")
}
"""Maps each client of a part to the part, the fields of its events, and its ``hook_replies.Host``."""

OPTIONS: Dict[str, List[Tuple[str, Tuple[str, ...], str, str, bool]]] = {
    "trim": [
        (
            "smart_trim",
            ("--smart",),
            "Let a model choose the content that is no longer needed.",
            "verbs:smart_trim",
            True,
        ),
        (
            "smart_trim",
            ("-p", "--prompt"),
            "With --smart: what to keep or to drop, in your own words; overrides the rules.",
            "verbs:refuse_options_that_need_smart",
            False,
        ),
        (
            "smart_trim",
            ("--model",),
            "With --smart: the model to ask. Default: summary_model, or another agent's own model.",
            "verbs:refuse_options_that_need_smart",
            False,
        ),
        (
            "smart_trim",
            ("--timeout",),
            "With --smart: total time limit in seconds.",
            "verbs:refuse_options_that_need_smart",
            False,
        ),
        (
            "smart_trim",
            ("--plan",),
            "With --smart: carry out a plan that --json printed, without asking a model.",
            "verbs:refuse_options_that_need_smart",
            False,
        ),
        (
            "smart_trim",
            ("--yes",),
            "With --smart: write the child without asking you.",
            "verbs:refuse_options_that_need_smart",
            True,
        ),
    ],
    "delete": [
        (
            "moved",
            ("--other-copies",),
            "Delete all copies but one of a SESSION that is in several folders.",
            "verbs.other_copies:delete_other_copies",
            True,
        )
    ],
    "lineage": [
        (
            "team",
            ("--team",),
            "Ask the team's server for ancestors that this machine lacks.",
            "verbs.team_answer:read_team_lineage",
            True,
        )
    ],
    "search": [
        (
            "team",
            ("--team",),
            "Search the team's server instead of this machine, like `team search`.",
            "verbs.team_answer:search_team_and_print_hits",
            True,
        )
    ],
    "handoff": [
        (
            "documents",
            ("-o", "--out", "--output", "out"),
            "Also write a handoff document: a .md file, or a folder for one.",
            "requested_files:require_path_for_out_option",
            False,
        ),
        (
            "documents",
            ("--force",),
            "With --out: overwrite the file.",
            "requested_files:require_out_option_with_force",
            True,
        ),
    ],
    "sessions": [
        (
            "subagents",
            ("--subagents",),
            "List sub-agents and their tasks instead of sessions; handoff and fork accept a sub-agent's id.",
            "verbs:print_subagents",
            True,
        )
    ],
}
"""Maps each verb of the core to the options that parts add to it.

An option consists of the part, its names, its line in the help, its function, and whether it is a
flag.
"""

FUNCTIONS_BY_QUESTION: Dict[str, List[Tuple[str, str]]] = {
    "answer_smart_trim": [("smart_trim", "trigger_answers:answer_smart_trim")],
    "plan_confirmed_trim": [("smart_trim", "trigger_answers:find_confirmed_trim")],
    "line_of_trim_help": [("smart_trim", "trigger_answers:format_smart_trim_help_line")],
    "notes_after_delete": [
        ("marks", "state:remove_mark_after_delete"),
        ("team", "answers:queue_deletion_on_server"),
    ],
    "likely_folders_of_session": [("moved", "find_moved_repo:find_likely_new_folders")],
    "note_on_session": [("moved", "copies:format_copies_note")],
    "start_notice_in_new_folder": [("moved", "rehome:format_moved_folder_notice")],
    "notice_after_search_in_new_folder": [
        ("moved", "rehome:format_moved_folder_notice_after_search")
    ],
    "note_on_other_sessions": [("moved", "rehome:format_other_sessions_note")],
    "import_file": [("share", "verbs.import_:import_file")],
    "notes_after_scrub": [("team", "answers:queue_scrubbed_sessions")],
    "session_start_notice": [("team", "team_file:report_push_failure")],
    "do_work_after_start": [("team", "answers:push_unsent_sessions_if_enabled")],
    "push_session_after_turn": [("team", "background:main")],
    "find_reason_for_database_driver": [("team", "team_file:read_team")],
    "session_store": [("team", "sdk_store:PostgresSessionStore")],
    "note_on_lost_sessions": [("lost", "strategy:build_note_on_lost_sessions")],
    "make_handoff_file_writer": [("documents", "requested_files:make_document_writer")],
    "document_folders_and_extensions": [
        ("documents", "document_folders:find_document_folder_and_suffix")
    ],
    "build_note_on_written_files": [("documents", "document_folders:build_note_on_written_files")],
    "open_subagent_as_session": [("subagents", "as_session:open_subagent_as_session")],
    "answer_line_search": [("attribution", "line_search:answer_line_search")],
}
"""Maps each question to the parts and functions that answer it."""
