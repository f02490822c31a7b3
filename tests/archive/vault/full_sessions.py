"""Functions that write sessions with every kind of file, and that read the vault's contents."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import vault_folder
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.sessions.session_files import SessionFile
from tests.builders import SESSION, ConfigHome, conversation, custom_title, write_session

FIVE_DAYS_AGO = time.time() - 5 * 24 * 60 * 60


def session_with_every_file(
    home: ConfigHome, written_id: str = SESSION, title: str = "Fix the parser", turns: int = 2
) -> SessionFile:
    """Write a session with sub-agents in both places, a large output, a backup and a task."""
    folder = home.project()
    rows = [*conversation(turns, session_id=written_id), custom_title(title, written_id)]
    path = write_session(folder, written_id, rows, mtime=FIVE_DAYS_AGO)
    own, backups = folder / written_id, home.config / "file-history" / written_id
    files = (
        (
            own / "subagents" / "deep" / "agent-a1.jsonl",
            f'{{"sessionId":"{written_id}"}}\n'.encode(),
        ),
        (own / "tool-results" / "toolu_1.txt", b"large\n" * 10),
        (backups / "abc@v1", b"the user's file"),
        (home.config / "tasks" / written_id / "1.json", b'{"id":"1"}'),
        (
            folder / f"agent-{written_id[:4]}.jsonl",
            json.dumps({"sessionId": written_id}).encode() + b"\n",
        ),
        (folder / f"agent-{written_id[:4]}.meta.json", b"{}"),
    )
    write_old_files(files)
    return locate.session_file(path)


def write_old_files(files: Iterable[tuple[Path, bytes]]) -> None:
    """Write files at their paths, with a time of five days ago."""
    for place, content in files:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        os.utime(place, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))


def client_files(home: ConfigHome) -> dict[str, bytes]:
    """Return the content of each file in the client's folders."""
    roots = (home.config / "projects", home.config / "file-history")
    return {
        str(path.relative_to(home.config)): path.read_bytes()
        for root in roots
        for path in root.rglob("*")
        if path.is_file()
    }


def archived_contents(archived_session: ArchivedSession, home: ConfigHome) -> dict[str, bytes]:
    """Return the content of each archived file, by its path."""
    folder = Path(unpacked_transcript(archived_session, home.where)).parent
    found = {}
    for part in archived_session.parts:
        steps = part.place.split("/")
        path = (
            folder / "file-history" / steps[-1]
            if steps[0] == "file-history"
            else folder.joinpath(*steps[2:])
        )
        found[part.place] = path.read_bytes()
    return found


def vault_files(home: ConfigHome) -> list[str]:
    """Return the paths of all files in the vault except locks."""
    root = Path(vault_folder(home.where))
    return sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and path.name != "lock"
    )
