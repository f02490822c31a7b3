"""A function that deletes a session as resume-hooks 0.2.0 did, with whole folders in the manifest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

from tests.builders import ConfigHome

DELETION_TIME = "2026-11-27T09:30:00.000Z"
ENTRY_NAME = DELETION_TIME.replace(":", "-")


def move_as_version_0_2_0(
    home: ConfigHome,
    session_id: str,
    *,
    is_complete: bool = True,
    hidden_parts: tuple[str, ...] = (),
) -> Path:
    """Move a session and its files to the trash as version 0.2.0 did.

    Parts in ``hidden_parts`` keep the temporary names that they had during the move.
    """
    project = home.project()
    key = f"projects/{project.name}"
    agents = [f"{key}/{path.name}" for path in sorted(project.glob("agent-*"))]
    folders = [f"{key}/{session_id}", f"file-history/{session_id}", f"tasks/{session_id}"]
    places = [f"{key}/{session_id}.jsonl", *agents, *folders]
    folder = home.config / "resume-hooks" / "trash" / session_id / ENTRY_NAME
    folder.mkdir(parents=True, mode=0o700)
    parts = []
    for place in places:
        path = home.config / place
        first, _, rest = place.partition("/")
        name = first if first in {"file-history", "tasks"} else rest.rpartition("/")[2]
        files = (
            sorted(each for each in path.rglob("*") if not each.is_dir())
            if path.is_dir()
            else [path]
        )
        whole = hashlib.sha256()
        for file in files:
            inner = os.fsencode(os.path.relpath(file, path)) if file != path else b""
            whole.update(inner + b"\0" + hashlib.sha256(file.read_bytes()).digest())
        size = sum(file.stat().st_size for file in files)
        parts.append(
            {
                "place": place,
                "files": len(files),
                "size": size,
                "sha256": whole.hexdigest() if is_complete else "",
            }
        )
        target = (
            path.with_name(f".{path.name}.{ENTRY_NAME}.moving")
            if name in hidden_parts
            else folder / name
        )
        shutil.move(path, target)
    manifest = {
        "session_id": session_id,
        "title": "Fix the parser",
        "cwd": "/home/user/proj",
        "ended": "2026-11-20T09:30:00.000Z",
        "deleted_at": DELETION_TIME,
        "parts": parts,
        "complete": is_complete,
        "version": 1,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2))
    return folder
