"""Find the prompt for ``--to``, and the files at that prompt: the backup and place of each.

A target that is not a prompt is refused with the nearest prompts.

As in the client, a file that was first tracked later counts as it was before its first edit, and
backups only count in the session's own folder. A child gets its own backups when it is created; its
parent's folder may have other content under the same name.
"""

from __future__ import annotations

import bisect
import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import CantRestore, NoFileHistory, UsageError
from resume_hooks.parts.rewind_files.history import Backup, FileHistory, Prompt, State
from resume_hooks.parts.rewind_files.plan import (
    Expected,
    FilesPlan,
    StoredContent,
    WantedFile,
    plan_files,
)
from resume_hooks.parts.rewind_files.safe_paths import ProjectRoot
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions import record_references
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder, is_keyed
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.nodes import ancestors

FIRST = 1
"""The version of the backup from when the client began to track a file."""

UNKNOWN = "the client kept no copy of it from before its first edit"

FORMS = (
    "--to takes the number of a turn (as outline counts), last, the uuid of a prompt, or "
    "<session>:<line>."
)
WORDS = 60
"""The maximum characters of a prompt that a message quotes."""


class Target(NamedTuple):
    """The target of ``--to``: a ``turn`` (0 for the last), or a ``record`` (line or uuid) and optional ``session``."""

    turn: int | None
    record: int | str
    session: str | None


class Aim(NamedTuple):
    """A prompt with the state of the files.

    If not ``exact``, files were edited between the state and the prompt.

    ``states`` are those of the prompt's own branch and of the branches that continue from it.
    """

    prompt: Prompt
    state: State
    exact: bool
    states: tuple[State, ...]


def parse_target(text: str) -> Target:
    """Parse a target. Raise UsageError for an invalid one."""
    wanted = text.strip()
    number = wanted.lower().removeprefix("turn").strip()
    if (
        number.isascii()
        and number.isdigit()
        and len(number) <= record_references.MAX_DIGITS
        and int(number)
    ):
        return Target(int(number), 0, None)
    if wanted.lower() == "last":
        return Target(0, 0, None)
    if is_session_id(wanted.lower()):
        return Target(None, wanted, None)
    if ":" in wanted:
        named = record_references.parse_reference(wanted)
        record = (
            named.record.uuid
            if isinstance(named.record, record_references.RecordOffset)
            else named.record
        )
        if record != "":
            return Target(None, record, named.session)
    raise UsageError(f"'{collapse_line(plain_line(text), 60)}' names no message", FORMS)


def aim_at_prompt(history: FileHistory, target: Target) -> Aim:
    """Return the prompt of a target, with the state of the files.

    Raise UsageError if there is no such prompt, and NoFileHistory if there is no state.
    """
    prompt = _find_prompt(history, target)
    beside = _Beside(history, prompt)
    states = tuple(state for state in history.states if not beside(state.message))
    reached = []
    for state in states:
        if state.line <= prompt.line:
            reached.append(state)
    later = []
    for state in states:
        if state.line > prompt.line:
            later.append(state)
    own = next((state for state in reached if state.message == prompt.uuid), None)
    # 2.1.329 writes no state if it ends within milliseconds of the answer (measured, -p).
    same = (
        own
        or _state_without_edits(history, reached[-1:], prompt)
        or _state_without_edits(history, later[:1], prompt)
    )
    if same is None and not reached:
        first = next(
            (one for one in history.prompts if later and one.uuid == later[0].message), None
        )
        raise NoFileHistory(
            f"The client kept no state of the files at or before {name_prompt(prompt)}",
            f"The first is at {name_prompt(first)}."
            if first
            else "Its file history belongs to another branch.",
        )
    return Aim(prompt, same or reached[-1], same is not None, states)


def _state_without_edits(
    history: FileHistory, nearest: list[State], prompt: Prompt
) -> State | None:
    """Return the nearest state if no tool wrote a file between it and the prompt, so that it applies to the prompt."""
    for state in nearest:
        start, end = sorted((state.line, prompt.line))
        if not any(start < line < end for line in history.edited):
            return state
    return None


def name_prompt(prompt: Prompt) -> str:
    """Return a prompt's turn or line, and its first words."""
    if prompt.turn:
        place = f"turn {prompt.turn}"
    else:
        place = f"line {prompt.line}"
    return f'{place} "{collapse_line(prompt.words, WORDS)}"'


def _find_prompt(history: FileHistory, target: Target) -> Prompt:
    """Return the prompt of a target. Raise UsageError, with the nearest prompts, if the target is not a prompt."""
    prompts = history.prompts
    if target.turn is not None:
        turns = [one for one in prompts if one.turn]
        if not target.turn:
            found = turns[-1:]
        else:
            found = [one for one in turns if one.turn == target.turn]
        if not found:
            if turns:
                there = f"It has turns 1 to {turns[-1].turn}."
            else:
                there = "It has no turns."
            raise UsageError(f"No turn {target.turn or 'at all'} in this session", there)
        return found[-1]
    if isinstance(target.record, str):
        wanted = {target.record, target.record.lower()}
        line = next((node.number for uuid, node in history.nodes.items() if uuid in wanted), None)
    else:
        line = target.record
    if line is None:
        raise UsageError(
            f"No record {target.record} in {history.session.path}", _nearest_prompts(prompts[-3:])
        )
    prompt = next((one for one in prompts if one.line == line), None)
    if prompt is None:
        place = bisect.bisect([one.line for one in prompts], line)
        raise UsageError(
            f"Line {line} is not a prompt of the user",
            _nearest_prompts(prompts[max(0, place - 1) : place + 1]),
        )
    return prompt


