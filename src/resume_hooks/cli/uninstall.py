"""``uninstall``: removes the plugin; ``--purge`` our state folder too. Sessions are never touched."""

from __future__ import annotations

import glob
import os
import shlex
import shutil

import click

from resume_hooks import client
from resume_hooks.cli.install import run_all
from resume_hooks.cli.output import emit, json_option
from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.paths import state_home
from resume_hooks.plugin_files import MARKETPLACE, NAME, is_assembled, plugin_folder
from resume_hooks.vaulted.places import unpacked

INDEX = "index.db"
FILES = (
    "links.jsonl",
    "settings.json",
    "stats.json",
    "vault-told",
    "log/errors.log",
    "log/errors.log.1",
    INDEX,
    f"{INDEX}-wal",
    f"{INDEX}-shm",
    f"{INDEX}.lock",
)
"""What we keep there; ``--purge`` removes it, notes, the plugin's files, and what is empty then.

Originals stay: deleted sessions in the trash, kept ones in the vault, and backups of what was rewritten.
"""

NOTES = (
    "clear-",
    "trim-",
    "checkpoint-",
    "mark-",
    "handoff-",
    "notice-",
    "rollover-",
    "due-",
    "later-",
    "keep-",
    "vault.json",
)
"""How the names of notes in ``pending`` begin."""


@click.command("uninstall")
@click.option("--purge", is_flag=True, help="Remove our state as well: links, settings, index, logs.")
@click.option("--yes", is_flag=True, help="Do not ask before purging.")
@json_option
def command(purge: bool, yes: bool, as_json: bool) -> int:
    """Remove the plugin from Claude Code and say what stays. Your sessions always stay.

    \b
    Examples:
      resume-hooks uninstall
      resume-hooks uninstall --purge --yes
    """
    state = state_home()
    if purge and not yes:
        click.confirm(
            f"Remove {state} (links between sessions that exist nowhere else, settings)?", abort=True, err=True
        )
    commands = [["claude", "plugin", "uninstall", f"{NAME}@{MARKETPLACE}"]]
    if client.marketplace_folder(MARKETPLACE) == plugin_folder():
        commands.append(["claude", "plugin", "marketplace", "remove", MARKETPLACE])
    warning = ""
    try:
        ran = run_all(commands)
    except ResumeHooksError as error:  # not installed as a plugin: the state can still go
        ran, warning = False, error.message
    if purge:
        _purge(state)
    stays = [path for path in (state,) if os.path.isdir(path)]
    lines = [shlex.join(words) for words in commands]
    data = {"plugin": NAME, "commands": lines, "ran": ran, "stays": stays}

    def text() -> str:
        first = "The plugin is removed." if ran else "To remove the plugin run:\n  " + "\n  ".join(lines)
        why = "the trash, the vault and backups are yours to remove" if purge else "resume-hooks uninstall --purge"
        kept = "".join(f"\nStays: {path} ({why})" for path in stays)
        return f"{first}{kept}\nYour sessions stay, also those made by handoff."

    emit("uninstall", data, text, as_json=as_json, warnings=[warning] if warning else [])
    return int(bool(warning))


def _purge(state: str) -> None:
    if os.path.islink(state):
        raise WriteFailed(f"{state} is a symbolic link and was left alone", "Remove what it points to by hand.")
    try:
        linked = [name for name in ("pending", "log") if os.path.islink(os.path.join(state, name))]
        if linked:
            raise WriteFailed(f"{os.path.join(state, linked[0])} is a symbolic link and was left alone", "Remove it.")
        pending = os.path.join(glob.escape(state), "pending")
        notes = [path for prefix in NOTES for path in glob.glob(os.path.join(pending, f"{prefix}*"))]
        for path in [*(os.path.join(state, name) for name in FILES), *notes]:
            if os.path.lexists(path):
                os.unlink(path)
        shutil.rmtree(unpacked(os.environ), ignore_errors=True)
        if is_assembled(plugin_folder()):
            shutil.rmtree(plugin_folder())
        for folder in (os.path.join(state, "pending"), os.path.join(state, "log"), state):
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
    except OSError as error:
        raise WriteFailed(f"{state} could not be removed: {error.strerror}", "Check its permissions.") from error
