"""``slash``: what the bodies of our slash commands run where the client fires no hook (Desktop, VS Code).

The user's text comes on stdin, never through a shell; the answer is the card that the hook would have shown.
"""

from __future__ import annotations

import sys

import click

from resume_hooks.events.prompt import answer
from resume_hooks.events.triggers import recognise


@click.command("slash", hidden=True)
@click.argument("verb")
@click.argument("session_id")
def command(verb: str, session_id: str) -> None:
    """Answer a slash command of the plugin for SESSION_ID; its text is read from stdin."""
    text = sys.stdin.read().strip()
    trigger = recognise(f">{verb} {text}".strip()) or recognise(f">{verb}")
    if trigger is None:
        raise click.UsageError(f"there is no slash command '{verb}'")
    click.echo(answer(trigger._replace(slash=True, pasted=False), {"session_id": session_id}))
