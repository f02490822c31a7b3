"""``trim --smart``: a trim in which a model chooses what to replace.

First, rules choose content that is clearly not needed. Then a model judges the other content, and
the code of ``trim`` writes the child.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Option, Part, WayToContinue

PART = Part(
    options=(
        Option(
            "trim",
            ("--smart",),
            "Let a model choose the content that is no longer needed.",
            "verbs:smart_trim",
        ),
        Option(
            "trim",
            ("-p", "--prompt"),
            "With --smart: what to keep or to drop, in your own words; overrides the rules.",
            "verbs:refuse_options_that_need_smart",
            is_flag=False,
        ),
        Option(
            "trim",
            ("--model",),
            "With --smart: the model to ask. Default: summary_model, or another agent's own model.",
            "verbs:refuse_options_that_need_smart",
            is_flag=False,
        ),
        Option(
            "trim",
            ("--timeout",),
            "With --smart: total time limit in seconds.",
            "verbs:refuse_options_that_need_smart",
            is_flag=False,
        ),
        Option(
            "trim",
            ("--plan",),
            "With --smart: carry out a plan that --json printed, without asking a model.",
            "verbs:refuse_options_that_need_smart",
            is_flag=False,
        ),
        Option(
            "trim",
            ("--yes",),
            "With --smart: write the child without asking you.",
            "verbs:refuse_options_that_need_smart",
        ),
    ),
    answers=(
        Answer(questions.answer_smart_trim, "trigger_answers:answer_smart_trim"),
        Answer(questions.plan_confirmed_trim, "trigger_answers:find_confirmed_trim"),
        Answer(questions.line_of_trim_help, "trigger_answers:format_smart_trim_help_line"),
    ),
    ways_to_continue=(
        WayToContinue(
            "trim --smart",
            "a copy without the content that {model} considers unneeded; asking {model} costs tokens",
            "handoff",
        ),
    ),
)
