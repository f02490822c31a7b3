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
from resume_hooks.hooks import hook_replies, prompt
from resume_hooks.hooks.request import ALL_WORD, current_folder, parse_search_words
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
    UPDATE_SECONDS,
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
from resume_hooks.sessions.agents.registry import LISTABLE_AGENTS
from resume_hooks.sessions.open_sessions import Clients
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session import Session
from resume_hooks.system.invocation import resume_command, shell_command
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import was_compacted

if TYPE_CHECKING:
    from resume_hooks.hooks.session_list.hit_text import Page

# the steps of a question; the module asks for the first three in this order
NAMES_STEP, HITS_STEP, PREVIEW_STEP, PAGE_STEP = "names", "said", "preview", "page"

LISTING_SECONDS = 1.0
"""The processor time in seconds until listing stops.

That is enough for the newest sessions, even on a busy machine.
"""

FIELD_LINES = 1  # the number of lines of the input field
FIELD_AND_HEADING_LINES = 3  # the number of lines above a list: the input field and the heading
NAME_GAP_COLUMNS = 2  # the number of columns between the names of two actions
MIN_LIST_LINES = 12  # the minimum number of lines of a list above a preview
MIN_PREVIEW_LINES = 4  # the minimum number of lines of a preview, and of a page with a title
# the number of lines and columns to request for the pane; the client may give fewer
PANE_LINES, PANE_COLUMNS = 40, 90

FORK_ACTION, UNDO_ACTION, LIST_ACTION = "fork", "undo", "list"
OPEN_ACTION, READ_ON_ACTION, READ_BACK_ACTION = "open", "on", "back"
ACTIONS = (
    (READ_ON_ACTION, "read on", "the text after these lines"),
    (READ_BACK_ACTION, "read back", "the text before these lines"),
    (OPEN_ACTION, "resume", "continues this session"),
    ("handoff", "hand off", "opens a fresh session that knows this one"),
    (FORK_ACTION, "fork", "opens a copy; this session stays as it is"),
    (UNDO_ACTION, "undo compaction", "opens a copy from before the compaction"),
    (LIST_ACTION, "list", "back to the list"),
)
"""The actions on the session of the open page: the module's word, its name, its effect.

No action has a letter key, because every letter goes to the search.
"""

EFFECTS_IF_OPEN_ELSEWHERE = {
    OPEN_ACTION: "loses turns, because another window has it open; fork does not",
    FORK_ACTION: "opens a copy, because another window has this session open",
}
"""The effects on a session that another client has open: a later resume shows the turns of only one client."""

FIRST_STEPS_ELSEWHERE = {
    OPEN_ACTION: "",
    "handoff": "a fresh session is made; ",
    FORK_ACTION: "a copy is made; ",
    UNDO_ACTION: "a copy is made; ",
}
"""The first step of an action on another project's session. The command that opens the session is then copied."""

MAX_ROWS_AROUND = 100
"""The number of rows before and after the marked row that the module receives, so that it can move without asking."""

SEARCHING_HINT = " by name · searching the turns …"
BUSY_HINT = "one moment, searching …"
CLOSE_HINT = "Esc closes"
FOCUS_HINT = "The prompt has the keys · Ctrl+X Tab: back"
FIELD_PLACEHOLDER = f"words, or {ALL_WORD}"
ENTER_LABEL = "look into it"


class PaneEvent(NamedTuple):
    """The module's report on the pane. ``marked_id`` is the marked session, or ``""`` before a session is marked.

    ``reference`` is its matching record, ``hit_text`` the record's text from the hit on, and
    ``page_number`` the number of pages after the hit. ``side_columns`` is the number of columns
    next to the list with the field and the text of the marked row, 0 if they have lines of their
    own.
    """

    words: str
    in_all_projects: bool
    marked_id: str
    columns: int
    lines: int
    step: str
    reference: str
    hit_text: str
    page_number: int
    side_columns: int = 0


def open_pane(text: str) -> dict[str, Any]:
    """Return the pane that a command opens; ``text`` is the text after the command.

    The list follows when the pane's size is known.

    Raise UsageError for an unknown option. A space follows the words, so that the user can type
    another word directly.
    """
    in_all_projects, words = parse_search_words(text)
    parts = [ALL_WORD] if in_all_projects else []
    return {
        "words": "".join(f"{part} " for part in [*parts, *words.split()]),
        "head": BUSY_HINT,
        "away": FOCUS_HINT,
        "busy": BUSY_HINT,
        "placeholder": FIELD_PLACEHOLDER,
        "submitLabel": ENTER_LABEL,
        "tall": PANE_LINES,
        "wide": PANE_COLUMNS,
    }


