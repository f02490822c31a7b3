"""``checkpoint``: mark a place in a session, show the mark, or forget it."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

import click

from resume_hooks.cli.output import current_folder, dry_run_option, emit, json_option, locator_argument, table
from resume_hooks.derive import checkpoint
from resume_hooks.derive.checkpoint import Mark
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.hooks import checkpoint_state
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.sessions import require_own
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.system.text import one_line


class How(TypedDict):
    """The options of a checkpoint."""

    goal: str
    yes: bool
    show: bool
    clear: bool
    dry_run: bool
    as_json: bool


@click.command("checkpoint")
@locator_argument
@click.option("-g", "--goal", default="", help="What is to be tried from here.")
@click.option("--yes", is_flag=True, help="Replace the checkpoint that is active.")
@click.option("--show", is_flag=True, help="Show the active one, mark nothing.")
@click.option("--clear", is_flag=True, help="Forget the active one.")
@dry_run_option
@json_option
def command(locator: str | None, **how: Unpack[How]) -> None:
    """Mark the end of LOCATOR as the place that a rewind goes back to.

    The session itself is only read. One checkpoint is active a session; rewind uses it up. While the model works the
    mark stands after the last step that is whole.

    \b
    Examples:
      resume-hooks checkpoint -g "try the other parser"
      resume-hooks checkpoint 5e12a303 --yes
      resume-hooks checkpoint --show --json
      resume-hooks checkpoint --clear
    """
    if how["show"] + how["clear"] + bool(how["goal"] or how["yes"]) > 1:
        raise UsageError("--show, --clear, and a new checkpoint exclude each other", "Ask for one of them.")
    session = resolve_transcript(locator, current_folder(), Where())
    checkpoint.refuse_subagent(session)
    active = checkpoint_state.find(session.session_id)
    if how["show"] or how["clear"]:
        _old(session, active, how)
    else:
        _new(session, active, how)


def _old(session: SessionFile, active: Mark | None, how: How) -> None:
    """Show the active checkpoint, or forget it."""
    cleared = active is not None and how["clear"] and not how["dry_run"]
    if cleared:
        checkpoint_state.clear(session.session_id)
    done = "forgotten" if cleared else "would be forgotten" if how["clear"] else "active"
    _answer(session, active, None, done, how, written=cleared)


def _new(session: SessionFile, active: Mark | None, how: How) -> None:
    """Set a checkpoint; another one that is active is replaced on ``--yes`` alone."""
    require_own(session, Where())
    placed = checkpoint.place(session, how["goal"])
    same = active is not None and active.is_at(placed.mark)
    if active is not None and not same and not how["yes"]:
        goal = f", '{one_line(active.goal, 80)}'" if active.goal else ""
        raise ResumeHooksError(
            f"A checkpoint is active here{goal}, set {active.started_at}", "--yes replaces it; --clear forgets it."
        )
    writes = not same and not how["dry_run"]
    if writes:
        checkpoint_state.keep(placed.mark)
    mark = active if same else placed.mark
    done = "set" if writes else "already set" if same else "would be set"
    _answer(session, mark, None if same else active, done, how, written=writes)


def _answer(
    session: SessionFile, mark: Mark | None, replaced: Mark | None, done: str, how: How, *, written: bool
) -> None:
    data = {
        "session_id": session.session_id,
        "file": session.path,
        "written": written,
        "active": mark is not None and done != "forgotten",
        "checkpoint": _row(mark),
        "replaced": _row(replaced),
    }
    emit("checkpoint", data, lambda: _text(mark, replaced, done), as_json=how["as_json"])


def _row(mark: Mark | None) -> dict[str, Any] | None:
    if mark is None:
        return None
    reference = f"{mark.session_id}:{mark.record}"
    return {"uuid": mark.uuid, "reference": reference, "goal": mark.goal, "started_at": mark.started_at}


def _text(mark: Mark | None, replaced: Mark | None, done: str) -> str:
    if mark is None:
        return checkpoint_state.NONE
    return table(
        [
            ("checkpoint", done),
            ("goal", one_line(mark.goal, 300) or "none"),
            ("after", f"{mark.session_id}:{mark.record}"),
            ("set", mark.started_at),
            *([("replaces", one_line(replaced.goal, 300) or replaced.started_at)] if replaced else []),
            *([("back to it", f"resume-hooks rewind {mark.session_id} --report TEXT")] if done != "forgotten" else []),
        ]
    )
