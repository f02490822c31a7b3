"""Export a session as a single file, and import such a file or any transcript as a new session."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "export",
            "Write a session as a page, as Markdown, or as a bundle for import.",
            insert_before="fsck",
        ),
        Verb(
            "share",
            "Write a session to one file that a colleague can read or import.",
            insert_before="fsck",
        ),
        Verb(
            "import",
            "Import a transcript from a file or standard input as a new session.",
            insert_before="fsck",
        ),
    ),
    answers=(Answer(questions.import_file, "verbs.import_:import_file"),),
)
