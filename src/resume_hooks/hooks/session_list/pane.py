"""The client's pane for ``/search`` and ``/sessions``: its content, and the actions of its keys.

This module stores nothing. The client's module reports the typed words, the marked session and the
size of the pane. Titles, hits and the preview are separate answers, so that a slow one does not
delay the others.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks.derive.outcome import OpenedSession, Outcome
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import hook_replies, prompt
from resume_hooks.hooks.request import ALL_OPTION, current_folder, parse_search_input
from resume_hooks.hooks.session_list.rows import (
    cut_snippet_start,
    cut_to_columns,
    first_prompt_rows,
    hit_line,
    hit_rows,
    session_line,
    wrap_to_columns,
)
from resume_hooks.hooks.session_list.state import (
    MAX_INDEX_UPDATE_SECONDS,
    Choices,
    TurnHit,
    find_turns_with_words,
    list_entries,
)
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.paths import Where, find_session
from resume_hooks.search.listing import ListedSession, SessionLister
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.registry import LISTABLE_AGENT_NAMES
from resume_hooks.sessions.open_sessions import RunningClients
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session import Session
from resume_hooks.system.invocation import resume_command, shell_command
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import was_compacted

if TYPE_CHECKING:
    from resume_hooks.hooks.session_list.hit_text import Page

# The steps of filling the pane. The module asks for the first three in this order.
NAMES_STEP, HITS_STEP, PREVIEW_STEP, PAGE_STEP = "names", "said", "preview", "page"

MAX_LISTING_SECONDS = 1.0
"""Processor time in seconds after which no more sessions are listed.

This is enough for the newest sessions, even on a busy machine.
"""

INPUT_FIELD_LINE_COUNT = 1  # the number of lines of the input field
HEADER_LINE_COUNT = 3  # the number of lines above a list, for the input field and the heading
NAME_GAP_COLUMNS = 2  # the number of columns between the names of two actions
MIN_LIST_LINES = 12  # the minimum number of lines of a list that has a preview below it
# the minimum number of lines of a preview, and of a page that shows the title
MIN_PREVIEW_LINES = 4
# The number of lines and columns that the pane asks for. The client may give fewer.
PANE_LINES, PANE_COLUMNS = 40, 90

FORK_ACTION, UNDO_ACTION, LIST_ACTION = "fork", "undo", "list"
OPEN_ACTION, READ_ON_ACTION, READ_BACK_ACTION = "open", "on", "back"
PAGE_ACTIONS = (
    (READ_ON_ACTION, "read on", "the text after these lines"),
    (READ_BACK_ACTION, "read back", "the text before these lines"),
    (OPEN_ACTION, "resume", "continues this session"),
    ("handoff", "hand off", "opens a new session that knows this one"),
    (FORK_ACTION, "fork", "opens a copy; this session stays as it is"),
    (UNDO_ACTION, "undo compaction", "opens a copy from before the compaction"),
    (LIST_ACTION, "list", "back to the list"),
)
"""The actions on the page of a session. Each has a name for the module, a shown name, and its effect.

No action has a letter as its key, because every letter that the user types goes to the search.
"""

EFFECTS_IF_OPEN_ELSEWHERE = {
    OPEN_ACTION: "loses turns: another window has the session open; fork loses none",
    FORK_ACTION: "opens a copy, because another window has this session open",
}
"""Effects of actions on a session that another client has open. If two clients write to a session,
turns are lost."""

EFFECT_BEGINNINGS_IN_OTHER_PROJECT = {
    OPEN_ACTION: "",
    "handoff": "creates a new session and ",
    FORK_ACTION: "creates a copy and ",
    UNDO_ACTION: "creates a copy and ",
}
"""How the hint about an action begins if the session belongs to another project.