def update_pane(event: dict[str, Any], path: str | None, where: Where) -> dict[str, Any]:
    """Return the next content of the pane. Raise ResumeHooksError."""
    pane = _parse_pane_event(event)
    if pane.step == PREVIEW_STEP:
        return {"preview": _preview_lines(pane, where), "next": ""}
    if pane.step == PAGE_STEP:
        return _page_reply(pane, event, where)
    if path:
        folder = home_folder(HeadTail(path), where)
    else:
        folder = current_folder()
    with time_limit(shell_command("resume")):
        return _list_reply(pane, folder, where)


def _parse_pane_event(event: dict[str, Any]) -> PaneEvent:
    def clamped_field(name: str, min_value: int = 0) -> int:
        value = event.get(name)
        if isinstance(value, int) and value is not True:
            return max(min_value, min(value, 500))
        return 0

    typed_words = hook_replies.text_field(event, "args").split()
    words = " ".join(word for word in typed_words if word != ALL_WORD)
    marked_id, step, reference, hit_text = (
        hook_replies.text_field(event, name) for name in ("at", "step", "reference", "found")
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
    if pane.step == HITS_STEP:
        turns, unindexed_text = _search_turns(pane, folder, where)
        choices.set_hits(turns)
    list_lines, _ = _divide_lines(pane)
    heading = _list_heading(pane, choices, unindexed_text, is_complete=is_complete)
    matches, time_now = choices.matches, time.time()
    marked_row = _find_row_to_mark(pane, choices)
    index = matches.index(marked_row) if marked_row else 0
    first_index, end_index = max(0, index - MAX_ROWS_AROUND), index + MAX_ROWS_AROUND + 1
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
        "again": HITS_STEP if pane.words else NAMES_STEP,
        "next": HITS_STEP if pane.step == NAMES_STEP and pane.words else PREVIEW_STEP,
    }
    if marked_row is None or marked_row.session_id != pane.marked_id:
        answer["preview"] = []  # the old preview belongs to another session
    return answer


def _list_choices(pane: PaneEvent, folder: str, where: Where) -> tuple[Choices, bool]:
    """Return the sessions to choose from, and whether the list is complete. Reading stops after ``LISTING_SECONDS``."""
    choices = Choices(pane.words)
    deadline = time.process_time() + LISTING_SECONDS
    for session in list_entries(folder, where, all_projects=pane.in_all_projects):
        choices.add_entries([session])
        if time.process_time() > deadline:
            return choices, False
    return choices, True


def _find_row_to_mark(pane: PaneEvent, choices: Choices) -> ListedSession | None:
    """Return the marked session if it still matches, else the best match, or None if no session matches."""
    for row in choices.matches:
        if row.session_id == pane.marked_id:
            return row
    return choices.chosen_session


def _list_heading(
    pane: PaneEvent, choices: Choices, unindexed_text: str, *, is_complete: bool
) -> str:
    """Return the heading: what is listed and how many, or that nothing matches, or that not all was searched."""
    match_count, session_count = (
        len(choices.matches),
        f"{choices.count:,}{'' if is_complete else '+'}",
    )
    scope_text = "every project" if pane.in_all_projects else "this project"
    if not pane.words:
        scope_suffix = f" of {scope_text}" if pane.in_all_projects else " here"
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


