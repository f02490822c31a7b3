"""A child that Codex resumes: a draft in its folders, its lines, and what must hold as read back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import ChildPlan
from resume_hooks.parts.codex.derive.parent import CodexParent
from resume_hooks.parts.codex.derive.rollout import Identity, Told, meta_line, told_lines
from resume_hooks.parts.codex.transcripts.history import History
from resume_hooks.parts.codex.transcripts.lines import META, TITLE, rollout_lines
from resume_hooks.parts.codex.transcripts.meta import REQUIRED, parse_name, read_meta
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.records import Record


@dataclass(frozen=True, slots=True)
class RolloutBody:
    """The lines of a child, and the items that the model is to get of it."""

    written: tuple[bytes, ...]
    items: tuple[Record, ...]

    def lines(self) -> Iterator[bytes]:
        """The lines with their endings."""
        return iter(self.written)


@dataclass(frozen=True, slots=True)
class CodexPlan(ChildPlan):
    """A child in the form of a rollout."""

    body: RolloutBody

    def checks(self, path: str) -> list[Check]:
        """What every rollout of ours must hold, and that what is sent is what was meant."""
        return checks(path, self.draft, self.body.items)


def identity(child: Draft, head: bytes) -> Identity:
    """Who a child is; ``head`` are our fields of its first line, to which its title comes."""
    fields = orjson.loads(head) | {TITLE: child.own_title or child.stem}
    own_parent = child.parent.session_id if child.parent_agent == child.agent else ""
    return Identity(child.session_id, child.setting.at, own_parent, fields)


def body_of(child: Draft, parent: CodexParent, told: Sequence[Told], head: bytes, *, whole: bool = True) -> RolloutBody:
    """The lines of a child that is ``told`` what stays of its parent; ``head`` are our fields of its first line.

    ``whole``: with what the client told the model of its surroundings, else it will do so anew.
    """
    lines = [meta_line(parent.meta, identity(child, head)), *told_lines(told, parent.context if whole else ())]
    return RolloutBody(tuple(lines), tuple(item.payload for item in told))


def checks(path: str, draft: Draft, items: Sequence[Record]) -> list[Check]:
    """What a rollout of ours must hold as read back from ``path``."""
    history, kinds, numbers, ordinals = History(), [], 0, 0
    for line in rollout_lines(path):
        history.take(line)
        kinds.append(line.kind)
        numbers = line.number + 1
        ordinals += "ordinal" in line.record
    meta = read_meta(path)
    named = parse_name(draft.path)
    return [
        Check("every line is a whole record", numbers == len(kinds) == _lines_in(path)),
        Check("it begins with its session, once", kinds[:1] == [META] and kinds.count(META) == 1),
        Check("the first line tells what every client asks for", all(meta.payload.get(key) for key in REQUIRED)),
        Check("it carries its own id", named is not None and meta.payload.get("id") == named.thread_id),
        Check("it needs no other file", meta.base is None and not meta.paginated and not ordinals),
        Check("what is sent of it is what was meant", [item.payload for item in history.items] == list(items)),
        Check("no count of tokens is carried over", not history.measured),
        Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
    ]


def _lines_in(path: str) -> int:
    with open(path, "rb") as stream:
        return sum(1 for _ in stream)