The client can't open such a session. The command that opens it is copied instead.
"""

MAX_ROWS_AROUND_MARKED_ROW = 100
"""The module gets the marked row, and this number of rows before and after it. The module can move
the mark to any of these rows without asking us."""

SEARCHING_HINT = " by name · searching the turns …"
BUSY_HINT = "one moment, searching …"
CLOSE_HINT = "Esc closes"
FOCUS_HINT = "Keys go to the prompt · Ctrl+X Tab: back here"
INPUT_FIELD_PLACEHOLDER = f"words, or {ALL_OPTION}"
ENTER_LABEL = "look into it"


class PaneEvent(NamedTuple):
    """The module's report about the pane.

    ``marked_id`` is the marked session, or ``""`` if no session is marked yet.
    ``record_reference`` names the session's record with the hit, and ``hit_text`` is the record's
    text from the hit on. ``page_number`` is the page to show; the page with the hit is 0.
    ``side_columns`` is the width of the field and the text next to the list, or 0 if these are
    above and below the list.
    """

    typed_text: str
    covers_all_projects: bool
    marked_id: str
    column_count: int
    line_count: int
    step: str
    record_reference: str
    hit_text: str
    page_number: int
    side_columns: int = 0


class _TurnSearch(NamedTuple):
    """The result of a search for turns.

    ``unindexed_text`` gives the number of files that are not indexed yet, or the reason why the
    search failed.
    """

    hits: list[TurnHit]
    unindexed_text: str


def open_pane(text: str) -> dict[str, Any]:
    """Return the pane that a command opens. ``text`` is the text after the command.

    The pane is empty at first. The list is sent when the size of the pane is known. A space is
    added to the user's words, so that the user can type the next word. Raise UsageError for an
    unknown option.
    """
    words, in_all_projects = parse_search_input(text)
    parts = [ALL_OPTION] if in_all_projects else []
    return {
        "words": "".join(f"{part} " for part in [*parts, *words.split()]),
        "head": BUSY_HINT,
        "away": FOCUS_HINT,
        "busy": BUSY_HINT,
        "placeholder": INPUT_FIELD_PLACEHOLDER,
        "submitLabel": ENTER_LABEL,
        "tall": PANE_LINES,
        "wide": PANE_COLUMNS,
    }


def update_pane(event: dict[str, Any], path: str | None, where: Where) -> dict[str, Any]:
    """Return the new content of the pane, for the step that the event names. Raise ResumeHooksError."""
    pane = _parse_pane_event(event)
    if pane.step == PREVIEW_STEP:
        return {"preview": _preview_lines(pane, where), "next": ""}
    if pane.step == PAGE_STEP:
        return _make_page_reply(pane, event, where)
    if path:
        folder = home_folder_of_session(HeadTail(path), where)
    else:
        folder = current_folder()
    with time_limit(shell_command("resume")):
        return _make_list_reply(pane, folder, where)


def _parse_pane_event(event: dict[str, Any]) -> PaneEvent:
    def read_event_number(name: str, min_value: int = 0) -> int:
        value = event.get(name)
        if isinstance(value, int) and value is not True:
            return max(min_value, min(value, 500))
        return 0

    typed_words = hook_replies.text_field(event, "args").split()
    words = " ".join(word for word in typed_words if word != ALL_OPTION)
    marked_id, step, record_reference, hit_text = (
        hook_replies.text_field(event, name) for name in ("at", "step", "reference", "found")
    )
    columns, lines, page = (
        read_event_number("columns"),
        read_event_number("lines"),
        read_event_number("page", -500),
    )
    return PaneEvent(
        words,
        ALL_OPTION in typed_words,
        marked_id,
        columns,
        lines,
        step,
        record_reference,
        hit_text,
        page,
        read_event_number("side"),
    )


def _make_list_reply(pane: PaneEvent, folder: str, where: Where) -> dict[str, Any]:
    choices, is_complete = _list_choices(pane, folder, where)
    unindexed_text = ""
    if pane.step == HITS_STEP:
        turn_search = _search_turns(pane, folder, where)
        unindexed_text = turn_search.unindexed_text
        choices.set_hits(turn_search.hits)
    list_lines, _ = _count_list_and_preview_lines(pane)
    heading = _list_heading(pane, choices, unindexed_text, is_complete=is_complete)
    matches, time_now = choices.matches, time.time()
    marked_row = _find_row_to_mark(pane, choices)
    index = matches.index(marked_row) if marked_row else 0
    first_index, end_index = (
        max(0, index - MAX_ROWS_AROUND_MARKED_ROW),
        index + MAX_ROWS_AROUND_MARKED_ROW + 1,
    )
    rows = matches[first_index:end_index]
    edge_ids = []
    if first_index:
        edge_ids.append(rows[0].session_id)
    if matches[end_index:]:
        edge_ids.append(rows[-1].session_id)
    answer: dict[str, Any] = {
        "head": heading,
        "rows": [_build_pane_row(pane, choices, row, time_now) for row in rows],
        "most": max(1, list_lines // _count_lines_of_row(pane)),
        "at": marked_row.session_id if marked_row else "",
        "edges": edge_ids,
        "again": HITS_STEP if pane.typed_text else NAMES_STEP,
        "next": HITS_STEP if pane.step == NAMES_STEP and pane.typed_text else PREVIEW_STEP,
    }
    if marked_row is None or marked_row.session_id != pane.marked_id:
        answer["preview"] = []  # The preview in the pane belongs to another session.
    return answer


def _list_choices(pane: PaneEvent, folder: str, where: Where) -> tuple[Choices, bool]:
    """Return the sessions of the list, and whether it is complete. Stop after ``MAX_LISTING_SECONDS``."""
    choices = Choices(pane.typed_text)
    deadline = time.process_time() + MAX_LISTING_SECONDS
    for session in list_entries(folder, where, covers_all_projects=pane.covers_all_projects):
        choices.add_entries([session])
        if time.process_time() > deadline:
            return choices, False
    return choices, True


def _find_row_to_mark(pane: PaneEvent, choices: Choices) -> ListedSession | None:
    """Return the marked session if it still matches, else the best match. Return None if nothing matches."""
    for row in choices.matches:
        if row.session_id == pane.marked_id:
            return row
    return choices.chosen_session


def _list_heading(
    pane: PaneEvent, choices: Choices, unindexed_text: str, *, is_complete: bool
) -> str:
    """Return the heading: the number of listed sessions, and a note on what was not searched."""
    match_count, session_count = (
        len(choices.matches),
        f"{choices.session_count:,}{'' if is_complete else '+'}",
    )
    scope_text = "every project" if pane.covers_all_projects else "this project"
    if not pane.typed_text:
        scope_suffix = f" of {scope_text}" if pane.covers_all_projects else " here"
        return f"{session_count}{scope_suffix}, newest first · {CLOSE_HINT}"
    if pane.step == NAMES_STEP:
        unindexed_text = SEARCHING_HINT
    elif not match_count:
        if is_complete:
            unsearched_text = ""
        else:
            unsearched_text = " · older sessions were not searched"
        return f"Nothing found{unsearched_text}{unindexed_text} · {scope_text}, {session_count} sessions"
    return f"{match_count:,} of {session_count}, {scope_text}{unindexed_text} · {CLOSE_HINT}"


def _count_list_and_preview_lines(pane: PaneEvent) -> tuple[int, int]:
    """Return the number of lines of the list and of the preview. A small pane has no preview."""
    if pane.side_columns:
        return (max(1, pane.line_count), 0)
    list_and_preview = max(1, pane.line_count - INPUT_FIELD_LINE_COUNT)
    if list_and_preview < MIN_LIST_LINES + MIN_PREVIEW_LINES:
        return (list_and_preview, 0)
    return (
        max(MIN_LIST_LINES, list_and_preview // 2),
        list_and_preview - max(MIN_LIST_LINES, list_and_preview // 2),
    )


def _count_lines_of_row(pane: PaneEvent) -> int:
    if pane.typed_text and not pane.side_columns:
        return 2
    return 1


def _build_pane_row(pane: PaneEvent, choices: Choices, row: ListedSession, now: float) -> list[Any]:
    """Return a row for the module: the session, its lines, its lines while it is marked, and its hit.

    If the pane shows a text next to the list, that text is the last value of the row.
    """
    hit_of_row = choices.best_hit(row)
    if hit_of_row is None or not hit_of_row.reference:
        hit_of_row, hit = None, {}
    else:
        hit = {
            "reference": hit_of_row.reference,
            "found": hit_of_row.snippet[hit_of_row.match_position :],
        }
    prompt = choices.first_prompt_of_row(row)
    if pane.side_columns:
        draw_lines = partial(
            _single_line_row, row, hit_of_row, pane.column_count - pane.side_columns, now
        )
    elif hit_of_row is not None:
        draw_lines = partial(hit_rows, row, hit_of_row, pane.column_count)
    elif pane.typed_text:
        draw_lines = partial(first_prompt_rows, row, prompt, pane.column_count, now)
    else:
        draw_lines = partial(_single_line_row, row, None, pane.column_count, now)
    entry = [row.session_id, draw_lines(is_chosen=False), draw_lines(is_chosen=True), hit]
    if pane.side_columns:
        entry.append(_make_text_beside_list(pane, hit_of_row, prompt))
    return entry


def _single_line_row(
    row: ListedSession, hit: TurnHit | None, columns: int, now: float, *, is_chosen: bool
) -> list[str]:
    """Return a session's row with a single line."""
    if hit is None:
        return [session_line(row, columns, now, is_chosen=is_chosen)]
    return [hit_line(row, hit, columns, is_chosen=is_chosen)]


