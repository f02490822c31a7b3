"""The class ``Talk``, with which tests write a conversation step by step and build its digest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import Digest, MessageKind
from resume_hooks.sessions.locate import session_file
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    Record,
    assistant,
    call,
    result,
    user,
    write_session,
)

REJECTION_TEXT = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file)."
)


class Talk:
    """The records of one session, added one after another by the methods.

    Each new record follows the record added before it.
    """

    def __init__(self, session_id: str = SESSION, prefix: str = "r") -> None:
        self.session_id = session_id
        self.records: list[Record] = []
        self._prefix = prefix
        self._parent: str | None = None

    @property
    def last_line_number(self) -> int:
        """The line number of the last record, counted from 0."""
        return len(self.records) - 1

    @property
    def next_parent_uuid(self) -> str | None:
        """The uuid of the record that the next record will follow."""
        return self._parent

    def continue_from(self, uuid: str | None) -> Talk:
        """Make the next record follow the earlier record with this uuid."""
        self._parent = uuid
        return self

    def add(self, record: Record) -> Talk:
        """Add a record unchanged."""
        self.records.append(record)
        self._parent = record.get("uuid", self._parent)
        return self

    def _next_fields(self) -> dict[str, Any]:
        number = len(self.records)
        return {
            "uuid": f"{self._prefix}{number}", "parent": self._parent, "ts": number, "session_id": self.session_id,
        }  # fmt: skip

    def prompt(self, text: str, **extra: Any) -> Talk:
        """Add a prompt of the user."""
        return self.add(user(text, **self._next_fields(), **extra))

    def says(self, text: str, **extra: Any) -> Talk:
        """Add a text of the assistant."""
        return self.add(assistant(text, **self._next_fields(), **extra))

    def calls(
        self, tool: str, tool_input: Mapping[str, Any], answer: str | None = "ok", **extra: Any
    ) -> Talk:
        """Add a tool call and, unless ``answer`` is None, its result.

        ``error=True`` marks the result as failed. The other ``extra`` fields are added to the
        result's record.
        """
        call_id = f"call-{self._prefix}{len(self.records)}"
        cwd = extra.pop("cwd", CWD)
        self.add(assistant([call(call_id, tool, **tool_input)], **self._next_fields(), cwd=cwd))
        if answer is None:
            return self
        error = {"is_error": True} if extra.pop("error", False) else {}
        return self.add(
            user([result(call_id, answer, **error)], **self._next_fields(), cwd=cwd, **extra)
        )

    def runs(self, command: str, output: str = "ok", **extra: Any) -> Talk:
        """Add a shell command with its output. The command succeeded unless ``error=True`` is given."""
        return self.calls("Bash", {"command": command}, output, **extra)

    def runs_and_fails(self, command: str, output: str = "boom", status: int = 1) -> Talk:
        """Add a shell command that failed with this exit status."""
        return self.runs(command, f"Exit code {status}\n{output}", error=True)

    def edits(self, path: str, **extra: Any) -> Talk:
        """Add a call of the tool ``Edit`` for a file."""
        return self.calls(
            "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, **extra
        )

    def write(self, home: ConfigHome) -> Path:
        """Write the session's transcript into the project's folder and return its path."""
        return Path(write_session(home.project(), self.session_id, self.records))

    def digest(self, home: ConfigHome) -> Digest:
        """Write the session's transcript and return the session's digest."""
        return build_digest(session_file(str(self.write(home))), home.where)


def entry_texts(digest: Digest, section: str) -> list[str]:
    """Return the texts of the entries in a section."""
    return [entry.text for entry in digest.section_entries(section)]


def entry_notes(digest: Digest, section: str) -> dict[str, str]:
    """Return the note of each entry in a section, by the entry's text."""
    return {entry.text: entry.note for entry in digest.section_entries(section)}


def entry_line_numbers(digest: Digest, section: str) -> dict[str, int]:
    """Return the line number that each entry of a section refers to, by the entry's text."""
    return {
        entry.text: int(entry.ref.rpartition(":")[2]) for entry in digest.section_entries(section)
    }


def request_texts(digest: Digest) -> list[str]:
    """Return the user's messages, oldest first."""
    return message_texts(digest, MessageKind.REQUEST)


def message_texts(digest: Digest, kind: MessageKind) -> list[str]:
    """Return the texts of the messages of a kind, oldest first."""
    return [message.text for message in digest.talk if message.kind is kind]


def request_line_numbers(digest: Digest) -> dict[str, int]:
    """Return the line number of each message of the user, by the message's text."""
    asked = [message for message in digest.talk if message.kind is MessageKind.REQUEST]
    return {message.text: int(message.ref.rpartition(":")[2]) for message in asked}
