"""What an uninstall removes, what it leaves on the disk, and what removes each of that."""

from __future__ import annotations

import glob
import os
import shlex
import shutil
from collections.abc import Collection
from typing import NamedTuple

from resume_hooks import seam
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, read_regular
from resume_hooks.sessions.agents.registry import COPIES
from resume_hooks.sessions.archived.layout import unpacked
from resume_hooks.sessions.held_links import FOLDER, apart, folder
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import failing_as
from resume_hooks.system import claude_cli
from resume_hooks.system.invocation import in_shell, quote_word
from resume_hooks.system.plugin_files import MARKETPLACE, NAME, is_assembled, plugin_folder
from resume_hooks.system.text import plural

FILES = (
    "links.jsonl", "settings.json", "stats.json", "audit.json", "vault-told", "log/errors.log", "log/errors.log.1",
    "data-rules.json", "index.db", "index.db-wal", "index.db-shm", "index.db.lock",
)  # fmt: skip
WORDS = "index"
"""What we keep there; ``--purge`` removes it, notes, the plugin's files, and what is empty then.

Originals stay: deleted sessions in the trash, kept ones in the vault, and backups of what was rewritten.
"""

NOTES = (
    "clear-", "trim-", "checkpoint-", "mark-", "handoff-", "notice-", "rollover-", "due-", "later-", "keep-", "folder-",
    "new-", "vault.json", "indexed.json", "can-ask", "vault-asked", "vault-waiting",
    "vault-shrinks",
)  # fmt: skip
"""How the names of notes in ``pending`` begin."""

ORIGINALS = {
    "vault": "archived copies, some of them the last ones",
    "trash": "deleted sessions",
    "backups": "files as they were before they were rewritten",
    FOLDER: "links to sessions, some of them the last names",
}
"""Folders in the state folder that no purge removes; the last one goes where no name in it is the last of its file."""

FOLDERS = ("pending", "log", "making", "one-maker")
"""Folders in the state folder that hold nothing but notes of ours; they go once they are empty."""

SCRIPT = 64 * 1024
"""Bytes of a script of the client's that are read."""

REMOVE_MARKETPLACE = ("claude", "plugin", "marketplace", "remove", MARKETPLACE)


class Left(NamedTuple):
    """A file or folder that stays, what it is, and how it goes."""

    path: str
    what: str
    way: str


def left_behind(where: Where, goes: Collection[str] | None, commands: Collection[Collection[str]]) -> list[Left]:
    """What stays once the ``commands`` of the client ran and the paths ``goes`` are gone (None: no purge).

    Only what is there: asked again after they ran, it tells what they left.
    """
    rows = [*_of_ours(where, goes), *_of_the_client(where, commands)]
    if program := shutil.which(NAME, path=where.environ.get("PATH", "")):
        rows.append(Left(program, "this command", f"as it was installed: pipx, uv tool or pip uninstall {NAME}"))
    return rows


def written_to(where: Where) -> str:
    """Sentences on where parts wrote into projects; ``""`` for nowhere.

    The question ``written into projects``: given is where things are; what comes back is a sentence, or ``""``.
    """
    return " ".join(filter(None, (answer(where) for answer in seam.answers("written into projects"))))


def left_in(state: str, goes: Collection[str]) -> list[str]:
    """The paths in the state folder that stay once these are gone; itself, where it can't be listed."""

    def others(folder: str) -> list[str]:
        paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
        return [path for path in paths if path not in goes]

    def stays(path: str) -> bool:
        return os.path.basename(path) not in FOLDERS or not os.path.isdir(path) or bool(others(path))

    try:
        return [path for path in others(state) if stays(path)] if os.path.isdir(state) else []
    except OSError:
        return [state]


def _of_ours(where: Where, goes: Collection[str] | None) -> list[Left]:
    state, purge = where.state, in_shell("install --remove --purge")
    left = left_in(state, goes or _copies())
    if goes is None:
        whole = [Left(state, "links, settings, index, notes", purge)] if os.path.isdir(state) else []
        return [*whole, *(_original(path) for path in left if os.path.basename(path) in ORIGINALS)]
    return [_original(path) for path in left]


def _original(path: str) -> Left:
    return Left(path, ORIGINALS.get(os.path.basename(path), "not among what a purge removes"), _by_hand(path))


def _of_the_client(where: Where, commands: Collection[Collection[str]]) -> list[Left]:
    plugins = os.path.join(where.config, "plugins")
    rows = [
        # 2.1.42 leaves it; recent clients do with the one of --plugin-dir.
        Left(folder, "the engine's packages", f"{_by_hand(folder)}, where Claude Code leaves it")
        for folder in sorted(glob.glob(os.path.join(glob.escape(plugins), "data", f"{NAME}*")))
        if os.path.isfile(os.path.join(folder, "install.json"))
    ]
    if count := _scripts_that_name_us(where):
        scripts = os.path.join(where.config, "session-env")
        kind = f"the shell function `{NAME}` in scripts of {plural(count, 'session')}, which finds no engine any more"
        rows.append(
            Left(scripts, kind, f"find {quote_word(scripts)} -name '*.sh' -exec sed -i.old '/^{NAME}()/d' {{}} +")
        )
    copy = os.path.join(plugins, "cache", MARKETPLACE)
    if os.path.isdir(copy):
        rows.append(Left(copy, "the client's copy of the plugin", "Claude Code removes it by itself"))
    if claude_cli.marketplace(MARKETPLACE) and list(REMOVE_MARKETPLACE) not in commands:
        known = os.path.join(plugins, "known_marketplaces.json")
        rows.append(Left(known, f"names the marketplace {MARKETPLACE}", shlex.join(REMOVE_MARKETPLACE)))
    return rows


def _scripts_that_name_us(where: Where) -> int:
    """How many sessions have a script of the client's in which their start named the engine to the model's shell."""
    folders = set()
    for path in glob.glob(os.path.join(glob.escape(where.config), "session-env", "*", "*.sh")):
        try:
            named = f"{NAME}() {{".encode() in read_regular(path, SCRIPT)
        except OSError:
            continue
        if named:
            folders.add(os.path.dirname(path))
    return len(folders)


def _by_hand(path: str) -> str:
    return f"rm -r {quote_word(path)}"


def purged(state: str) -> list[str]:
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
    where = Where()
    links = () if any(apart(where)) else (folder(where),)
    return unpacked(where), os.path.join(where.state, COPIES), *links


def remove(state: str, goes: list[str]) -> None:
    """Remove these paths, and what is empty then. WriteFailed."""
    with failing_as(f"{state} could not be removed", "Check its permissions."):
        copies = _copies()
        for path in goes:
            if os.path.basename(path) == FOLDER and path not in copies:
                continue  # since it was asked, a name in it became the last of its file
            if path in copies:
                removal.discard(path, state)
            elif os.path.lexists(path):
                removal.remove(path, state)
        for folder in (*(os.path.join(state, name) for name in FOLDERS), state):
            if os.path.isdir(folder) and not os.listdir(folder):
                removal.remove_empty(folder, os.path.dirname(state), follow_root=True)
