"""A conversation that is written step by step, for tests of its digest."""

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

REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file)."
)


class Talk:
    """Records of one session, each following the one before; ``at`` is the line of the last one."""

    def __init__(self, session_id: str = SESSION, prefix: str = "r") -> None:
        self.session_id = session_id
        self.records: list[Record] = []
        self._prefix = prefix
        self._parent: str | None = None

    @property
    def at(self) -> int:
        """The line of the last record."""
        return len(self.records) - 1

    @property
    def leaf(self) -> str | None:
        """The uuid of the last record on the chain."""
        return self._parent

    def back_to(self, uuid: str | None) -> Talk:
        """Go on from an earlier record."""
        self._parent = uuid
        return self

    def add(self, record: Record) -> Talk:
        """Any record, as it is."""
        self.records.append(record)
        self._parent = record.get("uuid", self._parent)
        return self

    def _next(self) -> dict[str, Any]:
        number = len(self.records)
        return {
            "uuid": f"{self._prefix}{number}", "parent": self._parent, "ts": number, "session_id": self.session_id,
        }  # fmt: skip

    def prompt(self, text: str, **extra: Any) -> Talk:
        """Add a prompt of the user."""
        return self.add(user(text, **self._next(), **extra))

    def says(self, text: str, **extra: Any) -> Talk:
        """Add a text of the assistant."""
        return self.add(assistant(text, **self._next(), **extra))

    def calls(
        self, tool: str, given: Mapping[str, Any], answer: str | None = "ok", **extra: Any
    ) -> Talk:
        """A tool call and its answer, None for no answer; ``error`` marks it as failed, the rest is of its record."""
        call_id = f"call-{self._prefix}{len(self.records)}"
        cwd = extra.pop("cwd", CWD)
        self.add(assistant([call(call_id, tool, **given)], **self._next(), cwd=cwd))
        if answer is None:
            return self
        error = {"is_error": True} if extra.pop("error", False) else {}
        return self.add(user([result(call_id, answer, **error)], **self._next(), cwd=cwd, **extra))

    def runs(self, command: str, output: str = "ok", **extra: Any) -> Talk:
        """A shell command that ran well, unless it is an ``error``."""
        return self.calls("Bash", {"command": command}, output, **extra)

    def fails(self, command: str, output: str = "boom", status: int = 1) -> Talk:
        """A shell command that ended with an exit status."""
        return self.runs(command, f"Exit code {status}\n{output}", error=True)

    def edits(self, path: str, **extra: Any) -> Talk:
        """A file is changed by a tool."""
        return self.calls(
            "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, **extra
        )

    def write(self, home: ConfigHome) -> Path:
        """The session's file."""
        return Path(write_session(home.project(), self.session_id, self.records))

    def digest(self, home: ConfigHome) -> Digest:
        """Its digest."""
        return build_digest(session_file(str(self.write(home))), home.where)


def texts(digest: Digest, section: str) -> list[str]:
    """The texts of a section."""
    return [entry.text for entry in digest.section_entries(section)]


def notes(digest: Digest, section: str) -> dict[str, str]:
    """The notes of a section, by text."""
    return {entry.text: entry.note for entry in digest.section_entries(section)}


def lines(digest: Digest, section: str) -> dict[str, int]:
    """The lines that the entries of a section refer to, by text."""
    return {
        entry.text: int(entry.ref.rpartition(":")[2]) for entry in digest.section_entries(section)
    }


def requests(digest: Digest) -> list[str]:
    """Return the user's messages, oldest first."""
    return messages(digest, MessageKind.REQUEST)


def messages(digest: Digest, kind: MessageKind) -> list[str]:
    """The texts of the messages of a kind, oldest first."""
    return [message.text for message in digest.talk if message.kind is kind]


def request_lines(digest: Digest) -> dict[str, int]:
    """Return the lines that the user's text refers to, by text."""
    asked = [message for message in digest.talk if message.kind is MessageKind.REQUEST]
    return {message.text: int(message.ref.rpartition(":")[2]) for message in asked}