def _make_text_beside_list(pane: PaneEvent, hit: TurnHit | None, first_prompt: str) -> list[str]:
    """Return the text next to the list: the marked session's hit, or else its first prompt."""
    columns, max_lines = pane.side_columns - 1, max(1, pane.line_count - HEADER_LINE_COUNT)
    if hit is None and not first_prompt:
        return []
    if hit is None:
        return wrap_to_columns(f"first prompt: {first_prompt}", columns, max_lines)
    text = cut_snippet_start(hit.snippet, hit.match_position, columns * (max_lines - 1))
    return [
        cut_to_columns(hit.description, columns),
        *wrap_to_columns(text, columns, max_lines - 1),
    ]


def _search_turns(pane: PaneEvent, folder: str, where: Where) -> _TurnSearch:
    """Search for the turns that contain the words. If the index can't be used, return no turns."""
    # Imported late: the imports take 60 ms, and the titles must not wait for them.
    from resume_hooks.search.index.connect import open_index
    from resume_hooks.search.query import parse_query
    from resume_hooks.search.run_search import Searcher, file_search_for_queries
    from resume_hooks.search.scope import Scope, project_scope_of_folder

    try:
        if pane.covers_all_projects:
            scope = Scope()
        else:
            scope = project_scope_of_folder(folder, where)
        scope = scope._replace(agent_names=frozenset(LISTABLE_AGENT_NAMES))
        with open_index(
            where,
            max_seconds=MAX_INDEX_UPDATE_SECONDS,
            file_search=file_search_for_queries([parse_query([pane.typed_text])], scope, where),
        ) as index:
            partial_matches = sum(bool(file.term_numbers) for file in index.unindexed_files)
            if index.update_outcome.remaining_file_count:
                unindexed_text = (
                    f" · {index.update_outcome.remaining_file_count:,} files not indexed yet"
                )
            else:
                unindexed_text = ""
            unindexed_text += (
                f", {partial_matches:,} with some of the words" if partial_matches else ""
            )
            hits = find_turns_with_words(Searcher(index, scope, where), pane.typed_text)
            return _TurnSearch(hits, unindexed_text)
    except ResumeHooksError as error:
        return _TurnSearch([], f" · searching the turns failed: {error.message}")


