"""The client's pane for ``/search`` and ``/sessions``: its content, and the actions of its keys.

This module stores nothing: the client's module reports the typed words, the marked session and the
available space. Titles come first, then hits, then the preview. Each has its own answer, so that a
slow answer does not delay the others.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks.derive.outcome import OpenedSession, Outcome
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import prompt, reply
from resume_hooks.hooks.request import ALL_WORD, current_folder, parse_search_words, time_limit
from resume_hooks.hooks.session_list.rows import (
    cut_to_columns,
    first_prompt_rows,
    hit_line,
    hit_rows,
    session_line,
    snippet_from_words,
    wrap_to_columns,
)
from resume_hooks.hooks.session_list.state import (
    UPDATE_SECONDS,
    Choices,
    TurnHit,
    list_entries,
    turns_with_words,
)
from resume_hooks.paths import Where, find_session
from resume_hooks.search.listing import ListedSession, SessionLister
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.registry import LISTABLE_AGENTS
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.system.invocation import resume_command, shell_command
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import was_compacted

if TYPE_CHECKING:
    from resume_hooks.hooks.session_list.hit_text import Page

# the steps of a question; the first three follow each other in this order
NAMES, HITS, PREVIEW, PAGE = "names", "said", "preview", "page"

LISTING_SECONDS = 1.0
"""The processor time in seconds until listing stops.

That is enough for the newest sessions, even on a busy machine.
"""

FIELD_LINES = 1  # the line of the input field
FIELD_AND_HEADING_LINES = 3  # the lines of the field and the heading beside a list
GAP = 2  # the number of columns between the names of two actions
MIN_LIST_LINES = 12  # the minimum number of lines of a list above a preview
MIN_PREVIEW_LINES = 4  # the minimum number of lines of a preview, and of a page with a title
# the number of lines and columns to request for the pane; the client may give fewer
PANE_LINES, PANE_COLUMNS = 40, 90

FORK, UNDO, LIST = "fork", "undo", "list"
OPEN, READ_ON, READ_BACK = "open", "on", "back"
ACTIONS = (
    (READ_ON, "read on", "the text after these lines"),
    (READ_BACK, "read back", "the text before these lines"),
    (OPEN, "resume", "continues this session"),
    ("handoff", "hand off", "opens a fresh session that knows this one"),
    (FORK, "fork", "opens a copy; this session stays as it is"),
    (UNDO, "undo compaction", "opens a copy from before the compaction"),
    (LIST, "list", "back to the list"),
)
"""The actions on the session of the open page: the module's word, its name, its effect.

No action has a letter key, because every letter goes to the search.
"""

FIRST_STEPS_ELSEWHERE = {
    OPEN: "",
    "handoff": "a fresh session is made; ",
    FORK: "a copy is made; ",
    UNDO: "a copy is made; ",
}
"""The first step of an action on another project's session. The command that opens the session is
then copied."""

ROWS_AHEAD = 100
"""The number of rows before and after the marked row that the module receives, so that it can move
without asking."""

SEARCHING_HINT = " by name · searching the turns …"
BUSY_HINT = "one moment, searching …"
CLOSE_HINT = "Esc closes"
FOCUS_HINT = "The prompt has the keys · Ctrl+X Tab: back"
PLACEHOLDER = f"words, or {ALL_WORD}"
ENTER_LABEL = "look into it"


class PaneEvent(NamedTuple):
    """The module's report on the pane. ``at`` is the marked session, or ``""`` before a session is marked.

    ``reference`` is its matching record, ``found`` the record's text from the hit on, and ``page``
    the number of pages after the hit. ``side`` is the number of columns beside the list with the
    field and the text of the marked row, 0 if they have lines of their own.
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
    side: int = 0


def open_pane(text: str) -> dict[str, Any]:
    """Return the pane that a command opens; ``text`` is the text after the command.

    The list follows when the pane's size is known.

    Raise UsageError for an unknown option. A space follows the words, so that the user can type
    another word directly.
    """
    everywhere, words = parse_search_words(text)
    parts = [ALL_WORD] if everywhere else []
    return {
        "words": "".join(f"{part} " for part in [*parts, *words.split()]),
        "head": BUSY_HINT,
        "away": FOCUS_HINT,
        "busy": BUSY_HINT,
        "placeholder": PLACEHOLDER,
        "submitLabel": ENTER_LABEL,
        "tall": PANE_LINES,
        "wide": PANE_COLUMNS,
    }


