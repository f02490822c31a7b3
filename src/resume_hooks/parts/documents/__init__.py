"""Documents: what a handoff writes into a project if the user asked for it, a document and a line of a ledger.

Nothing of it is read by a session that goes on: it is for people, and for others than our own engine.
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
        # Of Markdown files alone: a title out of a transcript is never written into what a shell reads.
        Setting(
            "ledger_file",
            "",
            "File in which each handoff renews the line 'current session:', such as _ledgers/CURRENT.md; empty = off.",
            form="path",
            given=(".md", "a file that ends in .md, such as _ledgers/CURRENT.md"),
            before="vault",
        ),
    ),
    answers=(
        Answer("beside a handoff", "asked:beside"),
        Answer("documents of a session", "places:documents_of"),
        Answer("written into projects", "places:written"),
    ),
)
