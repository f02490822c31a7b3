"""Smart trim: rules give up what is certain, a model judges the rest; written by trim's writer."""

from __future__ import annotations

from resume_hooks.part import Part, Verb, Way

PART = Part(
    verbs=(Verb("smart-trim", "Continue in a copy without what a model finds is no longer needed.", before="fork"),),
    ways=(
        Way("smart-trim", "a copy without what {model} finds is no longer needed; asking it costs tokens", "handoff"),
    ),
)
