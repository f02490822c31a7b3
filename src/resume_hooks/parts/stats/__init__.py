"""Statistics of this machine's transcripts: turns, tokens, savings by children, hook durations.

A line is only parsed if it may be an answer, a prompt or a hook's record. Records copied from a
parent are not counted. Counts are cached per session, with the file's path, size and time. So the
next run only reads changed files, and deleted transcripts still count.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "stats",
            "Show turns, tokens and savings by month, and hook durations.",
            before="doctor",
        ),
    ),
)
