"""`trim --smart`: rules give up what is certain, a model judges the rest; written by trim's writer."""

from __future__ import annotations

from resume_hooks.part import Answer, Option, Part, Way

PART = Part(
    options=(
        Option("trim", ("--smart",), "Let a model choose what is no longer needed.", "verbs:smart_trim"),
        Option(
            "trim",
            ("-p", "--prompt"),
            "With --smart: what to keep or to drop, in your words; it counts above all.",
            "verbs:require_smart",
            is_flag=False,
        ),
        Option(
            "trim",
            ("--model",),
            "With --smart: the model; by default summary_model, of other agents their own.",
            "verbs:require_smart",
            is_flag=False,
        ),
        Option("trim", ("--timeout",), "With --smart: seconds for all of it.", "verbs:require_smart", is_flag=False),
        Option(
            "trim",
            ("--plan",),
            "With --smart: write the plan that --json printed; no model is asked.",
            "verbs:require_smart",
            is_flag=False,
        ),
        Option("trim", ("--yes",), "With --smart: write without asking.", "verbs:require_smart"),
    ),
    answers=(
        Answer("a trim that a model decides", "lane:answer"),
        Answer("what a model decided", "lane:decided"),
    ),
    ways=(
        Way("trim --smart", "a copy without what {model} finds is no longer needed; asking it costs tokens", "handoff"),
    ),
)
