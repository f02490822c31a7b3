"""A session as one file to give away, and such a file, or a stranger's transcript, as a session of ours."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "export",
            "Write a session as a page, as Markdown, or as a bundle to be imported.",
            before="fsck",
        ),
        Verb(
            "share",
            "Write a session as one file for a colleague: a page to read, which import takes.",
            before="fsck",
        ),
        Verb(
            "import",
            "Import a transcript, from a file or the standard input, as a new session.",
            before="fsck",
        ),
    ),
    answers=(Answer(questions.import_file, "verbs.import_:bring_in"),),
)