def update_pane(event: dict[str, Any], path: str | None, where: Where) -> dict[str, Any]:
    """Return the next content of the pane. Raise ResumeHooksError."""
    pane = _parse_pane_event(event)
    if pane.step == PREVIEW:
        return {"preview": _preview_lines(pane, where), "next": ""}
    if pane.step == PAGE:
        return _page_reply(pane, event, where)
    if path:
        folder = home_folder(HeadTail(path), where)
    else:
        folder = current_folder()
    with time_limit(shell_command("resume")):
        return _list_reply(pane, folder, where)


def _parse_pane_event(event: dict[str, Any]) -> PaneEvent:
    def clamped_field(name: str, least: int = 0) -> int:
        value = event.get(name)
        if isinstance(value, int) and value is not True:
            return max(least, min(value, 500))
        return 0

    typed_words = reply.text_field(event, "args").split()
    words = " ".join(word for word in typed_words if word != ALL_WORD)
    marked_id, step, reference, hit_text = (
        reply.text_field(event, name) for name in ("at", "step", "reference", "found")
    )
    columns, lines, page = (
        clamped_field("columns"),
        clamped_field("lines"),
        clamped_field("page", -500),
    )
    return PaneEvent(
        words,
        ALL_WORD in typed_words,
        marked_id,
        columns,
        lines,
        step,
        reference,
        hit_text,
        page,
        clamped_field("side"),
    )