def _nearest_prompts(prompts: tuple[Prompt, ...]) -> str:
    """Return a sentence with the nearest prompts and their ids for ``--to``."""
    return f"The nearest prompts: {'; '.join(f'{one.uuid} {name_prompt(one)}' for one in prompts)}."


class _Beside:
    """Checks whether a message is on a branch that left the conversation before a prompt, where states do not count.

    A message without a common ancestor is not on such a branch, since a compaction cuts the links.
    """

    def __init__(self, history: FileHistory, prompt: Prompt) -> None:
        self._nodes = history.nodes
        self._prompt = prompt.uuid
        self._above = set(self._way_up(prompt.uuid))
        self._known: dict[str, bool] = {}

    def __call__(self, message: str) -> bool:
        trail: list[str] = []
        found = False
        for uuid in self._way_up(message):
            if uuid in self._known:
                found = self._known[uuid]
                break
            if uuid in self._above:
                found = bool(trail) and uuid != self._prompt
                break
            trail.append(uuid)
        self._known.update(dict.fromkeys(trail, found))
        return found

    def _way_up(self, uuid: str) -> Iterator[str]:
        """Yield the ids of a message and its ancestors, nearest first; a cycle ends them."""
        known = self._nodes
        trail = ancestors(
            known.get(uuid), lambda node: known.get(node.parent) if node.parent else None
        )
        return (node.uuid for node in trail)


def plan_rewind(history: FileHistory, aimed: Aim, where: Where) -> FilesPlan:
    """Plan to restore the files to a prompt.

    Raise CantRestore if the project's folder is uncertain or cannot be opened.
    """
    session = history.session
    if not is_session_id(session.session_id):  # the id becomes the name of a folder
        raise CantRestore(
            f"{session.path} has no session id, so no backup belongs to it", "Name another session."
        )
    root = ProjectRoot.of_folder(_home_of_session(session, where), where)
    backups = StoredContent(where.file_history, (session.session_id,))
    return plan_files(session.session_id, root, _wanted_files(history, aimed, root, backups))


def _home_of_session(session: SessionFile, where: Where) -> str:
    """Return the session's own folder: that of its project folder, or the recorded one if it is the current folder.

    Raise CantRestore for any other folder: transcripts get moved, and another project may now be in
    the same place.
    """
    glance = HeadTail(session.path)
    home, kept = home_folder(glance, where), os.path.dirname(session.path)
    with contextlib.suppress(OSError, ValueError):
        if os.path.isabs(home) and (
            is_keyed(home, os.path.basename(kept))
            or (glance.cwd and os.path.samefile(home, os.curdir))
        ):
            return home
    if not os.path.isabs(glance.cwd):
        raise CantRestore(
            f"{session.session_id} does not say which folder it belongs to",
            "None of its files can be restored.",
        )
    raise CantRestore(
        f"{session.session_id} worked in {plain_line(glance.cwd)}, but its transcript is in {plain_line(kept)}, "
        "which belongs to another folder",
        "Run the command in the folder that its files are in, not in one below it; if the project moved, make a "
        f"session for it: resume-hooks fork {session.session_id} --home FOLDER.",
    )


def _wanted_files(
    history: FileHistory, aimed: Aim, root: ProjectRoot, folder: StoredContent
) -> Iterator[WantedFile]:
    """Yield each file that was tracked at the prompt or later, in its state at the prompt.

    ``folder`` contains the backups.

    A file is identified by its path below the project's root, whatever path a record has for it.
    """
    named = {*history.edits}.union(*(state.backups for state in history.states))
    called = {path: root.place_of_path(path) for path in named}
    places = {place.path: place for place in called.values()}
    edits = {called[path].path: edit for path, edit in history.edits.items()}
    states = dict[str, dict[str, Backup]]()
    last = dict[str, tuple[int, Backup]]()
    for state in history.states:
        backups = {called[path].path: backup for path, backup in state.backups.items()}
        states[state.message] = backups
        for path, backup in backups.items():
            last[path] = (state.line, backup)
    own, first = states[aimed.state.message], dict[str, Backup]()
    paths: set[str] = set()
    for state in aimed.states:
        for path, backup in states[state.message].items():
            paths.add(path)
            if backup.version == FIRST:
                first.setdefault(path, backup)

    for path in sorted(paths):
        place, found, edit = places[path], own.get(path) or first.get(path), edits.get(path)
        if found is None or found.name == "":
            yield WantedFile(
                place,
                why=UNKNOWN if found is None else "its backup has an invalid name",
            )
            continue
        line, newest = last[path]
        expected = (
            None  # the file's last known state in the session, from its last backup or a later edit
        )
        if edit is not None and edit.line > line:
            expected = Expected(edit.digest) if edit.digest else None
        elif newest.name != "":
            expected = Expected(source=_backup_file(newest, folder))
        source = _backup_file(found, folder)
        yield WantedFile(place, source, expected=expected, folder=found.folder)


def _backup_file(backup: Backup, folder: StoredContent) -> StoredContent | None:
    """Return the backup's file in ``folder``, or None if the backup says that there was no file."""
    if backup.name is None:
        return None
    return StoredContent(folder.root, (*folder.parts, backup.name))
