"""What verbs share that ask a headless model: which one, for how long, and a word on how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable

from resume_hooks import settings
from resume_hooks.cli.child import How
from resume_hooks.cli.output import say
from resume_hooks.errors import UsageError


class SummaryHow(How):
    """The options of a rollover with a summary."""

    prompt: str
    model: str | None
    timeout: int | None


def model_name(given: str | None) -> str:
    """The model of ``--model``, else of the setting. UsageError for what can't be one."""
    try:
        return str(settings.KEYS["summary_model"].read(given or settings.load()["summary_model"].value))
    except ValueError as error:
        raise UsageError(f"--model must be {error}, not '{given}'") from error


def time_for(given: int | None) -> float:
    """The seconds of ``--timeout``, else of the setting."""
    return given or settings.number("summary_timeout")


def progress(name: str, *, quiet: bool) -> Callable[[int, int], None]:
    """Says which call a model is at, where somebody waits."""
    if quiet or not sys.stderr.isatty():
        return lambda _number, _count: None
    return lambda number, count: say(f"Asking {name}, {number} of {count} ...", err=True)
