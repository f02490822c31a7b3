"""The client's pane of ``/search`` and ``/sessions``: its content, and the actions of its keys.

It stores nothing: the module reports the typed words, the marked session and the available room.
Titles come first, then hits, then the preview, each in its own answer, so that a slow one delays no
other.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks.derive.outcome import OpenedSession, Outcome
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import prompt, reply
from resume_hooks.hooks.request import EVERYWHERE, current_folder, parse_search_words, time_limit
from resume_hooks.hooks.session_list.rows import (
    cut_to_columns,
    first_prompt_rows,
    hit_rows,
    session_line,
)
from resume_hooks.hooks.session_list.state import (
    UPDATE_SECONDS,
    Choices,
    Said,
    listed_sessions,
    said_of,
)
from resume_hooks.paths import Where, find_session
from resume_hooks.search.listing import ListedSession, SessionLister
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.registry import OPENED
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.system.invocation import resume_command, shell_command
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import was_compacted

if TYPE_CHECKING:
    from resume_hooks.hooks.session_list.hit_text import Page

NAMES, SAID, PREVIEW, PAGE = (
    "names",
    "said",
    "preview",
    "page",
)  # the steps of a question; the first three in this order

LISTING = 1.0
"""Seconds of processor time until listing stops.

That is enough for the newest sessions, even on a busy machine.
"""

FIELD = 1  # the line of the input field
GAP = 2  # columns between the names of two actions
ROWS = 12  # the minimum lines of a list above a preview
LEAST = 4  # the minimum lines of a preview, and of a page with a title
TALL, WIDE = 40, 90  # the requested lines and columns of the pane; the client may give fewer

FORK, UNDO, LIST = "fork", "undo", "list"
OPEN, ON, BACK = "open", "on", "back"
WAYS = (
    (ON, "read on", "the text after these lines"),
    (BACK, "read back", "the text before these lines"),
    (OPEN, "resume", "continues this session"),
    ("handoff", "hand off", "opens a fresh session that knows this one"),
    (FORK, "fork", "opens a copy; this session stays as it is"),
    (UNDO, "undo compaction", "opens a copy from before the compaction"),
    (LIST, "list", "back to the list"),
)
"""The actions on the session of the open page: the module's word, its name, its effect.

No action has a letter key, because every letter goes to the search.
"""

ELSEWHERE = {
    OPEN: "",
    "handoff": "a fresh session is made; ",
    FORK: "a copy is made; ",
    UNDO: "a copy is made; ",
}
"""The first step of an action on another project's session; then the command that opens it is copied."""

AHEAD = 100
"""Rows before and after the marked one that the module receives, so that it can move without asking."""

LOOKING = " by name · searching the turns …"
BUSY = "one moment, searching …"
HELP = "Esc closes"
AWAY = "The prompt has the keys · Ctrl+X Tab: back"
PLACEHOLDER = f"words, or {EVERYWHERE}"
ENTER = "look into it"


class PaneEvent(NamedTuple):
    """The module's report on the pane: ``at`` is the marked session, ``""`` before the first one.

    ``reference`` is its matching record, ``found`` the record's text from the hit on, and ``page``
    the number of pages after the hit.
    """

    words: str
    everywhere: bool
    at: str
    columns: int
    lines: int
    step: str
    reference: str
    found: str
    page: int


def open_pane(text: str) -> dict[str, Any]:
    """Return the pane that a command opens; ``text`` is the text after the command.

    The list follows once the pane has a size.

    Raise UsageError for an unknown option. A space follows the words, so that the next typed word
    is a new one.
    """
    everywhere, words = parse_search_words(text)
    parts = [EVERYWHERE] if everywhere else []
    return {
        "words": "".join(f"{part} " for part in [*parts, *words.split()]),
        "head": BUSY,
        "away": AWAY,
        "busy": BUSY,
        "placeholder": PLACEHOLDER,
        "submitLabel": ENTER,
        "tall": TALL,
        "wide": WIDE,
    }


def update_pane(event: dict[str, Any], path: str | None, where: Where) -> dict[str, Any]:
    """Return the next content of the pane. Raise ResumeHooksError."""
    asked = _parse_pane_event(event)
    if asked.step == PREVIEW:
        return {"preview": _preview_lines(asked, where), "next": ""}
    if asked.step == PAGE:
        return _page_reply(asked, event, where)
    if path:
        folder = home_folder(HeadTail(path), where)
    else:
        folder = current_folder()
    with time_limit(shell_command("resume")):
        return _list_reply(asked, folder, where)


