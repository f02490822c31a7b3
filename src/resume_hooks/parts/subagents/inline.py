"""Sub-agents whose records stand in the file of the session that started them: clients before 2.0 wrote them there."""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.sessions.transcript_files import PREFIX
from resume_hooks.transcripts.lines import open_transcript, read_lines
from resume_hooks.transcripts.records import parse, prompt_text, string
from resume_hooks.transcripts.turns import opens_turn

_MARK = b'"isSidechain":true'
_FOREIGN, _LONGEST = re.compile(r"[^A-Za-z0-9-]"), 100  # what no id of theirs has, and how long none is
_SHOWN = 8  # characters of the first record's id by which one is named that has no id of its own


class InlineAgent(NamedTuple):
    """A sub-agent in a session's file: ``agent-<id>``, what it was asked, its 0-based ``lines`` and last instant."""

    name: str
    asked: str
    lines: set[int]
    ended: str
    size: int


def inline_agents(path: str) -> list[InlineAgent]:
    """Those of a session's file, in their order. SessionNotFound where it can't be read."""
    found: dict[str, InlineAgent] = {}
    name, owners = "", dict[str, str]()
    with open_transcript(path) as stream:
        for line in read_lines(stream):
            record = parse(line.body) if _MARK in line.raw else None
            if record is None or record.get("isSidechain") is not True:
                continue
            uuid, begins = string(record, "uuid"), opens_turn(record, subagent=True)
            known = owners.get(string(record, "parentUuid")) or ("" if begins else name)  # a gap: the one before it
            own = _FOREIGN.sub("", string(record, "agentId"))[:_LONGEST] or _FOREIGN.sub("", uuid)[:_SHOWN]
            name = owners[uuid] = known or f"{PREFIX}{own}"
            one = found.setdefault(name, InlineAgent(name, prompt_text(record) if begins else "", set(), "", 0))
            one.lines.add(line.number)
            found[name] = one._replace(ended=string(record, "timestamp") or one.ended, size=one.size + len(line.raw))
    return list(found.values())
