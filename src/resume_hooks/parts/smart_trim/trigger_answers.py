"""Answer ``/trim`` with the option ``--smart``.

The other modules of this part are imported only if the option is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resume_hooks.derive.outcome import Outcome
    from resume_hooks.derive.trim.plan import TrimPlan
    from resume_hooks.hooks.request import Request


def answer_smart_trim(request: Request) -> Outcome | None:
    """Answer ``/trim --smart``. Return None for a trim without this option."""
    option, instructions = _split_option_and_instructions(request.text)
    if option != "--smart":
        return None
    # Imported here because a trim without a model does not need it.
    from resume_hooks.parts.smart_trim import own_model

    return own_model.answer_with_session_model(request, instructions)


def find_confirmed_trim(option_text: str, request: Request) -> TrimPlan | None:
    """Return the plan that the user confirmed for ``/trim --smart``, or None for an ordinary trim."""
    option, instructions = _split_option_and_instructions(option_text)
    if option != "--smart":
        return None
    # Imported here because a trim without a model does not need it.
    from resume_hooks.parts.smart_trim import own_model

    return own_model.plan_confirmed_trim(request, instructions)


def format_smart_trim_help_line() -> str:
    """Return the line about ``--smart`` for the help of ``/trim``."""
    return "  --smart [what to keep] the session's own model chooses"


def _split_option_and_instructions(text: str) -> tuple[str, str]:
    option, *remaining_text = text.split(maxsplit=1) or [""]
    return option, "".join(remaining_text)
