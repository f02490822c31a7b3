"""`trim --smart`: rules drop what is certainly unneeded, a model judges the rest, and trim's writer writes it."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Option, Part, Way

PART = Part(
    options=(
        Option(
            "trim",
            ("--smart",),
            "Let a model choose what the work does not need any more.",
            "verbs:smart_trim",
        ),
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
        Option(
            "trim",
            ("--timeout",),
            "With --smart: seconds for all of it.",
            "verbs:require_smart",
            is_flag=False,
        ),
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
        Answer(questions.answer_smart_trim, "lane:answer_smart_trim"),
        Answer(questions.plan_decided_trim, "lane:find_decided_trim"),
        Answer(questions.line_of_trim_help, "lane:line_of_trim_help"),
    ),
    ways=(
        Way(
            "trim --smart",
            "a copy without the contents that {model} finds unneeded; asking it costs tokens",
            "handoff",
        ),
    ),
)
