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
from resume_hooks.parts.rewind_files.files_at_prompt import FORMS, Aim, name_prompt
from resume_hooks.parts.rewind_files.plan import Change, FilesPlan
from resume_hooks.parts.rewind_files.verbs import RewindFilesOptions
from resume_hooks.sessions.archived.sessions import require_own
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.open_sessions import why_session_is_open
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count, plain_line, plain_text

MOST_LINES = 400  # total lines of differences that are shown
NAMED = 3  # number of files that an error message lists
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class _Asked(NamedTuple):
    """The plan for the options, with its session."""

    session: SessionFile
    aimed: Aim | None
    decided: FilesPlan
    open: str


def rewind_files(options: RewindFilesOptions) -> int:
    """Show the changes, ask, and restore the files; return 1 if some cannot be restored."""
    asks = options.asks("Putting files back")
    asked = _plan_of_options(options)
    decided, notes = asked.decided, _warnings_of_plan(asked)
    if asks:
        print_text("\n".join([_plan_text(asked), *(f"note: {note}" for note in notes)]))
    if not options.dry_run:
        _require_complete(decided, partial=options.partial)
    gone = sum(change.action == "delete" for change in decided.wanted_changes)
    files = (
        f"{format_count(len(decided.wanted_changes), 'file')} "
        f"back{f' ({gone:,} of them deleted)' if gone else ''}"
    )
    agreed = bool(decided.wanted_changes) and options.confirm_write(f"Put {files}?", is_asking=asks)
    if agreed:
        kept = writing.write_files(decided, options.where)
    else:
        kept = ""
    options.emit(
        _data_of_rewind(asked, kept),
        lambda: _outcome_text(asked, kept, seen=asks),
        () if asks else notes,
    )
    return int(bool(decided.left_changes) and not options.dry_run)


def _plan_of_options(options: RewindFilesOptions) -> _Asked:
    """Return the plan for the options. Raise UsageError if they contradict each other."""
    if (options.to is None) is not options.undo:
        raise UsageError("Give either --to or --undo", FORMS)
    where, locator = options.where, options.locator
    if options.to is None:
        session = locate_session(locator, where)
        return _Asked(
            session,
            None,
            writing.plan_undo(session.session_id, where),
            why_session_is_open(session, where),
        )
    wanted = files_at_prompt.parse_target(options.to)
    session = locate_session(locator if locator is not None else wanted.session, where)
    if (
        wanted.session is not None
        and locate_session(wanted.session, where).session_id != session.session_id
    ):
        raise UsageError("SESSION and --to name two sessions", "Leave SESSION out.")
    require_own(session, where)
    read = history.read_file_history(session)
    aimed = files_at_prompt.aim_at_prompt(read, wanted)
    return _Asked(
        session,
        aimed,
        files_at_prompt.plan_rewind(read, aimed, where),
        why_session_is_open(session, where),
    )


def _require_complete(decided: FilesPlan, *, partial: bool) -> None:
    """Raise CantRestore if some files cannot be restored and ``--partial`` is missing."""
    left = decided.left_changes
    if not left or partial:
        return
    named = "; ".join(f"{plain_line(change.place.path)}: {change.why}" for change in left[:NAMED])
    if len(left) > NAMED:
        more = f"; and {len(left) - NAMED:,} more"
    else:
        more = ""
    if decided.wanted_changes:
        rest = f"--partial puts the other {format_count(len(decided.wanted_changes), 'file')} back."
    else:
        rest = "The others are unchanged."
    raise CantRestore(
        f"{format_count(len(left), 'file')} can't be put back: {named}{more}",
        f"Nothing was written. {rest}",
    )


def _warnings_of_plan(asked: _Asked) -> list[str]:
    found = []
    if asked.aimed and not asked.aimed.exact:
        found.append(
            "The client kept no state at this message: this is the last one before it, "
            "with edits between them."
        )
    if asked.open and asked.decided.wanted_changes:
        found.append(
            f"The session may be open ({asked.open}); its client does not know of changed files."
        )
    return found


