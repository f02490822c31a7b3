"""A glance at a session: what its first and last 64 KB tell, whatever the size of the file.

Titles, tag, branch, folder and dates come from here; the middle is read only where the ends can't tell of any talk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cached_property

from resume_hooks import clock, records
from resume_hooks.errors import SessionNotFound
from resume_hooks.lines import BOM, read_lines

REACH = 65_536
"""Bytes read at each end: what the client's own listing reads."""

TITLE_LENGTH = 80


class Glance:
    """The two ends of one session file. SessionNotFound where it can't be read."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as stream:
                status = os.fstat(stream.fileno())
                self.head = stream.read(REACH)
                start = max(0, status.st_size - REACH - 1)
                stream.seek(start)
                tail = stream.read(REACH + 1) if len(self.head) == REACH else b""
        except OSError as error:
            raise SessionNotFound(f"{path} can't be read: {error.strerror}", "Check the path.") from error
        self.mtime: float = status.st_mtime
        self.size: int = status.st_size
        """Bytes of the file as it was read; a client may be writing it."""
        self.small = not tail or not start
        """Whether the head is the whole file."""
        if self.small:
            self.head = tail or self.head
            self.size = len(self.head)
        self.tail = self.head if self.small else tail[1:]
        self._tail_starts_line = tail[:1] == b"\n"

    @cached_property
    def first_records(self) -> list[records.Record]:
        """The whole records of the head, in file order."""
        return _whole(self.head, keep_last=self.small)

    @cached_property
    def last_records(self) -> list[records.Record]:
        """The whole records of the tail, in file order."""
        if self.small:
            return self.first_records
        return _whole(self.tail if self._tail_starts_line else self.tail.partition(b"\n")[2], keep_last=True)

    @cached_property
    def custom_title(self) -> str:
        """The title that a person (or a derived session) was given, or ``""``."""
        return self._last("custom-title", "customTitle")

    @cached_property
    def title(self) -> str:
        """One line of at most 80 characters: custom title, the client's own, a summary, the first prompt."""
        found = (
            self.custom_title
            or self._last("ai-title", "aiTitle")
            or self._last("summary", "summary")
            or self.first_prompt
            or "(no prompt yet)"
        )
        return one_line(found, TITLE_LENGTH)

    @cached_property
    def first_prompt(self) -> str:
        """The text of the first prompt within reach, or ``""``."""
        prompts = (records.prompt_text(r) for r in self.first_records if records.is_prompt(r))
        return next((found for found in prompts if found.strip()), "")

    @cached_property
    def tag(self) -> str:
        """The last tag, ``""`` for none."""
        return self._last("tag", "tag")

    @property
    def created(self) -> str:
        """The instant of the first dated record, else the file's own time."""
        stamps = (clock.normal(r.get("timestamp")) for r in self.first_records)
        return next(filter(None, stamps), "") or clock.normal(self._raw_first("timestamp")) or self.ended

    @property
    def ended(self) -> str:
        """The instant of the last dated record, else the file's own time."""
        stamps = (clock.normal(r.get("timestamp")) for r in reversed(self.last_records))
        return next(filter(None, stamps), "") or clock.from_epoch(self.mtime)

    @property
    def cwd(self) -> str:
        """The working directory that the session was started in; later records follow the model's ``cd``."""
        return self._first_field("cwd") or self._raw_first("cwd")

    @property
    def branch(self) -> str:
        """The last git branch seen, ``""`` for none."""
        return self._last_field("gitBranch")

    @property
    def version(self) -> str:
        """The version of the client that wrote last."""
        return self._last_field("version") or self._first_field("version")

    @property
    def entrypoint(self) -> str:
        """How the session was started: cli, sdk-cli, sdk-py, sdk-ts; ``""`` on old clients."""
        return self._first_field("entrypoint")

    @cached_property
    def own_turns(self) -> bool:
        """Whether somebody asked something here: false for new sessions and for untouched children of ours."""
        return self.holds(is_talk)

    @cached_property
    def touched(self) -> bool:
        """Whether somebody went on here; false for a child of ours that was never resumed, whatever it holds."""
        at = self.derived_at
        if not at:
            return self.own_turns
        return self.holds(lambda record: is_talk(record) and clock.normal(record.get("timestamp")) > at)

    def holds(self, wanted: Callable[[records.Record], bool]) -> bool:
        """Whether some record is ``wanted``; the middle of the file is read only where its ends hold none."""
        if any(wanted(record) for record in self._seen):
            return True
        if self.small:
            return False
        try:
            with open(self.path, "rb") as stream:
                bodies = (line.body for line in read_lines(stream))
                return any((record := records.parse(body)) is not None and wanted(record) for body in bodies)
        except OSError:
            return False  # gone since it was glanced at

    @cached_property
    def derived_at(self) -> str:
        """When the session was derived from another, as its first line says; ``""`` for an original."""
        first = self.first_records[0] if self.first_records else {}
        for kind, field in (("continue_metadata", "continued_at"), ("trim_metadata", "trimmed_at")):
            metadata = first.get(kind)
            if isinstance(metadata, dict) and (at := clock.normal(metadata.get(field))):
                return at
        return ""

    @cached_property
    def is_sidechain(self) -> bool:
        """Whether the file is a sub-agent's transcript and no session of its own."""
        if self.first_records:
            return bool(self.first_records[0].get("isSidechain"))
        return b'"isSidechain":true' in self.head  # a first line that is longer than the reach

    @property
    def folders(self) -> list[str]:
        """The working directories seen at both ends, in order of appearance."""
        seen = [records.string(record, "cwd") for record in self._seen]
        return list(dict.fromkeys(folder for folder in (self.cwd, *seen) if folder))

    @property
    def _seen(self) -> list[records.Record]:
        return self.first_records if self.small else [*self.first_records, *self.last_records]

    def _last(self, kind: str, field: str) -> str:
        """A bookkeeping value: the last one within reach wins, tail before head."""
        marker = f'"{kind}"'.encode()
        for region, found in ((self.tail, "last_records"), (self.head, "first_records")):
            if marker in region:
                for record in reversed(getattr(self, found)):
                    if records.kind(record) == kind:
                        return records.string(record, field)
        return ""

    def _first_field(self, field: str) -> str:
        return next((value for r in self.first_records if (value := records.string(r, field))), "")

    def _last_field(self, field: str) -> str:
        return next((value for r in reversed(self.last_records) if (value := records.string(r, field))), "")

    def _raw_first(self, field: str) -> str:
        """A field of a first line that is longer than the reach, found as text."""
        start = self.head.find(f'"{field}":"'.encode())
        if start < 0:
            return ""
        start += len(field) + 4
        end = self.head.find(b'"', start)
        try:
            value = json.loads(b'"' + self.head[start:end] + b'"')
        except ValueError:
            return ""
        return str(value)


def one_line(text: str, limit: int) -> str:
    """``text`` with its white space collapsed, cut to ``limit`` characters with an ellipsis."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def is_talk(record: records.Record) -> bool:
    """Whether a record is of a conversation: somebody asks, or a model answers."""
    return records.is_prompt(record) or (records.kind(record) == "assistant" and bool(records.model(record)))


def _whole(region: bytes, *, keep_last: bool) -> list[records.Record]:
    bodies = region.removeprefix(BOM).split(b"\n")
    if not keep_last:
        bodies.pop()
    return [record for body in bodies if (record := records.parse(body)) is not None]
