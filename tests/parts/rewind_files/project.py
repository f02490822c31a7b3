"""A small project, and a session with the client's backups of its files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.rewind_files import files_at_prompt, history
from resume_hooks.parts.rewind_files.plan import FilesPlan
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import SessionFile
from tests.builders import (
    ConfigHome,
    Record,
    assistant,
    iso_time,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.builders import session_id as number_id

SESSION = number_id(7)

Content = str | bytes | None


def prompt_id(number: int) -> str:
    """Return the uuid of a prompt by its number."""
    return number_id(1000 + number)


def backup_entry(name: str | None, version: int = 1, **more: Any) -> Record:
    """Return the entry of a backup in a snapshot."""
    return {"backupFileName": name, "version": version, "backupTime": iso_time(0), **more}


def snapshot_record(
    message_id: str, backups: Mapping[str, Any], *, owner_id: str = "", is_update: bool = False
) -> Record:
    """Return a snapshot at the prompt ``message_id``, or an update of it.

    An update belongs to the record ``owner_id``.
    """
    inner = {"messageId": message_id, "trackedFileBackups": dict(backups), "timestamp": iso_time(0)}
    kind = "file-history-snapshot"
    return {
        "type": kind,
        "messageId": owner_id or message_id,
        "snapshot": inner,
        "isSnapshotUpdate": is_update,
    }


def delta_record(message_id: str, path: str, backup: Any) -> Record:
    """Return the record that the client begins to back up a file at the prompt ``message_id``."""
    names = {
        "messageId": "a",
        "snapshotMessageId": message_id,
        "trackingPath": path,
        "backup": backup,
    }
    return {"type": "file-history-delta", **names, "timestamp": iso_time(0)}


def write_call(path: str, content: str, *, uuid: str, parent: str) -> list[Record]:
    """Return a call of Write and its result."""
    done = {"type": "update", "filePath": path, "content": content, "structuredPatch": []}
    call = tool_use(
        f"toolu_{uuid}",
        uuid=f"{uuid}-call",
        parent=parent,
        name="Write",
        tool_input={"file_path": path},
    )
    answer = tool_result(f"toolu_{uuid}", uuid=uuid, parent=f"{uuid}-call")
    return [call, {**answer, "toolUseResult": done}]


class Project:
    """A project folder for a test, the config home, and the client's backups of the project's files."""

    def __init__(self, home: ConfigHome, folder: Path) -> None:
        self.home = home
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.store = home.config / "file-history" / SESSION

    def path_of(self, name: str) -> Path:
        """Return the path of a file of the project."""
        return self.folder / name

    def write_file(self, name: str, content: str | bytes, mode: int = 0o644) -> Path:
        """Write a file of the project and return its path."""
        path = self.path_of(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def write_backup(
        self, name: str, content: Content, version: int = 1, mode: int = 0o644
    ) -> Record:
        """Write a backup as the client does, and return its entry.

        If ``content`` is None, the entry says that no file existed.
        """
        if content is None:
            return backup_entry(None, version)
        self.store.mkdir(parents=True, exist_ok=True)
        kept = f"{hashlib.sha256(name.encode()).hexdigest()[:16]}@v{version}"
        (self.store / kept).write_bytes(content.encode() if isinstance(content, str) else content)
        (self.store / kept).chmod(mode)
        return backup_entry(kept, version)

    def write_session(self, records: Sequence[Record | bytes]) -> SessionFile:
        """Write a session of the project with these records."""
        mine = [
            {**record, "cwd": str(self.folder)}
            if isinstance(record, dict) and "cwd" in record
            else record
            for record in records
        ]
        return locate.session_file(
            write_session(self.home.project(str(self.folder)), SESSION, mine)
        )

    def session_with_backups(
        self, backups: Mapping[str, Any], prompt_count: int = 1
    ) -> SessionFile:
        """Write a session whose first prompt has these backups."""
        return self.write_session(
            [*turns_on_one_chain(prompt_count), snapshot_record(prompt_id(1), backups)]
        )

    def plan_restore(self, session: SessionFile, position: str = "1") -> FilesPlan:
        """Return the plan that restores the files at a prompt, for a user in the folder ``$PWD``."""
        read = history.read_file_history(session)
        return files_at_prompt.plan_rewind(
            read,
            files_at_prompt.find_prompt_state(read, files_at_prompt.parse_target(position)),
            Where({**os.environ, **self.home.environ}),
        )

    def list_files(self) -> dict[str, tuple[int, bytes]]:
        """Return the mode and the bytes of each file of the project."""
        files = [
            path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink()
        ]
        return {
            str(path.relative_to(self.folder)): (path.stat().st_mode & 0o7777, path.read_bytes())
            for path in files
        }


def turns_on_one_chain(count: int) -> list[Record]:
    """Return ``count`` prompts with an answer each, on one chain."""
    found: list[Record] = []
    for number in range(1, count + 1):
        before = f"a{number - 1}" if number > 1 else None
        found.append(user(f"prompt {number}", uuid=prompt_id(number), parent=before, ts=2 * number))
        found.append(
            assistant("done", uuid=f"a{number}", parent=prompt_id(number), ts=2 * number + 1)
        )
    return found


def deny_writing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make a file or folder unwritable, even if root runs the tests."""
    real = os.access

    def access(path: str, mode: int, **more: Any) -> bool:
        return not (path == name and mode & os.W_OK) and real(path, mode, **more)

    monkeypatch.setattr(os, "access", access)


def read_manifest(folder: str) -> Any:
    """Return the manifest of a run."""
    return json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
