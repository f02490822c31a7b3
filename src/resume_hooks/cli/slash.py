"""``slash``: answer a slash command of the plugin in a client that runs no hooks (Desktop, VS Code).

The file of each slash command runs this verb. The user's text comes through stdin, so no shell
parses it. The answer is the same as that of a hook.
"""

from __future__ import annotations

import sys

import click

from resume_hooks.cli.verbs.upkeep import SlashOptions
from resume_hooks.hooks.hook_replies import MAX_INPUT_BYTES
from resume_hooks.hooks.prompt import card_of_trigger
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.shared_values import COMMAND_PREFIX
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import plain_text


def answer_slash_command(options: SlashOptions) -> None:
    """Print the answer to a slash command."""
    trigger = recognise_trigger(f"{COMMAND_PREFIX}{options.trigger}")
    if trigger is None or trigger.text:
        raise click.UsageError(f"there is no slash command '{options.trigger}'")
    text = sys.stdin.buffer.read(MAX_INPUT_BYTES).decode("utf-8", "replace").strip()
    trigger = trigger._replace(text=text, is_hooked=False)
    card = card_of_trigger(trigger, {"session_id": options.session_id})
    click.echo(
        plain_text(card)
        or (
            f"resume-hooks: {trigger.name_of_verb(trigger.verb)} is switched off "
            f"({shell_command('config triggers_off')})."
        )
    )
