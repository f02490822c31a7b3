"""Children that Codex resumes, as verbs ask for them: of its own sessions, and of other agents'."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from resume_hooks.derive import cut_point
from resume_hooks.derive.child.draft import ChildPlace, Draft, draft
from resume_hooks.derive.child.receipt import FRESH
from resume_hooks.derive.child.write import ChildPlan
from resume_hooks.derive.cut_point import Truncator
from resume_hooks.derive.fork import ForkPlan, SpokenText
from resume_hooks.derive.fresh_child import Opening
from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan, wanted_of
from resume_hooks.parts.codex.derive import fork, thread, untrim
from resume_hooks.parts.codex.derive.rollout import RolloutBody, item_record, message, opening_body, told_body
from resume_hooks.parts.codex.sessions.files import SESSIONS, Rollouts
from resume_hooks.parts.codex.sessions.strategy import NAME
from resume_hooks.parts.codex.transcripts.lines import OPENING
from resume_hooks.parts.codex.transcripts.meta import name_of, read_meta
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of, ends_of
from resume_hooks.sessions.child_titles import Kind, child_title
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts.records import USER, Record
from resume_hooks.transcripts.transcript import scan

VERSION = "0.125.0"
"""The client that a session says it was held in that was held in none: old enough for every one that resumes it."""

PROVIDER, ORIGINATOR = "openai", "codex_cli_rs"
_PROVIDER = re.compile(r'^\s*model_provider\s*=\s*["\']([\w.-]{1,100})["\']', re.MULTILINE)
MAX_CONFIG = 1024 * 1024  # bytes of the settings that are looked at


class CodexWriter:
    """Writes below the ``sessions`` of a CODEX_HOME, and nothing else there."""

    def __init__(self, home: str, where: Where) -> None:
        self._home = home
        self._where = where

    def draft(self, session: SessionFile, kind: Kind, output_dir: str | None = None, *, about: str = "") -> Draft:
        """A child in the folder of today; its name tells local time, as Codex has it."""
        now = time.localtime()
        folder = os.path.join(self._home, SESSIONS, time.strftime("%Y", now), *time.strftime("%m %d", now).split())
        started = time.strftime("%Y-%m-%dT%H-%M-%S", now)
        place = ChildPlace(NAME, folder, lambda session_id: name_of(session_id, started))
        ends = ends_of(session, self._where)
        made = draft(session, ends, kind, self._where, output_dir, about=about, place=place)
        count = 1 + sum(row.kind == kind for row in made.ancestors)
        return made._replace(own_title=child_title(made.root_title, kind, count) if kind in FRESH else ends.title)

    def opening(self, told: Opening) -> RolloutBody:
        """A child that opens with what we tell."""
        return opening_body(told, self._meta(told.child))

    def conversation(self, made: Draft, head: bytes, told: str, said: Sequence[SpokenText]) -> RolloutBody:
        """A child that holds a conversation as text, behind what we tell."""
        at, own = made.setting.at, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{made.session_id}/told"))
        first = item_record(message(USER, told), at, own, {OPENING: True})
        rest = [item_record(message(one.role, one.text), one.at or at, one.uuid) for one in said]
        return told_body(made, head, self._meta(made), [first, *rest])

    def fork(self, session: SessionFile, cut: Truncator | None, output_dir: str | None) -> ForkPlan:
        """A copy of what is sent of a thread, whole or up to a place."""
        made = self.draft(session, "fork", output_dir)
        place = cut_point.cut(scan(self._readable(session)), cut) if cut is not None else None
        return fork.plan(self._read(session), made, place)

    def repair(self, session: SessionFile) -> ChildPlan:
        """A child that needs no other file, of what can be read, without outputs whose calls are gone."""
        made = self.draft(session, "repair")
        read = thread.read_left(session, Rollouts(self._home).path_of)
        told = _told_meta(made, self._home) | {key: value for key, value in read.meta.items() if value}
        return fork.plan(replace(read, meta=told), made, None)

    def cleaned(
        self, session: SessionFile, clean: Callable[[bytes], bytes], kind: Kind, output_dir: str | None
    ) -> ChildPlan:
        """A child of what is sent, each item as ``clean`` leaves it."""
        return fork.cleaned(self._read(session), self.draft(session, kind, output_dir), clean)

    def rewound(self, told: Opening, kept: Sequence[str]) -> ChildPlan:
        """A child of the items up to the last of these, and of what is told after them."""
        return fork.rewound(self._read(told.child.parent), told, kept)

    def scanned(self, session: SessionFile) -> thread.CodexThread:
        """What is sent of a thread, and what of it can be trimmed."""
        numbers = {node.uuid: node.number for node in scan(self._readable(session)).nodes}
        return replace(self._read(session), numbers=numbers)

    def untrim(
        self, reading: TrimmedSession, numbers: Collection[int] | None, *, strict: bool, output_dir: str | None
    ) -> UntrimPlan:
        """A child in which what was trimmed is as it was, all of it or the items at these lines."""
        read, wanted = self._read(reading.session), {node.uuid: node.number for node in wanted_of(reading, numbers)}
        originals = untrim.originals_of(Rollouts(self._home), read.trimmed.values())
        made = self.draft(reading.session, "untrim", output_dir)
        return untrim.plan(read, made, originals, wanted, strict=strict)

    def _meta(self, child: Draft) -> Record:
        """What the first line says beside what is the child's own: as its parent's, else as the settings have it."""
        foreign = child.parent_agent != NAME
        return _told_meta(child, self._home) if foreign else read_meta(child.parent.path).payload

    def _read(self, session: SessionFile) -> thread.CodexThread:
        return thread.read(session, Rollouts(self._home).path_of)

    def _readable(self, session: SessionFile) -> str:
        return agent_of(session, self._where).readable(session).path


def _told_meta(child: Draft, home: str) -> Record:
    """What a first line says of a session that no client wrote."""
    git = {"git": {"branch": child.setting.branch}} if child.setting.branch else {}
    return {
        "cwd": child.setting.cwd,
        "originator": ORIGINATOR,
        "cli_version": VERSION,
        "model_provider": _provider(home),
        **git,
    }


def _provider(home: str) -> str:
    """The provider of the user's settings: a session can't be resumed with another one."""
    try:
        with open(os.path.join(home, "config.toml"), "rb") as stream:
            text = stream.read(MAX_CONFIG).decode("utf-8", "replace")
    except OSError:
        return PROVIDER
    top = re.split(r"^\s*\[", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = _PROVIDER.search(top)
    return found[1] if found else PROVIDER
