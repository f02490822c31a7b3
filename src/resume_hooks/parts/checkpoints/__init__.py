"""Checkpoints: a mark in a session, and the way back to it, or out of a fork, in a child with a report of the rest.

A rewind cuts the chain at the mark, never between a call and its result, and puts lineage and report at its end.
"""

from __future__ import annotations

from resume_hooks.part import Part, Verb
from resume_hooks.seam import Trigger

PART = Part(
    verbs=(
        Verb("checkpoint", "Mark a place in a session to come back to.", before="fork"),
        Verb(
            "rewind", "Go back to the checkpoint in a new session, with a report of what came after it.", before="fork"
        ),
    ),
    triggers=(
        Trigger(
            "checkpoint",
            "[goal]",
            "Mark this place before you try something",
            lane="lane",
            before="search",
            row="checkpoint [goal]     mark this place; rewind report goes back to it",
            bare="mark",
            asks=True,
        ),
        Trigger(
            "rewind",
            "report",
            "Go back to the mark, or to where a fork left, in a new session; of what came after, only a report stays",
            lane="lane",
            before="search",
            bare="back",
        ),
    ),
)
