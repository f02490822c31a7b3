"""The pane of ``/search`` and ``/sessions`` inside the client: what it shows of what was typed, what its keys do.

Nothing is kept: the module says what was typed, where it stands and how much room there is. The names come first, then
what was said, then the preview, each in an answer of its own, so that nobody waits for the slower one.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any, NamedTuple

from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import prompt, reply
from resume_hooks.hooks.request import EVERYWHERE, current_folder, searched, time_limit
from resume_hooks.hooks.session_list.rows import cut, listed, told
from resume_hooks.hooks.session_list.state import PATIENCE, Choices, Said, found, said_of
from resume_hooks.hooks.triggers import of_command
from resume_hooks.paths import Where, find_session
from resume_hooks.search.listing import ListedSession, SessionLister
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.registry import OPENED
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.system.invocation import resume_command, typed
from resume_hooks.system.text import plain
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import was_compacted

NAMES, SAID, PREVIEW = "names", "said", "preview"  # what is asked for, in this order

LISTING = 1.0
"""Seconds of processor time after which no more sessions are listed; the newest are by then, on a busy machine too."""

ABOVE = 2  # lines beside list, preview and keys: the words, what is listed
GAP = 2  # columns between two keys
LEAST = 8  # lines that list and preview need to stand both
TALL, WIDE = 20, 90  # lines and columns that the pane asks for; the client gives what there is

FORK, UNDO = "fork", "undo"
KEYS = (
    ("h", "handoff", "hand off", "h again: opens a fresh session that knows this one"),
    ("f", FORK, "fork", "f again: opens a copy; this session stays as it is"),
    ("u", UNDO, "undo compaction", "u again: opens a copy from before the compaction"),
    ("a", EVERYWHERE, "all projects", ""),
)
"""What a letter does in the list: the letter, the word that the module sends for it, and what stands beside it.

