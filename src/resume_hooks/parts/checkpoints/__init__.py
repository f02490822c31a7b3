"""Checkpoints: a mark in a session, and the way back to it in a child that keeps a report of what came after."""

from __future__ import annotations

from resume_hooks.seam import Part, Verb

PART = Part(
    verbs=(
        Verb("checkpoint", "Mark a place in a session to come back to.", before="fork"),
        Verb(
            "rewind", "Go back to the checkpoint in a new session, with a report of what came after it.", before="fork"
        ),
    ),
)