def _preview_lines(pane: PaneEvent, where: Where) -> list[str]:
    _, height = _count_list_and_preview_lines(pane)
    if height < 1 or not pane.marked_id:
        return []
    return _make_page(pane, height, where).lines


def _make_page_reply(pane: PaneEvent, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return a page of the marked session, with the actions that the user can choose.

    On the first page one action is chosen: "read on" if there is a hit, else "resume", or "fork" if
    another window has the session open.
    """
    row = _find_marked_session(pane.marked_id, where)
    offered_actions = []
    for action in PAGE_ACTIONS:
        if action[0] != UNDO_ACTION or was_compacted(row.path):
            offered_actions.append(action)
    height = pane.line_count - INPUT_FIELD_LINE_COUNT
    height -= _count_rows_of_action_names(
        [name for _, name, _ in offered_actions], pane.column_count
    )
    heading = [row.title] if height > MIN_PREVIEW_LINES else []
    page = _make_page(pane, height - len(heading), where)
    is_elsewhere = not _is_in_client_project(row, event)
    is_open_elsewhere = row.session_id != hook_replies.text_field(event, "session_id") and bool(
        RunningClients(where).find_client_of_session(row.session_id)
    )
    actions = []
    for word, name, effect in offered_actions:
        shown_effect = effect
        if is_open_elsewhere:
            shown_effect = EFFECTS_IF_OPEN_ELSEWHERE.get(word, effect)
        if is_elsewhere:
            shown_effect = _describe_effect_in_other_project(word, shown_effect, row)
        if not heading:
            shown_effect = _describe_effect_with_title(word, shown_effect, row)
        actions.append((word, name, shown_effect))
    lines = []
    for line in [*heading, *page.lines]:
        lines.append(cut_to_columns(line, pane.column_count))
    page_reply: dict[str, Any] = {"lines_read": lines, "ways": actions, "page": page.page_number}
    if not pane.page_number:
        default_word = FORK_ACTION if is_open_elsewhere else OPEN_ACTION
        if pane.record_reference:
            default_word = READ_ON_ACTION
        page_reply["way"] = [word for word, *_ in actions].index(default_word)
    return page_reply


def _count_rows_of_action_names(names: list[str], columns: int) -> int:
    """Return the number of rows that the names of the actions fill.

    The module draws as many names in a row as fit.
    """
    rows, width = 1, 0
    for name in names:
        if width and width + NAME_GAP_COLUMNS + len(name) > columns:
            rows, width = rows + 1, 0
        width += len(name) + (NAME_GAP_COLUMNS if width else 0)
    return rows


def _describe_effect_with_title(action: str, effect: str, row: ListedSession) -> str:
    """Return an action's effect, followed by the session's title.

    This is used for a page that is too short for a separate line with the title.
    """
    if action in {READ_ON_ACTION, READ_BACK_ACTION, LIST_ACTION}:
        return effect
    return f"{effect} · {row.title}"


def _describe_effect_in_other_project(action: str, effect: str, row: ListedSession) -> str:
    """Return an action's effect on a session that belongs to another project.

    This client can't open such a session.
    """
    if action in EFFECT_BEGINNINGS_IN_OTHER_PROJECT:
        return f"{EFFECT_BEGINNINGS_IN_OTHER_PROJECT[action]}copies the command for {row.folder}"
    return effect


def _make_page(pane: PaneEvent, height: int, where: Where) -> Page:
    """Return a page of the text around the hit, or of the session's outline if there is no hit.

    If the session can't be read, return the reason as a page.
    """
    # Imported late, because the imports take 100 ms, which would delay the list.
    from resume_hooks.hooks.session_list.hit_text import cut_page, make_hit_page
    from resume_hooks.hooks.session_list.preview import OUTLINE, describe_session, make_preview

    try:
        if pane.record_reference:
            return make_hit_page(
                pane.record_reference,
                pane.hit_text,
                pane.page_number,
                pane.column_count,
                height,
                where,
            )
        row = _find_marked_session(pane.marked_id, where)
    except ResumeHooksError as error:
        return cut_page(
            [cut_to_columns(f"{error.message}. {error.remedy}", pane.column_count)], 0, 0, height
        )
    lines = [*describe_session(row)[1:], *make_preview(OUTLINE, row, where)]
    return cut_page(
        [cut_to_columns(line, pane.column_count) for line in lines], 0, pane.page_number, height
    )


def _find_marked_session(session_id: str, where: Where) -> ListedSession:
    """Return the session that is marked in the list. Raise SessionNotFound if it no longer exists."""
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
    action: str, event: dict[str, Any], current_id: str, where: Where
) -> dict[str, Any]:
    """Open the marked session or a new child of it, depending on ``action``.

    Raise ResumeHooksError if the session can't be opened.
    """
    row = _find_marked_session(_parse_pane_event(event).marked_id, where)
    if action in {OPEN_ACTION, "fork"} and (
        limitation := registry.row_of_agent(row.agent).loss_note
    ):
        raise UsageError(limitation, 'To make a new session from the prompts, choose "hand off".')
    if action == OPEN_ACTION:
        if row.session_id == current_id:
            return {"text": "This is the session that you are in."}
        return _make_reply_that_opens_session(row.session_id, row, event, "")
    outcome = _make_child(action, row, where)
    match outcome:
        case OpenedSession(receipt=receipt, remark=remark):
            return _make_reply_that_opens_session(receipt.session_id, row, event, remark)
    raise TypeError(f"Unexpected outcome of {action}: {type(outcome).__name__}")


def _make_child(action: str, row: ListedSession, where: Where) -> Outcome:
    """Create the child of a session that ``action`` asks for, and return the outcome."""
    # Imported late because only an action that creates a child needs it.
    from resume_hooks.derive.cut_point import CutBeforeCompaction
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.derive.verbs.fork import WHOLE_CONVERSATION_FORK_SPEC, ForkSpec, fork
    from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff

    session = Session.open_path(row.path, where)
    if action == UNDO_ACTION:
        limit_time = partial(
            time_limit, shell_command(f"fork {row.session_id} --before-compaction")
        )
        return fork(session, ForkSpec(CutBeforeCompaction()), Caller(where, time_limit=limit_time))
    if action == FORK_ACTION:
        limit_time = partial(time_limit, shell_command(f"fork {row.session_id}"))
        return fork(session, WHOLE_CONVERSATION_FORK_SPEC, Caller(where, time_limit=limit_time))
    limit_time = partial(time_limit, shell_command(f"handoff {row.session_id}"))
    return handoff(session, HandoffSpec(), Caller(where, reuses_child=True, time_limit=limit_time))


def _make_reply_that_opens_session(
    session_id: str, row: ListedSession, event: dict[str, Any], remark: str
) -> dict[str, Any]:
    """Return the instruction that opens a session in the running client.

    If the session belongs to another project, copy the command that opens it, and return a message
    that says so.
    """
    command = resume_command(row.folder, session_id)
    if not os.path.isdir(row.folder):
        raise SessionNotFound(
            f"The session's folder {row.folder} no longer exists",
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
            f"The session belongs to another folder. The command that opens it: {command} ({copied.outcome})"
        )
    }


def _is_in_client_project(row: ListedSession, event: dict[str, Any]) -> bool:
    """Check whether a session belongs to the running client's project, so that the client can open it."""
    client_path = event.get("transcript_path")
    return isinstance(client_path, str) and _project_name(client_path) == _project_name(row.path)


def _project_name(path: str) -> str:
    """Return the name of a transcript's project folder. The vault uses the same names."""
    return os.path.basename(os.path.dirname(path))