def _divide_lines(pane: PaneEvent) -> tuple[int, int]:
    """Return the lines of the list and of the preview. A small pane has no preview, because a page shows more."""
    if pane.side_columns:
        return (max(1, pane.lines), 0)
    list_and_preview = max(1, pane.lines - FIELD_LINES)
    if list_and_preview < MIN_LIST_LINES + MIN_PREVIEW_LINES:
        return (list_and_preview, 0)
    return (
        max(MIN_LIST_LINES, list_and_preview // 2),
        list_and_preview - max(MIN_LIST_LINES, list_and_preview // 2),
    )


def _count_lines_of_row(pane: PaneEvent) -> int:
    if pane.words and not pane.side_columns:
        return 2
    return 1


def _build_pane_row(pane: PaneEvent, choices: Choices, row: ListedSession, now: float) -> list[Any]:
    """Return a row for the module: the session, its lines, its lines while marked, and its hit.

    In a low pane a row has one line, and the text next to the list while it is marked follows.
    """
    hit_of_row = choices.best_hit(row)
    if hit_of_row is None or not hit_of_row.reference:
        hit_of_row, hit = None, {}
    else:
        hit = {
            "reference": hit_of_row.reference,
            "found": hit_of_row.snippet[hit_of_row.position :],
        }
    prompt = choices.first_prompt_of_row(row)
    if pane.side_columns:
        draw_lines = partial(
            _single_line_row, row, hit_of_row, pane.columns - pane.side_columns, now
        )
    elif hit_of_row is not None:
        draw_lines = partial(hit_rows, row, hit_of_row, pane.columns)
    elif pane.words:
        draw_lines = partial(first_prompt_rows, row, prompt, pane.columns, now)
    else:
        draw_lines = partial(_single_line_row, row, None, pane.columns, now)
    entry = [row.session_id, draw_lines(is_chosen=False), draw_lines(is_chosen=True), hit]
    if pane.side_columns:
        entry.append(_describe_row_next_to_list(pane, hit_of_row, prompt))
    return entry


def _single_line_row(
    row: ListedSession, hit: TurnHit | None, columns: int, now: float, *, is_chosen: bool
) -> list[str]:
    """Return a row of one line."""
    if hit is None:
        return [session_line(row, columns, now, is_chosen=is_chosen)]
    return [hit_line(row, hit, columns, is_chosen=is_chosen)]


def _describe_row_next_to_list(
    pane: PaneEvent, hit: TurnHit | None, first_prompt: str
) -> list[str]:
    """Return the speaker of a row's hit and the text around it, or the session's first prompt."""
    columns, max_lines = pane.side_columns - 1, max(1, pane.lines - FIELD_AND_HEADING_LINES)
    if hit is None and not first_prompt:
        return []
    if hit is None:
        return wrap_to_columns(f"first prompt: {first_prompt}", columns, max_lines)
    text = cut_snippet_start(hit.snippet, hit.position, columns * (max_lines - 1))
    return [
        cut_to_columns(hit.description, columns),
        *wrap_to_columns(text, columns, max_lines - 1),
    ]


def _search_turns(pane: PaneEvent, folder: str, where: Where) -> tuple[list[TurnHit], str]:
    """Return the turns that contain the words, and the number of files that are not indexed yet.

    If there is no index, no turns are returned.
    """
    # These imports take 60 ms; the titles must not wait for them.
    from resume_hooks.search.index.connect import opened_index
    from resume_hooks.search.query import parse_query
    from resume_hooks.search.run_search import Searcher, file_search_for_queries
    from resume_hooks.search.scope import Scope, project_scope_of_folder

    try:
        if pane.in_all_projects:
            scope = Scope()
        else:
            scope = project_scope_of_folder(folder, where)
        scope = scope._replace(agent_names=frozenset(LISTABLE_AGENTS))
        with opened_index(
            where,
            max_seconds=UPDATE_SECONDS,
            file_search=file_search_for_queries([parse_query([pane.words])], scope, where),
        ) as index:
            partial_matches = sum(bool(file.term_numbers) for file in index.unindexed_files)
            if index.outcome.remaining_files:
                unindexed_text = f" · {index.outcome.remaining_files:,} files not indexed yet"
            else:
                unindexed_text = ""
            unindexed_text += (
                f", {partial_matches:,} with some of the words" if partial_matches else ""
            )
            return find_turns_with_words(Searcher(index, scope, where), pane.words), unindexed_text
    except ResumeHooksError as error:
        return [], f" · searching the turns failed: {error.message}"


def _preview_lines(pane: PaneEvent, where: Where) -> list[str]:
    _, height = _divide_lines(pane)
    if height < 1 or not pane.marked_id:
        return []
    return _make_page(pane, height, where).lines


def _page_reply(pane: PaneEvent, event: dict[str, Any], where: Where) -> dict[str, Any]:
    """Return a page of the marked session, from its hit or else from its outline, with the actions.

    On the first page, Enter reads on if there is a hit. Otherwise it resumes the session, or forks
    it if another window has it open.
    """
    row = _find_marked_session(pane.marked_id, where)
    offered_actions = []
    for action in ACTIONS:
        if action[0] != UNDO_ACTION or was_compacted(row.path):
            offered_actions.append(action)
    height = pane.lines - FIELD_LINES
    height -= _count_name_rows([name for _, name, _ in offered_actions], pane.columns)
    heading = [row.title] if height > MIN_PREVIEW_LINES else []
    page = _make_page(pane, height - len(heading), where)
    is_elsewhere = not _is_in_client_project(row, event)
    is_open_elsewhere = row.session_id != hook_replies.text_field(event, "session_id") and bool(
        Clients(where).find_client_of_session(row.session_id)
    )
    actions = []
    for word, name, effect in offered_actions:
        shown_effect = effect
        if is_open_elsewhere:
            shown_effect = EFFECTS_IF_OPEN_ELSEWHERE.get(word, effect)
        if is_elsewhere:
            shown_effect = _describe_effect_elsewhere(word, shown_effect, row)
        if not heading:
            shown_effect = _describe_effect_with_title(word, shown_effect, row)
        actions.append((word, name, shown_effect))
    lines = []
    for line in [*heading, *page.lines]:
        lines.append(cut_to_columns(line, pane.columns))
    page_reply: dict[str, Any] = {"lines_read": lines, "ways": actions, "page": page.number}
    if not pane.page_number:
        default_word = FORK_ACTION if is_open_elsewhere else OPEN_ACTION
        if pane.reference:
            default_word = READ_ON_ACTION
        page_reply["way"] = [word for word, *_ in actions].index(default_word)
    return page_reply


def _count_name_rows(names: list[str], columns: int) -> int:
    """Return the number of rows in which the module draws the names of the actions, with as many as fit in each."""
    rows, width = 1, 0
    for name in names:
        if width and width + NAME_GAP_COLUMNS + len(name) > columns:
            rows, width = rows + 1, 0
        width += len(name) + (NAME_GAP_COLUMNS if width else 0)
    return rows


def _describe_effect_with_title(word: str, effect: str, row: ListedSession) -> str:
    """Return the effect of an action, with the session's title if the page has no space for the title."""
    if word in {READ_ON_ACTION, READ_BACK_ACTION, LIST_ACTION}:
        return effect
    return f"{effect} · {row.title}"


def _describe_effect_elsewhere(word: str, effect: str, row: ListedSession) -> str:
    """Return the effect of an action on another project's session, which the running client cannot open."""
    if word in FIRST_STEPS_ELSEWHERE:
        return f"{FIRST_STEPS_ELSEWHERE[word]}copies the command for {row.folder}"
    return effect


def _make_page(pane: PaneEvent, height: int, where: Where) -> Page:
    """Return the text around a session's hit, or else the session's outline.

    If the session cannot be read, return the reason.
    """
    # These imports take 100 ms; a list must not wait for them.
    from resume_hooks.hooks.session_list.hit_text import cut_page, make_hit_page
    from resume_hooks.hooks.session_list.preview import OUTLINE, describe_session, make_preview

    try:
        if pane.reference:
            return make_hit_page(
                pane.reference, pane.hit_text, pane.page_number, pane.columns, height, where
            )
        row = _find_marked_session(pane.marked_id, where)
    except ResumeHooksError as error:
        return cut_page(
            [cut_to_columns(f"{error.message}. {error.remedy}", pane.columns)], 0, 0, height
        )
    lines = [*describe_session(row)[1:], *make_preview(OUTLINE, row, where)]
    return cut_page(
        [cut_to_columns(line, pane.columns) for line in lines], 0, pane.page_number, height
    )


def _find_marked_session(session_id: str, where: Where) -> ListedSession:
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
    action: str, event: dict[str, Any], current_id: str, where: Where
) -> dict[str, Any]:
    """Open the marked session or a new child of it. Raise ResumeHooksError."""
    row = _find_marked_session(_parse_pane_event(event).marked_id, where)
    if action in {OPEN_ACTION, "fork"} and (
        limitation := registry.row_of_agent(row.agent).loss_note
    ):
        raise UsageError(limitation, "hand off continues from them in a fresh session")
    if action == OPEN_ACTION:
        if row.session_id == current_id:
            return {"text": "This is the session that you are in."}
        return _open_session_reply(row.session_id, row, event, "")
    outcome = _make_child(action, row, where)
    match outcome:
        case OpenedSession(receipt=receipt, remark=remark):
            return _open_session_reply(receipt.session_id, row, event, remark)
    raise TypeError(f"{action} came to {type(outcome).__name__}")


def _make_child(action: str, row: ListedSession, where: Where) -> Outcome:
    """Return the outcome of the action ``action`` on a session."""
    # Only an action that creates a child needs these imports.
    from resume_hooks.derive.cut_point import CutBeforeCompaction
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.derive.verbs.fork import WHOLE, ForkSpec, fork
    from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff

    session = Session.open_path(row.path, where)
    if action == UNDO_ACTION:
        limit_time = partial(
            time_limit, shell_command(f"fork {row.session_id} --before-compaction")
        )
        return fork(session, ForkSpec(CutBeforeCompaction()), Caller(where, time_limit=limit_time))
    if action == FORK_ACTION:
        limit_time = partial(time_limit, shell_command(f"fork {row.session_id}"))
        return fork(session, WHOLE, Caller(where, time_limit=limit_time))
    limit_time = partial(time_limit, shell_command(f"handoff {row.session_id}"))
    return handoff(session, HandoffSpec(), Caller(where, reuses_child=True, time_limit=limit_time))


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
