"""Secrets: where they lie, and their removal from a session and all copies; what one is, ``redaction`` knows."""

from __future__ import annotations

from resume_hooks.part import Part, Verb

PART = Part(
    verbs=(
        Verb(
            "audit", "List the secrets in sessions by kind, place and age, never the secrets themselves.", before="fsck"
        ),
        Verb("scrub", "Remove secrets: in a child, or in place and from every copy.", before="doctor"),
    ),
)
