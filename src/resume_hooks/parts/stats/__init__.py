"""What the transcripts of this machine came to: turns, tokens, what children saved, how long hooks took.

Only lines that may be an answer, a prompt or a hook's are parsed; what was copied from a parent is left out. Counts
are kept by session, with path, size and time, so that a next run reads what changed and a deleted transcript still
counts.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(Verb("stats", "Show turns, tokens and what was saved, by month; how long hooks took.", before="doctor"),),
)
