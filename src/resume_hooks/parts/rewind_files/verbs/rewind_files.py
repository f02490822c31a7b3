"""``rewind-files``: show the planned changes, ask the user, and restore the files of a project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from resume_hooks.cli.options import locate_session
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.errors import ExitCode, RestoreFailed, UsageError
from resume_hooks.parts.rewind_files import files_at_prompt, history, restore_files
from resume_hooks.parts.rewind_files.files_at_prompt import (
    TARGET_HELP,
    PromptState,
    describe_prompt,
)
from resume_hooks.parts.rewind_files.plan import FileChange, FilesPlan
from resume_hooks.parts.rewind_files.verbs import RewindFilesOptions
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.open_sessions import describe_open_session
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count, plain_line, plain_text

MAX_PRINTED_LINES = 400  # Maximum number of lines to show in all differences together.
MAX_LISTED_FILES = 3  # Maximum number of files that an error message lists.
_DIFFERENCE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class _RequestedRewind(NamedTuple):
    """The rewind that the options request: its session and its plan.

    ``prompt_state`` is the prompt that the options name, or None for an undo.
    ``open_state_description`` says why the session may be open, or is ``""`` if it is not open.
    """

    session: SessionFile
    prompt_state: PromptState | None
    files_plan: FilesPlan
    open_state_description: str


def rewind_files(options: RewindFilesOptions) -> ExitCode:
    """Show the changes, ask for confirmation, and restore the files.

    Return 1 if some files cannot be restored, else 0.
    """
    ask_first = options.must_ask("Putting files back")
    request = _build_request(options)
    files_plan, notes = request.files_plan, _list_warnings(request)
    if ask_first:
        print_text("\n".join([_format_plan(request), *(f"note: {note}" for note in notes)]))
    if not options.dry_run:
        _refuse_incomplete_plan(files_plan, allows_partial=options.allows_partial_restore)
    deleted_count = sum(change.action == "delete" for change in files_plan.changes_to_write)
    files_phrase = (
        f"{format_count(len(files_plan.changes_to_write), 'file')} "
        f"back{f' ({deleted_count:,} of them deleted)' if deleted_count else ''}"
    )
    is_confirmed = bool(files_plan.changes_to_write) and options.confirm_write(
        f"Put {files_phrase}?", ask_first=ask_first
    )
    if is_confirmed:
        copies_folder = restore_files.write_files(files_plan, options.where)
    else:
        copies_folder = ""
    options.print_answer(
        _build_json_data(request, copies_folder),
        lambda: _format_outcome(request, copies_folder, was_plan_shown=ask_first),
        () if ask_first else notes,
    )
    return int(bool(files_plan.refused_changes) and not options.dry_run)


def _build_request(options: RewindFilesOptions) -> _RequestedRewind:
    """Find the session and the prompt that the options name, and plan the changes.

    The result also says whether the session is open. Raises UsageError if options cannot be
    combined.
    """
    if (options.prompt_reference is None) is not options.undo:
        raise UsageError("Give either --to or --undo", TARGET_HELP)
    where, locator = options.where, options.locator
    if options.prompt_reference is None:
        session = locate_session(locator, where)
        return _RequestedRewind(
            session,
            None,
            restore_files.plan_undo(session.session_id, where),
            describe_open_session(session, where),
        )
    target = files_at_prompt.parse_target(options.prompt_reference)
    session = locate_session(locator if locator is not None else target.session_locator, where)
    if (
        target.session_locator is not None
        and locate_session(target.session_locator, where).session_id != session.session_id
    ):
        raise UsageError("SESSION and --to name different sessions", "Leave SESSION out.")
    require_client_file(session, where)
    file_history = history.read_file_history(session)
    prompt_state = files_at_prompt.find_prompt_state(file_history, target)
    return _RequestedRewind(
        session,
        prompt_state,
        files_at_prompt.plan_rewind(file_history, prompt_state, where),
        describe_open_session(session, where),
    )


def _refuse_incomplete_plan(files_plan: FilesPlan, *, allows_partial: bool) -> None:
    """Raise RestoreFailed if some files cannot be restored, unless ``--partial`` is given."""
    refused_changes = files_plan.refused_changes
    if not refused_changes or allows_partial:
        return
    listed_text = "; ".join(
        f"{plain_line(change.path_in_project.path)}: {change.refusal_reason}"
        for change in refused_changes[:MAX_LISTED_FILES]
    )
    if len(refused_changes) > MAX_LISTED_FILES:
        more_text = f"; and {len(refused_changes) - MAX_LISTED_FILES:,} more"
    else:
        more_text = ""
    if files_plan.changes_to_write:
        remaining_text = f"--partial puts the other {format_count(len(files_plan.changes_to_write), 'file')} back."
    else:
        remaining_text = "The other tracked files are unchanged."
    raise RestoreFailed(
        f"{format_count(len(refused_changes), 'file')} can't be put back: {listed_text}{more_text}",
        f"Nothing was written. {remaining_text}",
    )


def _list_warnings(request: _RequestedRewind) -> list[str]:
    warnings = []
    if request.prompt_state and not request.prompt_state.is_exact:
        warnings.append(
            "The client kept no state at this message. The last state before the message is "
            "used, although files were edited after that state."
        )
    if request.open_state_description and request.files_plan.changes_to_write:
        warnings.append(
            f"The session may be open ({request.open_state_description}). Its client will not notice that files "
            "have changed."
        )
    return warnings


def _build_json_data(request: _RequestedRewind, copies_folder: str) -> dict[str, Any]:
    files_plan, session = request.files_plan, request.session
    return {
        "session_id": session.session_id,
        "file": session.path,
        "project": files_plan.root.folder,
        "undo": request.prompt_state is None,
        "to": request.prompt_state
        and ValueWithFields(
            request.prompt_state,
            {"reference": f"{session.session_id}:{request.prompt_state.prompt.line_number}"},
        ),
        "files": [
            ValueWithFields(
                change, {"status": _find_change_status(change, was_written=bool(copies_folder))}
            )
            for change in files_plan.changes
        ],
        "complete": not files_plan.refused_changes,
        "written": bool(copies_folder),
        "kept": copies_folder or None,
    }


def _find_change_status(change: FileChange, *, was_written: bool) -> str:
    if change.action != "none":
        if was_written:
            return "written"
        return "planned"
    if change.is_missing:
        return "missing"
    if change.is_refused:
        return "refused"
    return "unchanged"


def _format_outcome(request: _RequestedRewind, copies_folder: str, *, was_plan_shown: bool) -> str:
    files_plan = request.files_plan
    if copies_folder:
        undo = shell_command(f"rewind-files {files_plan.session_id} --undo")
        outcome = facts_table(
            [
                ("put back", format_count(len(files_plan.changes_to_write), "file")),
                ("copies", copies_folder),
                ("take it back", undo),
            ]
        )
    elif files_plan.changes_to_write:
        outcome = "Nothing was written."
    else:
        outcome = _format_nothing_changed_message(request)
    if was_plan_shown:
        return outcome
    if copies_folder:
        return f"{_format_plan_header(request)}\n\n{outcome}"
    return f"{_format_plan(request)}\n\n{outcome}"


def _format_nothing_changed_message(request: _RequestedRewind) -> str:
    files_plan = request.files_plan
    if files_plan.refused_changes:
        count = format_count(len(files_plan.refused_changes), "file")
        return f"Nothing was written: {count} can't be put back, and all other files are already in the wanted state."
    if files_plan.time_of_undone_run:
        last = plain_line(files_plan.time_of_undone_run)
        return f"Nothing to undo: every file is already as it was before the last run of rewind-files at {last}."
    return "Nothing to do: no file differs."


def _format_plan(request: _RequestedRewind) -> str:
    """Return the plan as text: a summary of the change to each file, followed by the changed lines."""
    differences = list(_format_differences(request.files_plan))
    return "\n".join([_format_plan_header(request), *(["", *differences] if differences else [])])


def _format_plan_header(request: _RequestedRewind) -> str:
    files_plan = request.files_plan
    last = f"as they were before the last run of rewind-files at {plain_line(files_plan.time_of_undone_run)}"
    if request.prompt_state:
        target_text = f"as at {describe_prompt(request.prompt_state.prompt)}"
    else:
        target_text = last
    heading = facts_table(
        [
            ("session", request.session.session_id),
            ("project", files_plan.root.folder),
            ("files", target_text),
        ]
    )
    lines = []
    for change in files_plan.changes:
        if change.action != "none" or change.is_refused:
            lines.append(_format_change(change))
    unchanged_count = len(files_plan.changes) - len(lines)
    return "\n".join(
        [heading, "", *lines, *([f"  {unchanged_count:,} unchanged"] if unchanged_count else [])]
    )


def _format_change(change: FileChange) -> str:
    path, difference = plain_line(change.path_in_project.path), change.difference
    if change.is_refused:
        word = "missing" if change.is_missing else "refused"
        return f"  {click.style(word.ljust(8), fg='yellow')} {path}: {change.refusal_reason}"
    if difference.added_line_count is not None:
        sizes = f"  +{difference.added_line_count:,} -{difference.removed_line_count:,}"
    else:
        sizes = ""
    before, after = change.old_version, change.new_version
    if before and after and before.mode != after.mode:
        modes = f"  mode {before.mode:o} -> {after.mode:o}"
    else:
        modes = ""
    if change.differs_from_known_state:
        since = click.style("  changed since the session last saw it", fg="yellow")
    else:
        since = ""
    return f"  {change.action.ljust(8)} {path}{sizes}{modes}{since}"


def _format_differences(files_plan: FilesPlan) -> Iterator[str]:
    remaining_lines = MAX_PRINTED_LINES
    for change_number, change in enumerate(files_plan.changes_to_write):
        if remaining_lines <= 0:
            yield f"... and {len(files_plan.changes_to_write) - change_number:,} more files"
            return
        difference = change.difference
        if not difference.lines:
            continue
        yield click.style(f"--- {plain_line(change.path_in_project.path)}", bold=True)
        for line in difference.lines[:remaining_lines]:
            shown_line = plain_text(line).replace("\n", " ")
            yield click.style(shown_line, fg=_DIFFERENCE_COLOURS.get(line[:1]))
        hidden_count = difference.hidden_line_count + len(difference.lines[remaining_lines:])
        if hidden_count:
            yield f"... and {hidden_count:,} more lines"
        remaining_lines -= len(difference.lines)