def _list_reply(pane: PaneEvent, folder: str, where: Where) -> dict[str, Any]:
    choices, is_complete = _list_choices(pane, folder, where)
    unindexed_text = ""
    if pane.step == HITS:
        turns, unindexed_text = _turns_with_words(pane, folder, where)
        choices.tell(turns)
    list_lines, _ = _lines_of_list_and_preview(pane)
    head = _list_heading(pane, choices, unindexed_text, is_complete=is_complete)
    fitting, time_now = choices.fitting, time.time()
    chosen = _row_to_mark(pane, choices)
    index = fitting.index(chosen) if chosen else 0
    start, end = max(0, index - ROWS_AHEAD), index + ROWS_AHEAD + 1
    rows = fitting[start:end]
    edges = []
    if start:
        edges.append(rows[0].session_id)
    if fitting[end:]:
        edges.append(rows[-1].session_id)
    answer: dict[str, Any] = {
        "head": head,
        "rows": [_pane_row(pane, choices, row, time_now) for row in rows],
        "most": max(1, list_lines // _lines_of_row(pane)),
        "at": chosen.session_id if chosen else "",
        "edges": edges,
        "again": HITS if pane.words else NAMES,
        "next": HITS if pane.step == NAMES and pane.words else PREVIEW,
    }
    if chosen is None or chosen.session_id != pane.at:
        answer["preview"] = []  # the old preview belongs to another session
    return answer


def _list_choices(pane: PaneEvent, folder: str, where: Where) -> tuple[Choices, bool]:
    """Return the sessions to choose from, and whether the list is complete. Reading stops after ``LISTING_SECONDS``."""
    choices = Choices(pane.words)
    deadline = time.process_time() + LISTING_SECONDS
    for session in list_entries(folder, where, everywhere=pane.everywhere):
        choices.add([session])
        if time.process_time() > deadline:
            return choices, False
    return choices, True


def _row_to_mark(pane: PaneEvent, choices: Choices) -> ListedSession | None:
    """Return the marked session if it still matches, else the best match, or None if no session matches."""
    for row in choices.fitting:
        if row.session_id == pane.at:
            return row
    return choices.chosen_session


def _list_heading(
    pane: PaneEvent, choices: Choices, unindexed_text: str, *, is_complete: bool
) -> str:
    """Describe the listed sessions and their number, or report that nothing matches or not all was searched."""
    match_count, session_count = (
        len(choices.fitting),
        f"{choices.count:,}{'' if is_complete else '+'}",
    )
    scope = "every project" if pane.everywhere else "this project"
    if not pane.words:
        listed_of = f" of {scope}" if pane.everywhere else " here"
        return f"{session_count}{listed_of}, newest first · {CLOSE_HINT}"
    if pane.step == NAMES:
        unindexed_text = SEARCHING_HINT
    elif not match_count:
        if is_complete:
            unsearched_text = ""
        else:
            unsearched_text = " · older sessions were not searched"
        return f"Nothing found{unsearched_text}{unindexed_text} · {scope}, {session_count} sessions"
    return f"{match_count:,} of {session_count}, {scope}{unindexed_text} · {CLOSE_HINT}"


def _lines_of_list_and_preview(pane: PaneEvent) -> tuple[int, int]:
    """Return the lines of the list and of the preview. A small pane has no preview, because a page shows more."""
    if pane.side:
        return (max(1, pane.lines), 0)
    list_and_preview = max(1, pane.lines - FIELD_LINES)
    if list_and_preview < MIN_LIST_LINES + MIN_PREVIEW_LINES:
        return (list_and_preview, 0)
    return (
        max(MIN_LIST_LINES, list_and_preview // 2),
        list_and_preview - max(MIN_LIST_LINES, list_and_preview // 2),
    )


def _lines_of_row(pane: PaneEvent) -> int:
    if pane.words and not pane.side:
        return 2
    return 1


def _pane_row(pane: PaneEvent, choices: Choices, row: ListedSession, now: float) -> list[Any]:
    """Return a row for the module: the session, its lines, its lines while marked, and its hit.

    In a low pane a row has one line, and the text beside the list while it is marked follows.
    """
    hit_of_row = choices.best_hit(row)
    if hit_of_row is None or not hit_of_row.reference:
        hit_of_row, hit = None, {}
    else:
        hit = {"reference": hit_of_row.reference, "found": hit_of_row.snippet[hit_of_row.place :]}
    prompt = choices.first_prompt_of(row)
    if pane.side:
        draw_lines = partial(_low_row, row, hit_of_row, pane.columns - pane.side, now)
    elif hit_of_row is not None:
        draw_lines = partial(hit_rows, row, hit_of_row, pane.columns)
    elif pane.words:
        draw_lines = partial(first_prompt_rows, row, prompt, pane.columns, now)
    else:
        draw_lines = partial(_low_row, row, None, pane.columns, now)
    entry = [row.session_id, draw_lines(chosen=False), draw_lines(chosen=True), hit]
    if pane.side:
        entry.append(_lines_beside_row(pane, hit_of_row, prompt))
    return entry


def _low_row(
    row: ListedSession, hit: TurnHit | None, columns: int, now: float, *, chosen: bool
) -> list[str]:
    """Return a row of one line."""
    if hit is None:
        return [session_line(row, columns, now, chosen=chosen)]
    return [hit_line(row, hit, columns, chosen=chosen)]


def _lines_beside_row(pane: PaneEvent, hit: TurnHit | None, first_prompt: str) -> list[str]:
    """Return the speaker of a row's hit and the text around it, or the session's first prompt."""
    columns, max_lines = pane.side - 1, max(1, pane.lines - FIELD_AND_HEADING_LINES)
    if hit is None and not first_prompt:
        return []
    if hit is None:
        return wrap_to_columns(f"first prompt: {first_prompt}", columns, max_lines)
    text = snippet_from_words(hit.snippet, hit.place, columns * (max_lines - 1))
    return [
        cut_to_columns(hit.about, columns),
        *wrap_to_columns(text, columns, max_lines - 1),
    ]


def _turns_with_words(pane: PaneEvent, folder: str, where: Where) -> tuple[list[TurnHit], str]:
    """Return the turns that contain the words, and the number of files that are not indexed yet.

    If there is no index, no turns are returned.
    """
    # These imports take 60 ms; the titles must not wait for them.
    from resume_hooks.search.engine import Searcher, file_search_for_queries
    from resume_hooks.search.index.connect import opened_index
    from resume_hooks.search.query import parse_query
    from resume_hooks.search.scope import Scope, project_scope_of_folder

    try:
        if pane.everywhere:
            scope = Scope()
        else:
            scope = project_scope_of_folder(folder, where)
        scope = scope._replace(agent_names=frozenset(LISTABLE_AGENTS))
        with opened_index(
            where,
            max_seconds=UPDATE_SECONDS,
            file_search=file_search_for_queries([parse_query([pane.words])], scope, where),
        ) as index:
            partial_matches = sum(bool(file.term_numbers) for file in index.unread)
            if index.outcome.remaining_files:
                unindexed_text = f" · {index.outcome.remaining_files:,} files not indexed yet"
            else:
                unindexed_text = ""
            unindexed_text += (
                f", {partial_matches:,} with some of the words" if partial_matches else ""
            )
            return turns_with_words(Searcher(index, scope, where), pane.words), unindexed_text
    except ResumeHooksError as error:
        return [], f" · searching the turns failed: {error.message}"


def _preview_lines(pane: PaneEvent, where: Where) -> list[str]:
    _, height = _lines_of_list_and_preview(pane)
    if height < 1 or not pane.at:
        return []
    return _page_of_session(pane, height, where).lines


def _page_reply(pane: PaneEvent, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return a page of the marked session, from its hit or else from its outline, with the actions.

    On the first page the default action is to read on if there is a hit, or else to resume the
    session.
    """
    row = _marked_session(pane.at, where)
    actions = []
    for action in ACTIONS:
        if action[0] != UNDO or was_compacted(row.path):
            actions.append(action)
    height = (
        pane.lines - FIELD_LINES - _rows_of_names([name for _, name, _ in actions], pane.columns)
    )
    heading = [row.title] if height > MIN_PREVIEW_LINES else []
    page = _page_of_session(pane, height - len(heading), where)
    if not _is_in_client_project(row, event):
        actions = [
            (word, name, _effect_elsewhere(word, effect, row)) for word, name, effect in actions
        ]
    if not heading:
        actions = [
            (word, name, _effect_with_title(word, effect, row)) for word, name, effect in actions
        ]
    default_action = [word for word, *_ in actions].index(READ_ON if pane.reference else OPEN)
    lines = []
    for line in [*heading, *page.lines]:
        lines.append(cut_to_columns(line, pane.columns))
    return {
        "lines_read": lines,
        "ways": actions,
        "page": page.number,
        **({} if pane.page else {"way": default_action}),
    }


def _rows_of_names(names: list[str], columns: int) -> int:
    """Return the number of rows in which the module draws the names of the actions, with as many as fit in each."""
    rows, width = 1, 0
    for name in names:
        if width and width + GAP + len(name) > columns:
            rows, width = rows + 1, 0
        width += len(name) + (GAP if width else 0)
    return rows


def _effect_with_title(word: str, effect: str, row: ListedSession) -> str:
    """Return the effect of an action, with the session's title if the page has no space for the title."""
    if word in {READ_ON, READ_BACK, LIST}:
        return effect
    return f"{effect} · {row.title}"


def _effect_elsewhere(word: str, effect: str, row: ListedSession) -> str:
    """Return the effect of an action on another project's session, which the running client cannot open."""
    if word in FIRST_STEPS_ELSEWHERE:
        return f"{FIRST_STEPS_ELSEWHERE[word]}copies the command for {row.folder}"
    return effect


def _page_of_session(pane: PaneEvent, height: int, where: Where) -> Page:
    """Return the text around a session's hit, or else the session's outline.

    If the session cannot be read, return the reason.
    """
    # These imports take 100 ms; a list must not wait for them.
    from resume_hooks.hooks.session_list.hit_text import hit_page, page_at
    from resume_hooks.hooks.session_list.preview import OUTLINE, preview, session_facts

    try:
        if pane.reference:
            return hit_page(pane.reference, pane.found, pane.page, pane.columns, height, where)
        row = _marked_session(pane.at, where)
    except ResumeHooksError as error:
        return page_at(
            [cut_to_columns(f"{error.message}. {error.remedy}", pane.columns)], 0, 0, height
        )
    lines = [*session_facts(row)[1:], *preview(OUTLINE, row, where)]
    return page_at([cut_to_columns(line, pane.columns) for line in lines], 0, pane.page, height)


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
    row = (
        SessionLister(os.path.dirname(session.path), where).row_of_session(session, None)
        if session
        else None
    )
    if row is None:
        raise SessionNotFound("This session no longer exists", "Type to list the sessions again.")
    return row


def open_marked_session(
    word: str, event: dict[str, Any], current_id: str, where: Where
) -> dict[str, Any]:
    """Open the marked session or a new child of it. Raise ResumeHooksError."""
    row = _marked_session(_parse_pane_event(event).at, where)
    if word in {OPEN, "fork"} and (limitation := registry.row_of_agent(row.agent).loss_note):
        raise UsageError(limitation, "hand off continues from them in a fresh session")
    if word == OPEN:
        if row.session_id == current_id:
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
    manual_command = plain_text(f"To open it, in a shell: {command}")
    if _is_in_client_project(row, event):
        return {
            "open": session_id,
            "by_hand": manual_command,
            "fill": "",
            "remark": plain_text(remark),
        }
    copied = prompt.copy_by_setting(command)
    return {
        "text": plain_text(
            f"It belongs to another folder. The command that opens it: {command} ({copied.how})"
        )
    }


def _is_in_client_project(row: ListedSession, event: dict[str, Any]) -> bool:
    """Check whether a session belongs to the running client's project; only then can the client open it."""
    client_path = event.get("transcript_path")
    return isinstance(client_path, str) and _project_name(client_path) == _project_name(row.path)


def _project_name(path: str) -> str:
    """Return the name of a transcript's project folder.

    The archived copy of a deleted session has the same folder name.
    """
    return os.path.basename(os.path.dirname(path))