What makes a session says so first, and is done when the letter is pressed again. A letter that is no key would go to
the prompt, and the keys with it, so each is one throughout.
"""

AHEAD = 100
"""Rows before and behind the marked one that the module has, so that it moves among them without asking."""

LOOKING = " by name · looking for what was said …"
BUSY = "one moment, looking …"
OPEN = "open"
HELP = "Enter opens · Esc closes"
START = "Down: list · Esc closes"
AWAY = "The prompt has the keys · Ctrl+X Tab, then Down: back"
PLACEHOLDER = "words of a title, or of what was said"
ENTER = "open it"


class PaneEvent(NamedTuple):
    """What the module says of the pane: ``at`` is the session that is marked, ``""`` before there is one."""

    words: str
    everywhere: bool
    at: str
    columns: int
    lines: int
    step: str


def opened(text: str) -> dict[str, Any]:
    """The pane that a command opens, ``text`` being what followed it; what it lists is asked for once it has a size.

    UsageError for an option that there is not.
    """
    everywhere, words = searched(text)
    return {
        "everywhere": everywhere,
        "words": words.strip(),
        "keys": KEYS,
        "head": BUSY,
        "away": AWAY,
        "help": HELP,
        "busy": BUSY,
        "start": START,
        "placeholder": PLACEHOLDER,
        "submitLabel": ENTER,
        "tall": TALL,
        "wide": WIDE,
    }


def looked(event: dict[str, Any], path: str | None, where: Where) -> dict[str, Any]:
    """What the pane is to show next. Raises ResumeHooksError."""
    asked = _asked(event)
    if asked.step == PREVIEW:
        path = find_session(asked.at, where)
        compacted = path is not None and was_compacted(path)
        keys = [key for key in KEYS if compacted or key[1] != UNDO]
        return {"preview": _preview(asked, where), "keys": keys, "next": ""}
    folder = home_folder(HeadTail(path), where) if path else current_folder()
    with time_limit(typed("resume")):
        return _listed(asked, folder, where)


def _asked(event: dict[str, Any]) -> PaneEvent:
    def number(name: str) -> int:
        value = event.get(name)
        return min(value, 500) if isinstance(value, int) and value is not True else 0

    words, at, step = (reply.field(event, name) for name in ("args", "at", "step"))
    return PaneEvent(words, event.get("everywhere") is True, at, number("columns"), number("lines"), step)


def _listed(asked: PaneEvent, folder: str, where: Where) -> dict[str, Any]:
    choices, whole = Choices(asked.words), True
    until = time.process_time() + LISTING
    for one in found(folder, where, everywhere=asked.everywhere):
        choices.add([one])
        if time.process_time() > until:
            whole = False
            break
    late = ""
    if asked.step == SAID:
        said, late = _said(asked, folder, where)
        choices.tell(said)
    most, _ = _room(asked)
    head = _head(asked, choices, late, whole=whole)
    fitting, now = choices.fitting, time.time()
    chosen = next((row for row in fitting if row.session_id == asked.at), None) or choices.chosen
    place = fitting.index(chosen) if chosen else 0
    top, end = max(0, place - AHEAD), place + AHEAD + 1
    shown = fitting[top:end]
    edges = [*([shown[0]] if top else []), *([shown[-1]] if fitting[end:] else [])]
    return {
        "head": cut(head, asked.columns),
        "rows": [[row.session_id, *_lines(row, choices.said_in(row), asked.columns, now)] for row in shown],
        "most": most,
        **({} if chosen and chosen.session_id == asked.at else {"preview": [], "keys": KEYS}),
        "at": chosen.session_id if chosen else "",
        "edges": [row.session_id for row in edges],
        "again": SAID if asked.words.strip() else NAMES,
        "next": SAID if asked.step == NAMES and asked.words.strip() else PREVIEW,
    }


def _head(asked: PaneEvent, choices: Choices, late: str, *, whole: bool) -> str:
    """What is listed and how much of it; or that nothing was found, and what was not looked at."""
    shown, count = len(choices.fitting), f"{choices.count:,}{'' if whole else '+'}"
    what = "every project" if asked.everywhere else "this project"
    if not asked.words.strip():
        return f"Sessions of {what}, newest first · {count}"
    if asked.step == NAMES:
        late = LOOKING
    elif not shown:
        unseen = "" if whole else " · the older sessions were not looked at"
        return f"Nothing found{unseen}{late} · {what}, {count} sessions"
    return f"Sessions of {what} · {shown:,} of {count}{late}"


def _room(asked: PaneEvent) -> tuple[int, int]:
    """The lines of the list, and those of the preview, which a small pane does without."""
    both = max(1, asked.lines - ABOVE - _lines_of_keys(asked.columns))
    return (both, 0) if both < LEAST else (-(-both // 2), both // 2)


def _lines_of_keys(columns: int) -> int:
    """The lines that all keys take with what stands behind them; the client breaks between them."""
    count, used = 1, -GAP
    for words in (*(f"{key}: {label}" for key, _, label, _ in KEYS), HELP):
        used += GAP + len(words)
        if used > columns > 0:
            count, used = count + 1, len(words)
    return count


def _lines(row: ListedSession, said: Said | None, columns: int, now: float) -> list[str]:
    if said is not None:
        return [told(row, said, columns, chosen=chosen) for chosen in (False, True)]
    return [listed(row, columns, now, chosen=chosen) for chosen in (False, True)]


def _said(asked: PaneEvent, folder: str, where: Where) -> tuple[list[Said], str]:
    """The turns that say the words, and what is not in the index yet; without one, nothing was said."""
    # 60 ms, for which the names do not wait.
    from resume_hooks.search.engine import Searcher, sought
    from resume_hooks.search.index.connect import opened_index
    from resume_hooks.search.query import parse
    from resume_hooks.search.scope import Scope, project_at

    try:
        scope = Scope() if asked.everywhere else project_at(folder, where)
        scope = replace(scope, programs=frozenset(OPENED))
        with opened_index(where, limit=PATIENCE, sought=sought([parse([asked.words])], scope, where)) as index:
            holding = sum(bool(file.held) for file in index.unread)
            late = f" · {index.outcome.behind:,} files not indexed yet" if index.outcome.behind else ""
            late += f", {holding:,} with some of the words" if holding else ""
            return said_of(Searcher(index, scope, where), asked.words), late
    except ResumeHooksError as error:
        return [], f" · what was said: {error.message}"


def _preview(asked: PaneEvent, where: Where) -> list[str]:
    _, room = _room(asked)
    if room < 1 or not asked.at:
        return []
    try:
        row = _row(asked.at, where)
    except ResumeHooksError as error:
        return [cut(f"{error.message}. {error.remedy}", asked.columns)]
    # 100 ms, for which no list waits.
    from resume_hooks.hooks.session_list.preview import OUTLINE, facts, preview

    lines = [*facts(row)[1:], *preview(OUTLINE, row, where)]
    return [cut(line, asked.columns) for line in lines[:room]]


def _row(session_id: str, where: Where) -> ListedSession:
    """The session that is marked. SessionNotFound once it is gone."""
    if not session_id:
        raise SessionNotFound("Nothing was found, so no session is marked", "Type other words, or none.")
    path = find_session(session_id, where)
    session = locate.session_file(path) if path else registry.found(session_id, where)
    row = SessionLister(os.path.dirname(session.path), where).at(session, None) if session else None
    if row is None:
        raise SessionNotFound("There is no such session any more", "Type on to list what is there.")
    return row


def done(word: str, event: dict[str, Any], here: str, where: Where) -> dict[str, Any]:
    """Open the session that is marked, or a child of it. Raises ResumeHooksError."""
    row = _row(_asked(event).at, where)
    if word in {OPEN, "fork"} and (left := registry.left_of(row.agent)):
        raise UsageError(left, "h goes on from them in a fresh session")
    if word == OPEN:
        if row.session_id == here:
            return {"text": "This is the session that you are in."}
        return _opened(row.session_id, row, event, "")
    if word in {FORK, UNDO}:
        # Only who forks waits for what writes.
        from resume_hooks.derive import fork
        from resume_hooks.derive.child.write import write
        from resume_hooks.derive.cut_point import BeforeCompaction
        from resume_hooks.hooks.child_cards import opened as opened_card

        cut, option = (BeforeCompaction(), " --before-compaction") if word == UNDO else (None, "")
        with time_limit(typed(f"fork {row.session_id}{option}")):
            plan = fork.plan(locate.session_file(row.path), where, cut=cut)
        made = write(plan, where)
        return _opened(made.session_id, row, event, opened_card(made))
    trigger = of_command("handoff", "", hooked=False)
    given = prompt.lane_answer(trigger, row.session_id, {"transcript_path": row.path})
    return _opened(given.opens, row, event, given.remark)


def _opened(session_id: str, row: ListedSession, event: dict[str, Any], remark: str) -> dict[str, Any]:
    """Open a session of this project in the running client; of another one copy the command that does."""
    here = event.get("transcript_path")
    command = resume_command(row.folder, session_id)
    if not os.path.isdir(row.folder):
        raise SessionNotFound(f"Its folder {row.folder} is gone", f"In a shell: {typed(f'resume {session_id}')}")
    by_hand = plain(f"To open it, in a shell: {command}")
    if isinstance(here, str) and _project(here) == _project(row.path):
        return {"open": session_id, "by_hand": by_hand, "fill": "", "remark": plain(remark)}
    copied = prompt.copied(command)
    return {"text": plain(f"It is at home in another folder. {copied.sentence('Its command')}: {command}")}


def _project(path: str) -> str:
    """The name of the project folder; the copy of a session that was lost lies in one of the same name."""
    return os.path.basename(os.path.dirname(path))
