"""Count turns, tokens, tokens that children saved, and hook durations in this machine's transcripts.

A line is parsed only if it may be an answer, a prompt, a compaction or the record of a hook.
Records that were copied from a parent are not counted. The counts of each transcript are cached
with its path, size and modification time. Therefore the next run reads only changed files, and the
counts of deleted transcripts are kept.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "stats",
            "Show turns, tokens and savings by month, and hook durations.",
            insert_before="doctor",
        ),
    ),
)
