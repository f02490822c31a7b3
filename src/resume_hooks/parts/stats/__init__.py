"""Figures of this machine's transcripts: turns, tokens, savings by children, times of hooks.

Only lines that may be an answer, a prompt or a hook's are parsed; records copied from a parent are
left out. Counts are cached by session, with path, size and time, so that a next run reads only
changed files and a deleted transcript still counts.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "stats",
            "Show turns, tokens and savings by month, and how long hooks took.",
            before="doctor",
        ),
    ),
)
