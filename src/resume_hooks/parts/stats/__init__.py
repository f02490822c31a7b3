"""Statistics of this machine's transcripts: turns, tokens, savings by children, hook durations.

Only lines that may be an answer, a prompt or a hook's record are parsed. Records copied from a
parent are left out. Counts are cached per session, with path, size and time, so the next run reads
only changed files, and deleted transcripts still count.
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
