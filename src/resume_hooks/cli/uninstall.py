"""``uninstall``: removes the plugin; ``--purge`` our state folder too. Sessions are never touched."""

from __future__ import annotations

import glob
import os
import shlex
import shutil

import click

from resume_hooks.cli.install import run_all
from resume_hooks.cli.left_behind import FOLDERS, REMOVE_MARKETPLACE, left_behind, written_to
from resume_hooks.cli.verbs.upkeep import UninstallOptions
from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import COPIES
from resume_hooks.sessions.archived.layout import unpacked
from resume_hooks.system import claude_cli
from resume_hooks.system.plugin_files import MARKETPLACE, NAME, is_assembled, plugin_folder

INDEX = "index.db"
FILES = (
    "links.jsonl",
    "settings.json",
    "stats.json",
    "audit.json",
    "vault-told",
    "log/errors.log",
    "log/errors.log.1",
    INDEX,
    f"{INDEX}-wal",
    f"{INDEX}-shm",
    f"{INDEX}.lock",
)
WORDS = "index"
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
    "folder-",
    "new-",
    "vault.json",
    "indexed.json",
)
"""How the names of notes in ``pending`` begin."""

SESSIONS = "Your sessions stay, also those made by handoff."


def uninstall(options: UninstallOptions) -> int:
    """Remove the plugin and what is asked for; 1 where the client refused."""
    where = options.where
    goes = _purged(where.state) if options.purge else None
    if options.purge and options.asks("--purge"):
        click.confirm(
            f"Remove links between sessions (they exist nowhere else), settings, index in {where.state}?",
            abort=True,
            err=True,
        )
    commands = [["claude", "plugin", "uninstall", f"{NAME}@{MARKETPLACE}"]]
    if claude_cli.marketplace_folder(MARKETPLACE) == plugin_folder():
        commands.append(list(REMOVE_MARKETPLACE))
    documents = written_to(where)
    ran, warning = (False, "") if options.dry_run else _run(commands)
    if goes is not None and not options.dry_run:
        _remove(where.state, goes)
    stays = left_behind(where, goes, commands)
    lines = [shlex.join(words) for words in commands]
    data = {"plugin": NAME, "commands": lines, "ran": ran, "goes": goes or [], "stays": [row.path for row in stays]}

    def text() -> str:
        head = "These would run:" if options.dry_run else "To remove the plugin run:"
        first = "The plugin is removed." if ran else "\n  ".join([head, *lines])
        gone = [f"Would go: {path}" for path in goes or [] if options.dry_run]
        kept = [f"Stays: {path} ({what}; {way})" for path, what, way in stays]
        return "\n".join(filter(None, [first, *gone, *kept, documents, SESSIONS]))

    options.emit(data, text, [warning] if warning else [])
    return int(bool(warning))


def _run(commands: list[list[str]]) -> tuple[bool, str]:
    """Whether the client ran them, and its error: the state can go even if the plugin was never installed."""
    try:
        return run_all(commands), ""
    except ResumeHooksError as error:
        return False, error.message


def _purged(state: str) -> list[str]:
    """The paths that a purge removes: files, and folders with all that is in them. WriteFailed for links on the way."""
    if os.path.islink(state):
        raise WriteFailed(f"{state} is a symbolic link and was left alone", "Remove what it points to by hand.")
    linked = [path for name in FOLDERS if os.path.islink(path := os.path.join(state, name))]
    if linked:
        raise WriteFailed(f"{linked[0]} is a symbolic link and was left alone", "Remove it.")
    pending = os.path.join(glob.escape(state), "pending")
    notes = [path for prefix in NOTES for path in sorted(glob.glob(os.path.join(pending, f"{prefix}*")))]
    files = [path for path in (os.path.join(state, name) for name in FILES) if os.path.lexists(path)]
    plugin = plugin_folder()
    made = (os.path.join(state, WORDS), *_copies())
    folders = [folder for folder in made if os.path.isdir(folder) and not os.path.islink(folder)]
    return [*files, *notes, *folders, *([plugin] if is_assembled(plugin) else [])]


def _copies() -> tuple[str, ...]:
    """The folders of copies that can be made anew."""
    where = Where()
    return unpacked(where), os.path.join(where.state, COPIES)


def _remove(state: str, goes: list[str]) -> None:
    """Remove these paths, and what is empty then. WriteFailed."""
    try:
        for path in goes:
            if path in _copies():
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
        for folder in (*(os.path.join(state, name) for name in FOLDERS), state):
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
    except OSError as error:
        raise WriteFailed(f"{state} could not be removed: {error.strerror}", "Check its permissions.") from error
