"""``mark``: set a mark in a session, show the mark, or forget it."""

from __future__ import annotations

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table
from resume_hooks.clock import format_minute
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.parts.marks import state
from resume_hooks.parts.marks.state import Mark, check_not_subagent, make_mark_at_end
from resume_hooks.parts.marks.verbs import MarkOptions
from resume_hooks.sessions.agents.registry import require_answers
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line


def set_mark(options: MarkOptions) -> None:
    """Set a session's mark, or show or forget it if an option requests this."""
    if options.show + options.clear + bool(options.goal or options.yes) > 1:
        raise UsageError(
            "--show, --clear, and a new mark can't be combined",
            "Give either a goal or only one of these options.",
        )
    session = resolve_transcript(
        options.locator, current_folder(), options.where, allow_other_agents=True
    )
    require_answers(session)
    check_not_subagent(session)
    active_mark = state.find_mark(session.session_id)
    if not (options.show or options.clear):
        _set_new_mark(session, active_mark, options)
        return
    is_cleared = active_mark is not None and options.clear and not options.dry_run
    if is_cleared:
        state.clear_mark(session.session_id)
    if is_cleared:
        outcome = "forgotten"
    elif options.clear:
        outcome = "would be forgotten"
    else:
        outcome = "active"
    _print_mark(options, session, active_mark, outcome, was_written=is_cleared)


def _set_new_mark(session: SessionFile, active_mark: Mark | None, options: MarkOptions) -> None:
    """Set a mark. Replace an active mark only if ``--yes`` is given."""
    require_client_file(session, options.where)
    placed_mark = make_mark_at_end(session, options.goal)
    is_same = active_mark is not None and active_mark.is_same_as(placed_mark.mark)
    if active_mark is not None and not is_same and not options.yes:
        if active_mark.goal:
            goal = f", '{collapse_line(active_mark.goal, 80)}'"
        else:
            goal = ""
        raise ResumeHooksError(
            f"A mark is active here{goal}, set {format_minute(active_mark.started_at)}",
            "--yes replaces the mark; --clear forgets the mark.",
        )
    will_write = not is_same and not options.dry_run
    if will_write:
        state.save_mark(placed_mark.mark)
    mark = active_mark if is_same else placed_mark.mark
    if will_write:
        outcome = "set"
    elif is_same:
        outcome = "already set"
    else:
        outcome = "would be set"
    _print_mark(
        options, session, mark, outcome, None if is_same else active_mark, was_written=will_write
    )


def _print_mark(
    options: MarkOptions,
    session: SessionFile,
    mark: Mark | None,
    outcome: str,
    replaced_mark: Mark | None = None,
    *,
    was_written: bool,
) -> None:
    """Print the session's mark, the mark that it replaced, and the phrase that says what was done."""
    data = {
        "session_id": session.session_id,
        "file": session.original_path,
        "written": was_written,
        "active": mark is not None and outcome != "forgotten",
        "mark": mark,
        "replaced": replaced_mark,
    }
    options.print_answer(data, lambda: _format_mark(mark, replaced_mark, outcome))


def _format_mark(mark: Mark | None, replaced_mark: Mark | None, outcome: str) -> str:
    if mark is None:
        return state.NO_MARK_MESSAGE
    return facts_table(
        [
            ("mark", outcome),
            ("goal", collapse_line(mark.goal, 300) or "none"),
            ("after", f"{mark.session_id}:{mark.record}"),
            ("set", mark.started_at),
            *(
                [("replaces", collapse_line(replaced_mark.goal, 300) or replaced_mark.started_at)]
                if replaced_mark
                else []
            ),
            *(
                [("back to it", shell_command(f"back {mark.session_id} --report TEXT"))]
                if outcome != "forgotten"
                else []
            ),
        ]
    )