def _data_of_rewind(asked: _Asked, kept: str) -> dict[str, Any]:
    decided, session = asked.decided, asked.session
    return {
        "session_id": session.session_id,
        "file": session.path,
        "project": decided.root.folder,
        "undo": asked.aimed is None,
        "to": asked.aimed
        and WithFields(
            asked.aimed, {"reference": f"{session.session_id}:{asked.aimed.prompt.line}"}
        ),
        "files": [
            WithFields(change, {"status": _status_of_change(change, written=bool(kept))})
            for change in decided.changes
        ],
        "complete": not decided.left_changes,
        "written": bool(kept),
        "kept": kept or None,
    }


def _status_of_change(change: Change, *, written: bool) -> str:
    if change.action != "none":
        if written:
            return "written"
        return "planned"
    if change.missing:
        return "missing"
    if change.is_left:
        return "refused"
    return "unchanged"


def _outcome_text(asked: _Asked, kept: str, *, seen: bool) -> str:
    decided = asked.decided
    if kept:
        undo = shell_command(f"rewind-files {decided.session_id} --undo")
        done = facts_table(
            [
                ("put back", format_count(len(decided.wanted_changes), "file")),
                ("copies", kept),
                ("take it back", undo),
            ]
        )
    elif decided.wanted_changes:
        done = "Nothing was written."
    else:
        done = _text_without_changes(asked)
    if seen:
        return done
    if kept:
        return f"{_facts_of_plan(asked)}\n\n{done}"
    return f"{_plan_text(asked)}\n\n{done}"


def _text_without_changes(asked: _Asked) -> str:
    decided = asked.decided
    if decided.left_changes:
        count = format_count(len(decided.left_changes), "file")
        return f"Nothing was written: {count} can't be put back, and no other differs."
    if decided.takes_back:
        last = plain_line(decided.takes_back)
        return f"Nothing to undo: every file is already as before the last rewind-files of {last}."
    return "Nothing to do: no file differs."


def _plan_text(asked: _Asked) -> str:
    """Return the plan as text: the change of each file, then the differences."""
    differences = list(_lines_of_differences(asked.decided))
    return "\n".join([_facts_of_plan(asked), *(["", *differences] if differences else [])])


def _facts_of_plan(asked: _Asked) -> str:
    decided = asked.decided
    last = f"as before the last rewind-files of {plain_line(decided.takes_back)}"
    if asked.aimed:
        back = f"as at {name_prompt(asked.aimed.prompt)}"
    else:
        back = last
    head = facts_table(
        [("session", asked.session.session_id), ("project", decided.root.folder), ("files", back)]
    )
    named = []
    for change in decided.changes:
        if change.action != "none" or change.is_left:
            named.append(_line_of_change(change))
    same = len(decided.changes) - len(named)
    return "\n".join([head, "", *named, *([f"  {same:,} unchanged"] if same else [])])


def _line_of_change(change: Change) -> str:
    path, counts = plain_line(change.place.path), change.difference
    if change.is_left:
        word = "missing" if change.missing else "refused"
        return f"  {click.style(word.ljust(8), fg='yellow')} {path}: {change.why}"
    if counts.added is not None:
        sizes = f"  +{counts.added:,} -{counts.removed:,}"
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


def _lines_of_differences(decided: FilesPlan) -> Iterator[str]:
    left = MOST_LINES
    for number, change in enumerate(decided.wanted_changes):
        if left <= 0:
            yield f"... and {len(decided.wanted_changes) - number:,} more files"
            return
        counts = change.difference
        if not counts.lines:
            continue
        yield click.style(f"--- {plain_line(change.place.path)}", bold=True)
        for line in counts.lines[:left]:
            shown = plain_text(line).replace("\n", " ")
            yield click.style(shown, fg=_COLOURS.get(line[:1]))
        hidden = counts.more + len(counts.lines[left:])
        if hidden:
            yield f"... and {hidden:,} more lines"
        left -= len(counts.lines)
