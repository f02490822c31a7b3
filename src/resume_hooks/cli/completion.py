"""``completion``: the lines that make a shell complete verbs, options and sessions."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from resume_hooks.cli.complete_sessions import register
from resume_hooks.cli.options import VerbOptions, as_one_value, json_option
from resume_hooks.cli.output import COMPLETING
from resume_hooks.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Print what makes Tab complete verbs, options and the sessions of this folder.

    Sessions are offered by id with their titles beside them; a part of a title finds them, too.

    \b
    Examples:
      resume-hooks completion bash >> ~/.bashrc
      resume-hooks completion zsh > "${fpath[1]}/_resume-hooks"
      resume-hooks completion fish > ~/.config/fish/completions/resume-hooks.fish
    """
    register()
    kind = get_completion_class(options.shell)
    if kind is None:
        raise UsageError(f"There is no completion for {options.shell}", f"Shells: {', '.join(SHELLS)}.")
    script = kind(click.get_current_context().find_root().command, {}, "resume-hooks", COMPLETING).source().strip()
    options.emit({"shell": options.shell, "script": script}, lambda: script)
