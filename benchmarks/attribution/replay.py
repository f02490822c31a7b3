"""Rebuild the files that sessions of the corpus edited, with the writer of each line.

The files are rebuilt from the records of the edits. This module uses no code of the rule that is
measured. It compares the texts before and after each edit with difflib.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

SessionIds = frozenset[str]
NO_SESSIONS: SessionIds = frozenset()


class RecordedEdit(NamedTuple):
    """An edit of a file. ``sessions`` are the sessions that contain its record.

    ``old_text`` is the text that the edit replaced, or None if the edit wrote the whole file. ``content_before``
    is the file's content before the edit, if the record contains it. ``replacement_count`` is the number of
    replacements, or -1 if all occurrences were replaced.
    """

    time: str
    sessions: SessionIds
    content_before: str | None
    old_text: str | None
    new_text: str
    replacement_count: int

    def find_added_lines(self) -> set[str]:
        """Return the lines that the edit added."""
        return set(split_lines(self.new_text)).difference(
            split_lines(self.old_text if self.old_text is not None else self.content_before or "")
        )


class RebuiltFile(NamedTuple):
    """A file after its last edit.

    ``writers`` are the sessions that wrote each line, or an empty set if they are unknown.
    ``writers_by_line`` maps each line that the file had at any time to the sessions that wrote it.
    ``root`` is the folder of the project, and ``relative_path`` is the file's path below it.
    ``first_editing_session`` is the session with the first edit, and ``last_editing_sessions`` are the
    sessions with the last edit.
    """

    root: str
    relative_path: str
    lines: list[str]
    writers: list[SessionIds]
    writers_by_line: Mapping[str, set[str]]
    first_editing_session: str
    last_editing_sessions: SessionIds


def read_edits_by_file(
    transcripts: Mapping[Path, str],
) -> dict[tuple[str, str], list[RecordedEdit]]:
    """Return the edits of each file. Each key is the root folder of a project and a path below it."""
    sessions_by_uuid: dict[str, set[str]] = defaultdict(set)
    found: dict[str, dict[str, Any]] = {}
    roots: set[str] = set()
    for path, session in transcripts.items():
        rows = list(_read_records(path))
        roots.update([row["cwd"] for row in rows if row.get("cwd")][:1])
        for row in rows:
            details = row.get("toolUseResult")
            if (
                isinstance(details, dict)
                and "filePath" in details
                and not {"content", "newString"}.isdisjoint(details)
            ):
                sessions_by_uuid[row["uuid"]].add(session)
                found[row["uuid"]] = row
    files: dict[tuple[str, str], list[RecordedEdit]] = defaultdict(list)
    for uuid, row in found.items():
        details = row["toolUseResult"]
        path = details["filePath"]
        root = min((each for each in roots if path.startswith(f"{each}/")), key=len, default="")
        before = "" if details.get("type") == "create" else details.get("originalFile")
        new = details["newString"] if "newString" in details else details["content"]
        times = -1 if details.get("replaceAll") else 1
        step = RecordedEdit(
            row["timestamp"],
            frozenset(sessions_by_uuid[uuid]),
            before,
            details.get("oldString"),
            new,
            times,
        )
        if root:
            files[root, path.removeprefix(f"{root}/")].append(step)
    return files


def read_commands(transcripts: Mapping[Path, str]) -> Iterator[tuple[str, str]]:
    """Yield pairs: a session, and a shell command of that session.

    A replay cannot know what these commands wrote.
    """
    for path, session in transcripts.items():
        for row in _read_records(path):
            message = row.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            for block in content if isinstance(content, list) else ():
                if isinstance(block, dict) and block.get("name") == "Bash":
                    yield session, str(block["input"].get("command", ""))


def rebuild_file(root_and_path: tuple[str, str], edits: list[RecordedEdit]) -> RebuiltFile | None:
    """Return a file with the writers of its lines, or None if an edit cannot be replayed."""
    text, writers, ever = "", list[SessionIds](), defaultdict[str, set[str]](set)
    edits = sorted(edits, key=lambda edit: edit.time)
    for edit in edits:
        before = text if edit.content_before is None else edit.content_before
        if edit.content_before is None and (not edit.old_text or text.count(edit.old_text) != 1):
            return None
        after = (
            before.replace(edit.old_text, edit.new_text, edit.replacement_count)
            if edit.old_text
            else edit.new_text
        )
        for target, target_writers in ((before, NO_SESSIONS), (after, edit.sessions)):
            writers = _find_writers_of_new_lines(
                split_lines(text), split_lines(target), writers, target_writers
            )
            text = target
            for line, written in zip(split_lines(text), writers, strict=True):
                ever[line] |= written
    lines = split_lines(text)
    return (
        RebuiltFile(
            *root_and_path, lines, writers, ever, min(edits[0].sessions), edits[-1].sessions
        )
        if lines
        else None
    )


def split_lines(text: str) -> list[str]:
    """Return the lines of a text."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _find_writers_of_new_lines(
    old_lines: list[str],
    new_lines: list[str],
    old_writers: list[SessionIds],
    added_line_writers: SessionIds,
) -> list[SessionIds]:
    """Return the writers of each of the new lines.

    A line that the edit kept has its writers from ``old_writers``. The writers of added lines are
    ``added_line_writers``.
    """
    found: list[SessionIds] = []
    for kind, begin, end, first, last in SequenceMatcher(
        None, old_lines, new_lines, autojunk=False
    ).get_opcodes():
        found += (
            old_writers[begin:end] if kind == "equal" else [added_line_writers] * (last - first)
        )
    return found


def _read_records(path: Path) -> Iterator[dict[str, Any]]:
    for raw in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(raw)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record
