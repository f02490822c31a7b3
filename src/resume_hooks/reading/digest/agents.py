"""What the sub-agents of a session changed: their work is in files of their own, the session tells only of its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.reading.digest import shell_writes
from resume_hooks.reading.digest.collector import Story
from resume_hooks.reading.digest.facts import Change
from resume_hooks.reading.digest.prescan import skim
from resume_hooks.reading.digest.shell import simple_commands
from resume_hooks.sessions.subagents import PREFIX, Subagent, nested
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.transcripts.records import parse

BUDGET = 20_000_000
"""Bytes of sub-agents that are read, those that ended last first."""


class Helped(NamedTuple):
    """The files that sub-agents changed, and how many of them were not read."""

    changes: tuple[Change, ...]
    unread: int


def helped(session_file: str, session_id: str, story: Story, known: set[str]) -> Helped:
    """What the sub-agents of a session changed that was read into ``story``; ``known`` are those told of before."""
    room, unread = BUDGET, 0
    changes: list[Change] = []
    found = [agent for agent in _agents_of(session_file, session_id, story) if agent.name not in known]
    known |= {agent.name for agent in found}
    for agent in sorted(found, key=lambda agent: -_order(agent, story)):
        try:
            room -= os.path.getsize(agent.path)
            if room >= 0:
                changes += _changes(agent, _order(agent, story))
        except OSError:
            unread += 1
        else:
            unread += room < 0
    return Helped(tuple(changes), unread)


def _agents_of(session_file: str, session_id: str, story: Story) -> Iterator[Subagent]:
    """Those in the session's own folder, and of those beside it (clients before 2.1) the ones that answered."""
    folder = os.path.dirname(session_file)
    inside = list(nested(os.path.splitext(session_file)[0], session_id))
    yield from inside
    known = {agent.name for agent in inside}
    for agent_id in story.agents:
        name = f"{PREFIX}{os.path.basename(agent_id)}"
        path = os.path.join(folder, f"{name}.jsonl")
        if name not in known and os.path.isfile(path) and not os.path.islink(path):
            yield Subagent(session_id, name, path)


def _order(agent: Subagent, story: Story) -> int:
    """When a sub-agent ended, among the records of its session; 0 where that was not told."""
    return story.agents.get(agent.name.removeprefix(PREFIX), 0)


def _changes(agent: Subagent, order: int) -> Iterator[Change]:
    own = Story(sidechain=True)
    name = f"{agent.session_id}/{agent.name}"
    with open(agent.path, "rb", buffering=BUFFER) as stream:
        for number, raw in enumerate(stream):
            skimmed = skim(raw)
            if skimmed is not None and own.take_skimmed(skimmed, name, number):
                continue
            if (record := parse(raw)) is not None:
                own.take(record, name, number)
    for change in own.changes:
        yield change._replace(place=change.place._replace(order=order))
    for run in own.runs:
        for path in () if run.failed else shell_writes.changed_by(simple_commands(run.command)):
            yield Change(path, run.folder, run.place._replace(order=order))
