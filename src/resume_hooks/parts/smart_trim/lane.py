"""``/trim --smart`` among what is typed behind ``/trim``: all else waits for no more than this module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resume_hooks.derive.trim.plan import TrimPlan
    from resume_hooks.hooks.request import Request, TriggerAnswer


def answer(request: Request) -> TriggerAnswer | None:
    """See ``hooks.trim``."""
    option, instructions = _split(request.text)
    if option != "--smart":
        return None
    from resume_hooks.parts.smart_trim import own_model  # nothing to a trim by rules

    return own_model.answer(request, instructions)


def decided(options: str, request: Request) -> TrimPlan | None:
    """See ``hooks.trim``."""
    option, instructions = _split(options)
    if option != "--smart":
        return None
    from resume_hooks.parts.smart_trim import own_model  # nothing to a trim by rules

    return own_model.decided(request, instructions)


def _split(text: str) -> tuple[str, str]:
    option, *rest = text.split(maxsplit=1) or [""]
    return option, "".join(rest)
