"""The facts that a digest is made of, each with its place: what was said, what ran, what was called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from resume_hooks.transcripts.records import FILE_KEYS

_PATHS = (*FILE_KEYS, "path", "destination", "relative_path", "target_file", "filename")


class Place(NamedTuple):
    """A record: the session's id, the 0-based line, and which in ``order`` it was of all that were read."""

    session_id: str
    number: int
    order: int

    def __str__(self) -> str:
        """As a reference."""
        return f"{self.session_id}:{self.number}"


class Said(NamedTuple):
    """A text, where it was said, and the uuid of that record, ``""`` where it has none.

    ``correcting``: by a user who stopped or refused what was going on.
    """

    text: str
    place: Place
    uuid: str = ""
    correcting: bool = False


class Run(NamedTuple):
    """A shell command that ran.

    ``folder`` is where it was run, ``""`` unknown; ``status`` its exit status, None where nobody told it. ``failed``
    is told apart from that: old clients say of a failed command no status. ``answered`` is where its ``output`` stands.
    """

    command: str
    place: Place
    answered: Place
    folder: str
    status: int | None
    failed: bool
    output: str
    background: bool = False


class Call(NamedTuple):
    """A tool call that waits for its answer, and the folder that it was made in."""

    tool: str
    given: Mapping[str, Any]
    place: Place
    folder: str = ""

    def text(self, *keys: str) -> str:
        """The first of some inputs that is a text and says anything; ``""`` for none."""
        return next((value for key in keys if isinstance(value := self.given.get(key), str) and value), "")

    def paths(self) -> list[str]:
        """The files that it names."""
        given = self.given
        return [path for key in _PATHS if (path := given.get(key)) and isinstance(path, str)]


class Refusal(NamedTuple):
    """A call that was never carried out: the answer's words, of the user or, where not ``by_user``, of a rule."""

    call: Call
    said: Said
    by_user: bool


class Change(NamedTuple):
    """A file that a tool wrote: its path, the folder that it was called in, and where."""

    path: str
    folder: str
    place: Place
