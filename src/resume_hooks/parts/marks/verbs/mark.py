"""``mark``: mark a place in a session, show the mark, or forget it."""

from __future__ import annotations

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table
from resume_hooks.clock import format_minute
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.parts.marks import state
from resume_hooks.parts.marks.state import Mark, check_not_subagent, place_mark
from resume_hooks.parts.marks.verbs import MarkOptions
from resume_hooks.sessions.agents.registry import require_complete
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line


def set_mark(options: MarkOptions) -> None:
    """Set a mark, show it, or forget it."""
    if options.show + options.clear + bool(options.goal or options.yes) > 1:
        raise UsageError(
            "--show, --clear, and a new mark exclude each other", "Ask for one of them."
        )
    session = resolve_transcript(options.locator, current_folder(), options.where, foreign=True)
    require_complete(session)
    check_not_subagent(session)
    active = state.find_mark(session.session_id)
    if not (options.show or options.clear):
        _set_new_mark(session, active, options)
        return
    is_cleared = active is not None and options.clear and not options.dry_run
    if is_cleared:
        state.clear_mark(session.session_id)
    if is_cleared:
        outcome = "forgotten"
    elif options.clear:
        outcome = "would be forgotten"
    else:
        outcome = "active"
    _print_mark(options, session, active, outcome, written=is_cleared)


def _set_new_mark(session: SessionFile, active: Mark | None, options: MarkOptions) -> None:
    """Set a mark, which replaces an active one only with ``--yes``."""
    require_client_file(session, options.where)
    placed = place_mark(session, options.goal)
    is_same = active is not None and active.is_at(placed.mark)
    if active is not None and not is_same and not options.yes:
        if active.goal:
            goal = f", '{collapse_line(active.goal, 80)}'"
        else:
            goal = ""
        raise ResumeHooksError(
            f"A mark is active here{goal}, set {format_minute(active.started_at)}",
            "--yes replaces it; --clear forgets it.",
        )
    writes = not is_same and not options.dry_run
    if writes:
        state.save_mark(placed.mark)
    mark = active if is_same else placed.mark
    if writes:
        outcome = "set"
    elif is_same:
        outcome = "already set"
    else:
        outcome = "would be set"
    _print_mark(options, session, mark, outcome, None if is_same else active, written=writes)


def _print_mark(
    options: MarkOptions,
    session: SessionFile,
    mark: Mark | None,
    outcome: str,
    replaced: Mark | None = None,
    *,
    written: bool,
) -> None:
    """Print the ``mark``, the ``replaced`` one, and the action's ``outcome``."""
    data = {
        "session_id": session.session_id,
        "file": session.original,
        "written": written,
        "active": mark is not None and outcome != "forgotten",
        "mark": mark,
        "replaced": replaced,
    }
    options.emit(data, lambda: _mark_text(mark, replaced, outcome))


def _mark_text(mark: Mark | None, replaced: Mark | None, outcome: str) -> str:
    if mark is None:
        return state.NO_MARK
    return facts_table(
        [
            ("mark", outcome),
            ("goal", collapse_line(mark.goal, 300) or "none"),
            ("after", f"{mark.session_id}:{mark.record}"),
            ("set", mark.started_at),
            *(
                [("replaces", collapse_line(replaced.goal, 300) or replaced.started_at)]
                if replaced
                else []
            ),
            *(
                [("back to it", shell_command(f"back {mark.session_id} --report TEXT"))]
                if outcome != "forgotten"
                else []
            ),
        ]
    )
