"""``rewind-files``: show a project's files as they were at a message, ask, and restore them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from resume_hooks.cli.options import locate_session
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.errors import CantRestore, UsageError
from resume_hooks.parts.rewind_files import files_at_prompt, history, writing
from resume_hooks.parts.rewind_files.files_at_prompt import (
    TARGET_HELP,
    PromptState,
    describe_prompt,
)
from resume_hooks.parts.rewind_files.plan import FileChange, FilesPlan
from resume_hooks.parts.rewind_files.verbs import RewindFilesOptions
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.open_sessions import why_session_is_open
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count, plain_line, plain_text

MOST_LINES = 400  # the maximum total number of lines of differences to show
MOST_LISTED = 3  # the maximum number of files in an error message
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class _RequestedRewind(NamedTuple):
    """The plan for the options, with its session."""

    session: SessionFile
    aimed: PromptState | None
    decided: FilesPlan
    open: str


def rewind_files(options: RewindFilesOptions) -> int:
    """Show the changes, ask for confirmation, and restore the files. Return 1 if some cannot be restored."""
    asks = options.must_ask("Putting files back")
    request = _plan_of_options(options)
    files_plan, notes = request.decided, _plan_warnings(request)
    if asks:
        print_text("\n".join([_plan_text(request), *(f"note: {note}" for note in notes)]))
    if not options.dry_run:
        _check_complete(files_plan, partial=options.partial)
    deleted = sum(change.action == "delete" for change in files_plan.changes_to_write)
    files = (
        f"{format_count(len(files_plan.changes_to_write), 'file')} "
        f"back{f' ({deleted:,} of them deleted)' if deleted else ''}"
    )
    agreed = bool(files_plan.changes_to_write) and options.confirm_write(
        f"Put {files}?", is_asking=asks
    )
    if agreed:
        copies_folder = writing.write_files(files_plan, options.where)
    else:
        copies_folder = ""
    options.emit(
        _rewind_data(request, copies_folder),
        lambda: _outcome_text(request, copies_folder, was_shown=asks),
        () if asks else notes,
    )
    return int(bool(files_plan.refused_changes) and not options.dry_run)


def _plan_of_options(options: RewindFilesOptions) -> _RequestedRewind:
    """Return the plan for the options. Raise UsageError if they contradict each other."""
    if (options.to is None) is not options.undo:
        raise UsageError("Give either --to or --undo", TARGET_HELP)
    where, locator = options.where, options.locator
    if options.to is None:
        session = locate_session(locator, where)
        return _RequestedRewind(
            session,
            None,
            writing.plan_undo(session.session_id, where),
            why_session_is_open(session, where),
        )
    target = files_at_prompt.parse_target(options.to)
    session = locate_session(locator if locator is not None else target.session, where)
    if (
        target.session is not None
        and locate_session(target.session, where).session_id != session.session_id
    ):
        raise UsageError("SESSION and --to name two sessions", "Leave SESSION out.")
    require_client_file(session, where)
    file_history = history.read_file_history(session)
    prompt_state = files_at_prompt.find_prompt_state(file_history, target)
    return _RequestedRewind(
        session,
        prompt_state,
        files_at_prompt.plan_rewind(file_history, prompt_state, where),
        why_session_is_open(session, where),
    )


def _check_complete(files_plan: FilesPlan, *, partial: bool) -> None:
    """Raise CantRestore if some files cannot be restored and ``--partial`` is missing."""
    refused = files_plan.refused_changes
    if not refused or partial:
        return
    listed = "; ".join(
        f"{plain_line(change.place.path)}: {change.why}" for change in refused[:MOST_LISTED]
    )
    if len(refused) > MOST_LISTED:
        more_text = f"; and {len(refused) - MOST_LISTED:,} more"
    else:
        more_text = ""
    if files_plan.changes_to_write:
        rest = f"--partial puts the other {format_count(len(files_plan.changes_to_write), 'file')} back."
    else:
        rest = "The others are unchanged."
    raise CantRestore(
        f"{format_count(len(refused), 'file')} can't be put back: {listed}{more_text}",
        f"Nothing was written. {rest}",
    )


def _plan_warnings(request: _RequestedRewind) -> list[str]:
    warnings = []
    if request.aimed and not request.aimed.exact:
        warnings.append(
            "The client kept no state at this message: this is the last one before it, "
            "with edits between them."
        )
    if request.open and request.decided.changes_to_write:
        warnings.append(
            f"The session may be open ({request.open}); its client does not know of changed files."
        )
    return warnings


def _rewind_data(request: _RequestedRewind, copies_folder: str) -> dict[str, Any]:
    files_plan, session = request.decided, request.session
    return {
        "session_id": session.session_id,
        "file": session.path,
        "project": files_plan.root.folder,
        "undo": request.aimed is None,
        "to": request.aimed
        and WithFields(
            request.aimed, {"reference": f"{session.session_id}:{request.aimed.prompt.line}"}
        ),
        "files": [
            WithFields(change, {"status": _change_status(change, written=bool(copies_folder))})
            for change in files_plan.changes
        ],
        "complete": not files_plan.refused_changes,
        "written": bool(copies_folder),
        "kept": copies_folder or None,
    }


def _change_status(change: FileChange, *, written: bool) -> str:
    if change.action != "none":
        if written:
            return "written"
        return "planned"
    if change.missing:
        return "missing"
    if change.is_refused:
        return "refused"
    return "unchanged"


def _outcome_text(request: _RequestedRewind, copies_folder: str, *, was_shown: bool) -> str:
    files_plan = request.decided
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
        outcome = _no_changes_text(request)
    if was_shown:
        return outcome
    if copies_folder:
        return f"{_plan_header(request)}\n\n{outcome}"
    return f"{_plan_text(request)}\n\n{outcome}"


def _no_changes_text(request: _RequestedRewind) -> str:
    files_plan = request.decided
    if files_plan.refused_changes:
        count = format_count(len(files_plan.refused_changes), "file")
        return f"Nothing was written: {count} can't be put back, and no other differs."
    if files_plan.takes_back:
        last = plain_line(files_plan.takes_back)
        return f"Nothing to undo: every file is already as before the last rewind-files of {last}."
    return "Nothing to do: no file differs."


def _plan_text(request: _RequestedRewind) -> str:
    """Return the plan as text: the change of each file, then the differences."""
    differences = list(_difference_lines(request.decided))
    return "\n".join([_plan_header(request), *(["", *differences] if differences else [])])


def _plan_header(request: _RequestedRewind) -> str:
    files_plan = request.decided
    last = f"as before the last rewind-files of {plain_line(files_plan.takes_back)}"
    if request.aimed:
        target_text = f"as at {describe_prompt(request.aimed.prompt)}"
    else:
        target_text = last
    head = facts_table(
        [
            ("session", request.session.session_id),
            ("project", files_plan.root.folder),
            ("files", target_text),
        ]
    )
    lines = []
    for change in files_plan.changes:
        if change.action != "none" or change.is_refused:
            lines.append(_change_line(change))
    unchanged_count = len(files_plan.changes) - len(lines)
    return "\n".join(
        [head, "", *lines, *([f"  {unchanged_count:,} unchanged"] if unchanged_count else [])]
    )


def _change_line(change: FileChange) -> str:
    path, difference = plain_line(change.place.path), change.difference
    if change.is_refused:
        word = "missing" if change.missing else "refused"
        return f"  {click.style(word.ljust(8), fg='yellow')} {path}: {change.why}"
    if difference.added is not None:
        sizes = f"  +{difference.added:,} -{difference.removed:,}"
    else:
        sizes = ""
    before, after = change.before, change.after
    if before and after and before.mode != after.mode:
        modes = f"  mode {before.mode:o} -> {after.mode:o}"
    else:
        modes = ""
    if change.changed_since:
        since = click.style("  changed since the session knew it", fg="yellow")
    else:
        since = ""
    return f"  {change.action.ljust(8)} {path}{sizes}{modes}{since}"


def _difference_lines(files_plan: FilesPlan) -> Iterator[str]:
    remaining = MOST_LINES
    for number, change in enumerate(files_plan.changes_to_write):
        if remaining <= 0:
            yield f"... and {len(files_plan.changes_to_write) - number:,} more files"
            return
        counts = change.difference
        if not counts.lines:
            continue
        yield click.style(f"--- {plain_line(change.place.path)}", bold=True)
        for line in counts.lines[:remaining]:
            shown_line = plain_text(line).replace("\n", " ")
            yield click.style(shown_line, fg=_COLOURS.get(line[:1]))
        hidden = counts.more + len(counts.lines[remaining:])
        if hidden:
            yield f"... and {hidden:,} more lines"
        remaining -= len(counts.lines)
