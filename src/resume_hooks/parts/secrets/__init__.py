"""Secrets: which lie where, told by kind, place and age; and taken out of a session and every copy of it."""

from __future__ import annotations

from resume_hooks.seam import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "audit", "List the secrets in sessions by kind, place and age, never the secrets themselves.", before="fsck"
        ),
        Verb("scrub", "Remove secrets: in a child, or in place and from every copy.", before="doctor"),
    ),
)
