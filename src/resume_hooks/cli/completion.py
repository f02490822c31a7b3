"""``completion``: the lines that make a shell complete verbs, options and sessions."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from resume_hooks.cli.output import COMPLETING, emit, json_option
from resume_hooks.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print what makes Tab complete verbs, options and the sessions of this folder.

    Sessions are offered by id with their titles beside them; a part of a title finds them, too.

    \b
    Examples:
      resume-hooks completion bash >> ~/.bashrc
      resume-hooks completion zsh > "${fpath[1]}/_resume-hooks"
      resume-hooks completion fish > ~/.config/fish/completions/resume-hooks.fish
    """
    # Imported for what it registers: where nothing is completed nobody waits for it.
    from resume_hooks.cli.completing import register  # noqa: PLC0415

    register()
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"There is no completion for {shell}", f"Shells: {', '.join(SHELLS)}.")
    script = kind(ctx.find_root().command, {}, "resume-hooks", COMPLETING).source().strip()
    emit("completion", {"shell": shell, "script": script}, lambda: script, as_json=as_json)
