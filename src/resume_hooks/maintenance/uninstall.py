"""List the files that an uninstall removes, and the files that it keeps.

Each file that it keeps is listed with a command that removes it.
"""

from __future__ import annotations

import glob
import os
import shlex
import shutil
from collections.abc import Collection
from typing import NamedTuple

from resume_hooks import questions, seam
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, read_regular_file
from resume_hooks.sessions.agents.registry import COPIES_FOLDER_NAME
from resume_hooks.sessions.archived.layout import unpacked_folder
from resume_hooks.sessions.held_links import LINKS_FOLDER, links_folder, links_without_client_file
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import convert_os_error
from resume_hooks.system import claude_cli
from resume_hooks.system.invocation import quote_word, shell_command
from resume_hooks.system.plugin_files import (
    MARKETPLACE_NAME,
    PLUGIN_NAME,
    is_assembled_plugin,
    plugin_folder,
)
from resume_hooks.system.text import format_count

OWN_FILE_NAMES = (
    "links.jsonl", "settings.json", "stats.json", "audit.json", "vault-told", "log/errors.log", "log/errors.log.1",
    "data-rules.json", "index.db", "index.db-wal", "index.db-shm", "index.db.lock",
)  # fmt: skip
INDEX_FOLDER_NAME = "index"
"""The name of the folder that contains the index.

A purge removes the index, the files in ``OWN_FILE_NAMES``, notes, the plugin's files and empty folders. A purge
keeps originals: deleted sessions in the trash, archived sessions in the vault, and backups of
rewritten files.
"""

NOTE_PREFIXES = (
    "clear-", "trim-", "checkpoint-", "mark-", "handoff-", "notice-", "rollover-", "due-", "later-", "keep-", "folder-",
    "new-", "parts-", "cold-", "compacted-", "smart-trim-", "vault.json", "indexed.json", "can-ask", "vault-asked",
    "vault-waiting", "vault-shrinks", "asked-compaction.json",
)  # fmt: skip
"""Prefixes of the names of notes in the folder ``pending``."""

KEPT_FOLDER_DESCRIPTIONS = {
    "vault": "archived copies; some are the only copy of a session",
    "trash": "deleted sessions",
    "backups": "backups of rewritten files",
    LINKS_FOLDER: "hard links to sessions; some are a file's only remaining name",
}
"""Folders in the state folder that contain originals, with their descriptions. A purge keeps them.

The folder of links is removed if each file that it links to also has another name.
"""

NOTE_FOLDER_NAMES = ("pending", "log", "making", "one-maker")
"""Folders in the state folder that contain only this plugin's notes.

A purge removes them when they are empty.
"""

MAX_SCRIPT_BYTES = 64 * 1024
"""The maximum number of bytes that are read from one of the client's scripts."""

REMOVE_MARKETPLACE_COMMAND = ("claude", "plugin", "marketplace", "remove", MARKETPLACE_NAME)


class RemainingFile(NamedTuple):
    """A file or folder that an uninstall keeps, its description, and how the user can remove it."""

    path: str
    description: str
    removal_hint: str


def list_remaining_files(
    where: Where, removed_paths: Collection[str] | None, commands: Collection[Collection[str]]
) -> list[RemainingFile]:
    """Return the files that remain after the client's ``commands`` and after a purge.

    ``removed_paths`` are the paths that the purge removes, or None if there is no purge. Before the
    uninstall, the result is a forecast. After the uninstall, it lists the files that were kept.
    """
    rows = [
        *_list_remaining_own_files(where, removed_paths),
        *_list_remaining_client_files(where, commands),
    ]
    if program := shutil.which(PLUGIN_NAME, path=where.environ.get("PATH", "")):
        rows.append(
            RemainingFile(
                program,
                "this command",
                f"use the tool that installed it: pipx, uv tool or pip uninstall {PLUGIN_NAME}",
            )
        )
    return rows


def describe_written_files(where: Where) -> str:
    """Return sentences about files that the plugin's parts wrote into projects, or ``""``."""
    notes = []
    for find_note in seam.find_answers(questions.build_note_on_written_files):
        notes.append(find_note(where))
    return " ".join(filter(None, notes))


def list_remaining_paths(state: str, removed_paths: Collection[str]) -> list[str]:
    """Return the paths in the state folder that remain after the removal of ``removed_paths``.

    If the folder cannot be listed, return the folder itself.
    """

    def list_other_paths(folder: str) -> list[str]:
        paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
        return [path for path in paths if path not in removed_paths]

    def is_still_present(path: str) -> bool:
        return (
            os.path.basename(path) not in NOTE_FOLDER_NAMES
            or not os.path.isdir(path)
            or bool(list_other_paths(path))
        )

    try:
        if os.path.isdir(state):
            return [path for path in list_other_paths(state) if is_still_present(path)]
        return []
    except OSError:
        return [state]


def _list_remaining_own_files(
    where: Where, removed_paths: Collection[str] | None
) -> list[RemainingFile]:
    state, purge_command = where.state, shell_command("install --remove --purge")
    remaining = list_remaining_paths(state, removed_paths or _find_copy_folders())
    if removed_paths is None:
        if os.path.isdir(state):
            state_row = [RemainingFile(state, "links, settings, index, notes", purge_command)]
        else:
            state_row = []
        return [
            *state_row,
            *(
                _describe_original(path)
                for path in remaining
                if os.path.basename(path) in KEPT_FOLDER_DESCRIPTIONS
            ),
        ]
    return [_describe_original(path) for path in remaining]


