"""``completion``: the lines that make a shell complete verbs, options and sessions."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from resume_hooks.cli.complete_sessions import register
from resume_hooks.cli.output import COMPLETING
from resume_hooks.cli.verbs.upkeep import SHELLS, CompletionOptions
from resume_hooks.errors import UsageError


def completion(options: CompletionOptions) -> None:
    """Print the script of a shell."""
    register()
    kind = get_completion_class(options.shell)
    if kind is None:
        raise UsageError(f"There is no completion for {options.shell}", f"Shells: {', '.join(SHELLS)}.")
    script = kind(click.get_current_context().find_root().command, {}, "resume-hooks", COMPLETING).source().strip()
    options.emit({"shell": options.shell, "script": script}, lambda: script)
