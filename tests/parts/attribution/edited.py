"""A repository whose files sessions edit.

Each edit changes the file on disk and returns the records that the client would write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.builders import (
    ConfigHome,
    Record,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.search.index.probe import OLD_FILE_TIME, uuid_of_text

FIRST_VERSION_TEXT = "def total(rows):\n    return sum(row.price for row in rows)\n"


class Repository:
    """A folder with ``.git``; file names are relative to the folder.

    Each new record has a later time than the one before.
    """

    def __init__(self, home: ConfigHome, root: Path) -> None:
        self.home = home
        self.root = root
        (root / ".git").mkdir(parents=True)
        self._made = 0

    def read_text(self, name: str) -> str:
        """Return the content of a file."""
        return (self.root / name).read_text()

    def put_file(self, name: str, text: str | bytes) -> Path:
        """Write a file as a person does, outside of any session."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def edit_file(self, name: str, old: str, new: str, **fields: Any) -> list[Record]:
        """Edit the file on disk and return the records of an Edit."""
        before = self.read_text(name)
        assert old in before
        self.put_file(name, before.replace(old, new, 1))
        given = {"file_path": str(self.root / name), "old_string": old, "new_string": new}
        details = {
            "filePath": given["file_path"],
            "oldString": old,
            "newString": new,
            "originalFile": before,
        }
        return self.call_records("Edit", given, details, **fields)

    def write_file(self, name: str, text: str, **fields: Any) -> list[Record]:
        """Write the file on disk and return the records of a Write."""
        known = (self.root / name).exists()
        before = self.read_text(name) if known else None
        self.put_file(name, text)
        given = {"file_path": str(self.root / name), "content": text}
        details = {
            "type": "update" if known else "create",
            "filePath": given["file_path"],
            "content": text,
        }
        return self.call_records("Write", given, {**details, "originalFile": before}, **fields)

    def shell_records(self, command: str, **fields: Any) -> list[Record]:
        """Return the records of a shell command, which does not run."""
        return self.call_records(
            "Bash", {"command": command}, {"stdout": "", "stderr": ""}, **fields
        )

    def call_records(
        self,
        name: str,
        tool_input: Record,
        details: Record | None,
        *,
        answer: str = "ok",
        failed: bool = False,
        **more: Any,
    ) -> list[Record]:
        """Return the records of a call and its result."""
        self._made += 1
        own = f"toolu_{self._made}"
        around = {"cwd": str(self.root), "ts": 60 * self._made, **more}
        call = tool_use(
            own,
            uuid=uuid_of_text(f"{own}c"),
            parent=None,
            name=name,
            tool_input=tool_input,
            **around,
        )
        done = tool_result(own, answer, uuid=uuid_of_text(f"{own}r"), parent=None, **around)
        done["message"]["content"][0]["is_error"] = failed
        return [
            call,
            {**done, "toolUseResult": answer if failed else details}
            if details is not None
            else done,
        ]

    def write_session(
        self, number: int, *steps: list[Record], subagent_id: str = "", has_prompt: bool = True
    ) -> str:
        """Write a session or a sub-agent with these calls, and return the session's id."""
        own = session_id(number)
        folder = self.home.project(str(self.root))
        asked = user(
            "go on",
            uuid=uuid_of_text(f"asked {number} {subagent_id}"),
            session_id=own,
            cwd=str(self.root),
        )
        rows = [{**row, "sessionId": own} for step in steps for row in step]
        if subagent_id:
            rows = [{**row, "isSidechain": True} for row in rows]
        place, name = (folder / own / "subagents", subagent_id) if subagent_id else (folder, own)
        write_session(place, name, [*([asked] if has_prompt else []), *rows], mtime=OLD_FILE_TIME)
        return own
