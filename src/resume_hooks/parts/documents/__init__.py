"""Documents: what a handoff writes into a project if the user asked for it.

No session that goes on reads one: they are for people, and for programs other than our own engine.
"""

from __future__ import annotations

from resume_hooks.part import Answer, Option, Part, Setting

PART = Part(
    options=(
        Option(
            "handoff",
            ("-o", "--out", "--output", "out"),
            "Also write a handoff document: a .md file, or a folder for one.",
            "asked:require_name",
            is_flag=False,
        ),
        Option("handoff", ("--force",), "With --out: overwrite the file.", "asked:require_out"),
    ),
    settings=(
        Setting(
            "handoff_dir",
            "",
            "Folder for a document of each handoff, such as _handoffs in the project; empty = off.",
            form="path",
            given=("", "a folder, such as _handoffs"),
            before="vault",
        ),
    ),
    answers=(
        Answer("beside a handoff", "asked:beside"),
        Answer("documents of a session", "places:documents_of"),
        Answer("written into projects", "places:written"),
    ),
)