def _parse_pane_event(event: dict[str, Any]) -> PaneEvent:
    def number(name: str, least: int = 0) -> int:
        value = event.get(name)
        if isinstance(value, int) and value is not True:
            return max(least, min(value, 500))
        return 0

    typed_words = reply.field(event, "args").split()
    words = " ".join(word for word in typed_words if word != EVERYWHERE)
    at, step, reference, found = (
        reply.field(event, name) for name in ("at", "step", "reference", "found")
    )
    columns, lines, page = number("columns"), number("lines"), number("page", -500)
    return PaneEvent(
        words, EVERYWHERE in typed_words, at, columns, lines, step, reference, found, page
    )


def _list_reply(asked: PaneEvent, folder: str, where: Where) -> dict[str, Any]:
    choices, whole = _list_choices(asked, folder, where)
    late = ""
    if asked.step == SAID:
        said, late = _turns_with_words(asked, folder, where)
        choices.tell(said)
    most, _ = _lines_of_list_and_preview(asked)
    head = _list_heading(asked, choices, late, whole=whole)
    fitting, now = choices.fitting, time.time()
    chosen = _row_to_mark(asked, choices)
    place = fitting.index(chosen) if chosen else 0
    top, end = max(0, place - AHEAD), place + AHEAD + 1
    shown = fitting[top:end]
    edges = []
    if top:
        edges.append(shown[0].session_id)
    if fitting[end:]:
        edges.append(shown[-1].session_id)
    answer: dict[str, Any] = {
        "head": head,
        "rows": [_pane_row(asked, choices, row, now) for row in shown],
        "most": max(1, most // _lines_of_row(asked)),
        "at": chosen.session_id if chosen else "",
        "edges": edges,
        "again": SAID if asked.words else NAMES,
        "next": SAID if asked.step == NAMES and asked.words else PREVIEW,
    }
    if chosen is None or chosen.session_id != asked.at:
        answer["preview"] = []  # the old preview shows another session
    return answer


def _list_choices(asked: PaneEvent, folder: str, where: Where) -> tuple[Choices, bool]:
    """Return the sessions to choose from, and whether they are complete: reading stops after ``LISTING``."""
    choices = Choices(asked.words)
    until = time.process_time() + LISTING
    for session in listed_sessions(folder, where, everywhere=asked.everywhere):
        choices.add([session])
        if time.process_time() > until:
            return choices, False
    return choices, True


def _row_to_mark(asked: PaneEvent, choices: Choices) -> ListedSession | None:
    """Return the marked session if it still matches, else the best one, or None if there is none."""
    for row in choices.fitting:
        if row.session_id == asked.at:
            return row
    return choices.chosen_session


def _list_heading(asked: PaneEvent, choices: Choices, late: str, *, whole: bool) -> str:
    """Describe the listed sessions and their number, or report that nothing was found or not all was searched."""
    shown, count = len(choices.fitting), f"{choices.count:,}{'' if whole else '+'}"
    what = "every project" if asked.everywhere else "this project"
    if not asked.words:
        listed_of = f" of {what}" if asked.everywhere else " here"
        return f"{count}{listed_of}, newest first · {HELP}"
    if asked.step == NAMES:
        late = LOOKING
    elif not shown:
        if whole:
            unseen = ""
        else:
            unseen = " · older sessions were not searched"
        return f"Nothing found{unseen}{late} · {what}, {count} sessions"
    return f"{shown:,} of {count}, {what}{late} · {HELP}"


def _lines_of_list_and_preview(asked: PaneEvent) -> tuple[int, int]:
    """Return the lines of the list and of the preview; a small pane has no preview, because a page shows more."""
    both = max(1, asked.lines - FIELD)
    if both < ROWS + LEAST:
        return (both, 0)
    return (max(ROWS, both // 2), both - max(ROWS, both // 2))


def _lines_of_row(asked: PaneEvent) -> int:
    if asked.words:
        return 2
    return 1


def _pane_row(asked: PaneEvent, choices: Choices, row: ListedSession, now: float) -> list[Any]:
    """Return a row for the module: the session, its lines, its lines while marked, and its hit."""
    said, columns, hit = choices.quote_of(row), asked.columns, {}
    if said is not None and said.reference:
        lines = []
        for chosen in (False, True):
            lines.append(hit_rows(row, said, columns, chosen=chosen))
        hit = {"reference": said.reference, "found": said.snippet[said.place :]}
    elif asked.words:
        prompt = choices.prompt_of(row)
        lines = []
        for chosen in (False, True):
            lines.append(first_prompt_rows(row, prompt, columns, now, chosen=chosen))
    else:
        lines = []
        for chosen in (False, True):
            lines.append([session_line(row, columns, now, chosen=chosen)])
    return [row.session_id, *lines, hit]


def _turns_with_words(asked: PaneEvent, folder: str, where: Where) -> tuple[list[Said], str]:
    """Return the turns that contain the words, and the number of files that are not indexed yet.

    Without an index there are no turns.
    """
    # These imports take 60 ms; the titles must not wait for them.
    from resume_hooks.search.engine import Searcher, sought
    from resume_hooks.search.index.connect import opened_index
    from resume_hooks.search.query import parse_query
    from resume_hooks.search.scope import Scope, project_at

    try:
        if asked.everywhere:
            scope = Scope()
        else:
            scope = project_at(folder, where)
        scope = scope._replace(programs=frozenset(OPENED))
        with opened_index(
            where, limit=UPDATE_SECONDS, sought=sought([parse_query([asked.words])], scope, where)
        ) as index:
            holding = sum(bool(file.held) for file in index.unread)
            if index.outcome.behind:
                late = f" · {index.outcome.behind:,} files not indexed yet"
            else:
                late = ""
            late += f", {holding:,} with some of the words" if holding else ""
            return said_of(Searcher(index, scope, where), asked.words), late
    except ResumeHooksError as error:
        return [], f" · searching the turns failed: {error.message}"


def _preview_lines(asked: PaneEvent, where: Where) -> list[str]:
    _, room = _lines_of_list_and_preview(asked)
    if room < 1 or not asked.at:
        return []
    return _page_of_session(asked, room, where).lines


def _page_reply(asked: PaneEvent, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return a page of the marked session, from the hit on or else from its outline, with the actions.

    On the first page the default action is to read on from a hit, or else to resume the session.
    """
    row = _marked_session(asked.at, where)
    ways = []
    for way in WAYS:
        if way[0] != UNDO or was_compacted(row.path):
            ways.append(way)
    room = asked.lines - FIELD - _rows_of_names([name for _, name, _ in ways], asked.columns)
    heading = [row.title] if room > LEAST else []
    shown = _page_of_session(asked, room - len(heading), where)
    if not _is_at_home(row, event):
        ways = [(word, name, _way_elsewhere(word, what, row)) for word, name, what in ways]
    if not heading:
        ways = [(word, name, _way_of_title(word, what, row)) for word, name, what in ways]
    first = [word for word, *_ in ways].index(ON if asked.reference else OPEN)
    lines = []
    for line in [*heading, *shown.lines]:
        lines.append(cut_to_columns(line, asked.columns))
    return {
        "lines_read": lines,
        "ways": ways,
        "page": shown.number,
        **({} if asked.page else {"way": first}),
    }


def _rows_of_names(names: list[str], columns: int) -> int:
    """Return the number of rows on which the module draws the names, as many in each as fit."""
    rows, width = 1, 0
    for name in names:
        if width and width + GAP + len(name) > columns:
            rows, width = rows + 1, 0
        width += len(name) + (GAP if width else 0)
    return rows


def _way_of_title(word: str, what: str, row: ListedSession) -> str:
    """Return the effect of an action, with the session's title if the page has no line for it."""
    if word in {ON, BACK, LIST}:
        return what
    return f"{what} · {row.title}"


def _way_elsewhere(word: str, what: str, row: ListedSession) -> str:
    """Return the effect of an action on another project's session, which the running client cannot open."""
    if word in ELSEWHERE:
        return f"{ELSEWHERE[word]}copies the command that opens it in {row.folder}"
    return what


def _page_of_session(asked: PaneEvent, room: int, where: Where) -> Page:
    """Return the text around a session's hit, or else its outline.

    If it cannot be read, return the reason.
    """
    # These imports take 100 ms; a list must not wait for them.
    from resume_hooks.hooks.session_list.hit_text import hit_page, page_at
    from resume_hooks.hooks.session_list.preview import OUTLINE, preview, session_facts

    try:
        if asked.reference:
            return hit_page(asked.reference, asked.found, asked.page, asked.columns, room, where)
        row = _marked_session(asked.at, where)
    except ResumeHooksError as error:
        return page_at(
            [cut_to_columns(f"{error.message}. {error.remedy}", asked.columns)], 0, 0, room
        )
    lines = [*session_facts(row)[1:], *preview(OUTLINE, row, where)]
    return page_at([cut_to_columns(line, asked.columns) for line in lines], 0, asked.page, room)


def _marked_session(session_id: str, where: Where) -> ListedSession:
    """Return the marked session. Raise SessionNotFound if it no longer exists."""
    if not session_id:
        raise SessionNotFound(
            "Nothing was found, so no session is marked", "Type other words, or none."
        )
    path = find_session(session_id, where)
    session = (
        locate.session_file(path) if path else registry.find_other_agents_session(session_id, where)
    )
    row = SessionLister(os.path.dirname(session.path), where).at(session, None) if session else None
    if row is None:
        raise SessionNotFound("This session no longer exists", "Type to list the sessions again.")
    return row


def open_marked_session(
    word: str, event: dict[str, Any], here: str, where: Where
) -> dict[str, Any]:
    """Open the marked session or a child of it. Raise ResumeHooksError."""
    row = _marked_session(_parse_pane_event(event).at, where)
    if word in {OPEN, "fork"} and (left := registry.row_of(row.agent).left):
        raise UsageError(left, "hand off continues from them in a fresh session")
    if word == OPEN:
        if row.session_id == here:
            return {"text": "This is the session that you are in."}
        return _open_session_reply(row.session_id, row, event, "")
    outcome = _make_child(word, row, where)
    match outcome:
        case OpenedSession(receipt=receipt, remark=remark):
            return _open_session_reply(receipt.session_id, row, event, remark)
    raise TypeError(f"{word} came to {type(outcome).__name__}")


def _make_child(word: str, row: ListedSession, where: Where) -> Outcome:
    """Return the outcome of the action ``word`` on a session."""
    # Only an action that creates a child needs these imports.
    from resume_hooks.derive.cut_point import CutBeforeCompaction
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.derive.verbs.fork import WHOLE, ForkSpec, fork
    from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff
    from resume_hooks.sessions.session import Session

    session = Session.at(row.path, where)
    if word == UNDO:
        limit = partial(time_limit, shell_command(f"fork {row.session_id} --before-compaction"))
        return fork(session, ForkSpec(CutBeforeCompaction()), Caller(where, time_limit=limit))
    if word == FORK:
        limit = partial(time_limit, shell_command(f"fork {row.session_id}"))
        return fork(session, WHOLE, Caller(where, time_limit=limit))
    limit = partial(time_limit, shell_command(f"handoff {row.session_id}"))
    return handoff(session, HandoffSpec(), Caller(where, reuses=True, time_limit=limit))


def _open_session_reply(
    session_id: str, row: ListedSession, event: dict[str, Any], remark: str
) -> dict[str, Any]:
    """Open a session of this project in the running client.

    For another project's session, copy the command that opens it.
    """
    command = resume_command(row.folder, session_id)
    if not os.path.isdir(row.folder):
        raise SessionNotFound(
            f"Its folder {row.folder} is gone",
            f"In a shell: {shell_command(f'resume {session_id}')}",
        )
    by_hand = plain_text(f"To open it, in a shell: {command}")
    if _is_at_home(row, event):
        return {"open": session_id, "by_hand": by_hand, "fill": "", "remark": plain_text(remark)}
    copied = prompt.copy_by_setting(command)
    return {
        "text": plain_text(
            f"It belongs to another folder. The command that opens it: {command} ({copied.how})"
        )
    }


def _is_at_home(row: ListedSession, event: dict[str, Any]) -> bool:
    """Check whether a session belongs to the running client's project; only then can the client open it."""
    here = event.get("transcript_path")
    return isinstance(here, str) and _project_name(here) == _project_name(row.path)


def _project_name(path: str) -> str:
    """Return the name of a transcript's project folder.

    The archived copy of a deleted session has the same folder name.
    """
    return os.path.basename(os.path.dirname(path))