def _describe_original(path: str) -> RemainingFile:
    return RemainingFile(
        path,
        KEPT_FOLDER_DESCRIPTIONS.get(os.path.basename(path), "not removed by a purge"),
        _format_removal_command(path),
    )


def _list_remaining_client_files(
    where: Where, commands: Collection[Collection[str]]
) -> list[RemainingFile]:
    plugins = os.path.join(where.config, "plugins")
    rows = [
        # Client 2.1.42 keeps the folder. Recent clients keep it only if it was given with
        # --plugin-dir.
        RemainingFile(
            folder,
            "the engine's packages",
            f"{_format_removal_command(folder)}, if Claude Code keeps the folder",
        )
        for folder in sorted(
            glob.glob(os.path.join(glob.escape(plugins), "data", f"{PLUGIN_NAME}*"))
        )
        if os.path.isfile(os.path.join(folder, "install.json"))
    ]
    if count := _count_sessions_with_our_command(where):
        scripts = os.path.join(where.config, "session-env")
        description = (
            f"the shell function `{PLUGIN_NAME}` in the shell scripts of {format_count(count, 'session')}; "
            "the function no longer works, because the engine is gone"
        )
        rows.append(
            RemainingFile(
                scripts,
                description,
                f"find {quote_word(scripts)} -name '*.sh' -exec sed -i.old '/^{PLUGIN_NAME}()/d' {{}} +",
            )
        )
    plugin_copy = os.path.join(plugins, "cache", MARKETPLACE_NAME)
    if os.path.isdir(plugin_copy):
        rows.append(
            RemainingFile(
                plugin_copy, "the client's copy of the plugin", "Claude Code removes it by itself"
            )
        )
    if (
        claude_cli.read_marketplace(MARKETPLACE_NAME)
        and list(REMOVE_MARKETPLACE_COMMAND) not in commands
    ):
        marketplaces_file = os.path.join(plugins, "known_marketplaces.json")
        rows.append(
            RemainingFile(
                marketplaces_file,
                f"names the marketplace {MARKETPLACE_NAME}",
                shlex.join(REMOVE_MARKETPLACE_COMMAND),
            )
        )
    return rows


def _count_sessions_with_our_command(where: Where) -> int:
    """Return the number of sessions for which a script of the client defines our shell function."""
    folders = set()
    for path in glob.glob(os.path.join(glob.escape(where.config), "session-env", "*", "*.sh")):
        try:
            defines_command = f"{PLUGIN_NAME}() {{".encode() in read_regular_file(
                path, MAX_SCRIPT_BYTES
            )
        except OSError:
            continue
        if defines_command:
            folders.add(os.path.dirname(path))
    return len(folders)


def _format_removal_command(path: str) -> str:
    return f"rm -r {quote_word(path)}"


def list_paths_to_purge(state: str) -> list[str]:
    """Return the files and folders that a purge removes. Folders are removed with their contents.

    Raise WriteFailed if the state folder or one of its folders for notes is a link.
    """
    if os.path.islink(state):
        raise WriteFailed(
            f"{state} is a symbolic link and was not removed", "Remove its target by hand."
        )
    links = [
        path for name in NOTE_FOLDER_NAMES if os.path.islink(path := os.path.join(state, name))
    ]
    if links:
        raise WriteFailed(f"{links[0]} is a symbolic link and was not removed", "Remove it.")
    pending = os.path.join(glob.escape(state), "pending")
    paths = []
    for name in OWN_FILE_NAMES:
        path = os.path.join(state, name)
        if os.path.lexists(path):
            paths.append(path)
    for prefix in NOTE_PREFIXES:
        paths += sorted(glob.glob(os.path.join(pending, f"{prefix}*")))
    for folder in (os.path.join(state, INDEX_FOLDER_NAME), *_find_copy_folders()):
        if os.path.isdir(folder) and not os.path.islink(folder):
            paths.append(folder)
    plugin_path = plugin_folder()
    if is_assembled_plugin(plugin_path):
        paths.append(plugin_path)
    return paths


def _find_copy_folders() -> tuple[str, ...]:
    where = Where()
    link_folders = () if any(links_without_client_file(where)) else (links_folder(where),)
    return unpacked_folder(where), os.path.join(where.state, COPIES_FOLDER_NAME), *link_folders


def remove_paths(state_folder: str, paths: list[str]) -> None:
    """Remove the files and folders ``paths``, and this plugin's folders that become empty.

    Raise WriteFailed.
    """
    with convert_os_error(f"{state_folder} could not be removed", "Check its permissions."):
        copy_folders = _find_copy_folders()
        for path in paths:
            if os.path.basename(path) == LINKS_FOLDER and path not in copy_folders:
                # This folder contains the only link to a file whose other links were removed in the
                # meantime.
                continue
            if path in copy_folders:
                removal.remove_if_possible(path, state_folder)
            elif os.path.lexists(path):
                removal.remove_permanently(path, state_folder)
        for folder in (
            *(os.path.join(state_folder, name) for name in NOTE_FOLDER_NAMES),
            state_folder,
        ):
            if os.path.isdir(folder) and not os.listdir(folder):
                removal.remove_empty_folder(folder, os.path.dirname(state_folder), follow_root=True)
