"""The verbs that create a fresh child: ``handoff``, and ``rollover --quick``.

``handoff --edit`` opens the digest in the user's editor, as a file in a temporary folder. The
folder is deleted if the verb succeeds. If the verb fails, the folder is kept, so that the user's
text is not lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator

from resume_hooks import questions
from resume_hooks.cli.child import (
    make_caller_for_new_child,
    print_child,
    receipt_text,
    refuse_start_in_other_folder,
)
from resume_hooks.cli.verbs.children import HandoffOptions, RolloverOptions
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import FreshChildPlan, format_digest_reference
from resume_hooks.derive.opening_size import WHOLE_SESSION_SIZE, normalize_size
from resume_hooks.derive.verbs.handoff import HandoffSpec, plan_handoff
from resume_hooks.derive.verbs.handoff import handoff as make_handoff
from resume_hooks.derive.verbs.rollover import make_quick_rollover
from resume_hooks.errors import ResumeHooksError, SessionDeleted, SessionNotFound, UsageError
from resume_hooks.paths import read_regular_file
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.reading.digest.opening import format_whole_digest
from resume_hooks.sessions.opening_layout import extract_next_step, opening_text
from resume_hooks.sessions.session import Session
from resume_hooks.system import programs

UNUSED_CHILD_NOTE = (
    "No new session was created. This is the session from your last handoff, which is still unused. "
    "Give another next step or size to create another session."
)


def hand_off_session(options: HandoffOptions) -> Receipt | None:
    """Create the child, or return an unused child from the same request, or print the child's opening.

    Return None if the opening was printed.
    """
    _refuse_inconsistent_options(options)
    size = normalize_size(options.size) if options.size else ""
    parent = _find_parent(options)
    if not options.print_opening:
        refuse_start_in_other_folder(options)
    spec = HandoffSpec(
        next_step=options.new_task or options.next_step,
        size=size,
        starts_new_task=options.new_task is not None,
        target_agent=options.target_agent or "",
        edit_digest=edit_text if options.must_edit else None,
        part_options=options,
    )
    caller = make_caller_for_new_child(options)._replace(reuses_child=_may_reuse_child(options))
    if options.print_opening:
        _print_opening(plan_handoff(parent, spec, caller), options)
        return None
    outcome = make_handoff(parent, spec, caller)
    receipt, files = outcome.receipt, outcome.accompanying_files
    rows = [("document", path) for path in files.documents]
    notes = [*receipt.warnings, *files.warnings]
    if receipt.session_id and not receipt.written:
        notes.append(UNUSED_CHILD_NOTE)
    return print_child(
        options,
        receipt._replace(warnings=tuple(notes)),
        {"documents": files.documents},
        lambda: receipt_text(receipt, rows),
    )


def _may_reuse_child(options: HandoffOptions) -> bool:
    """Check whether an unused child from an earlier handoff may be returned instead of a new child.

    The child may not be reused if an option requires a new file, for example ``--edit`` or
    ``--to``.
    """
    has_own_file = (
        options.must_edit or options.dry_run or options.output_dir or options.target_agent
    )
    return not (has_own_file or options.find_part_functions(questions.check_handoff_option))


def _find_parent(options: HandoffOptions) -> Session:
    """Return the session that the locator names.

    If a locator of several words names no session, the error shows how to pass these words as a
    next step.
    """
    try:
        return options.locate_parent()
    except SessionNotFound as error:
        words = options.locator or ""
        if " " not in words or isinstance(error, SessionDeleted):
            raise
        raise SessionNotFound(
            error.message,
            f"To pass these words as the next step: resume-hooks handoff -n {shlex.quote(words)}",
        ) from error


def _refuse_inconsistent_options(options: HandoffOptions) -> None:
    """Raise UsageError for options that contradict each other or have no effect."""
    if options.new_task is not None and (options.next_step or not options.new_task.strip()):
        raise UsageError(
            "--new-task needs a task, and can't be combined with -n",
            'Give the task: --new-task "..."',
        )
    part_checks = options.find_part_functions(questions.check_handoff_option)
    for check_handoff_option in part_checks:
        check_handoff_option(options)
    needs_opening = (
        options.print_opening
        or options.must_edit
        or part_checks
        or options.new_task
        or options.next_step
    )
    if options.size and options.size.lower() == WHOLE_SESSION_SIZE and needs_opening:
        raise UsageError(
            "--size all makes a copy, which has no opening",
            "Leave out -n, --new-task, --print, --edit and --out.",
        )
    if options.print_whole_digest and not options.print_opening:
        raise UsageError("--full needs --print", "Type: resume-hooks handoff --print --full")
    if options.print_opening and (options.start or options.must_edit or part_checks):
        raise UsageError(
            "--print creates no session", "Omit --print, or --start, --edit and --out."
        )
    if options.must_edit and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "--edit needs a terminal", "Omit --edit, or run the command in a terminal."
        )


def _print_opening(fresh_plan: FreshChildPlan, options: HandoffOptions) -> None:
    digest = fresh_plan.contents.digest or Digest()
    full_text = format_whole_digest(digest)
    reference = format_digest_reference(fresh_plan.draft.session_id)
    reference_to_child = f"; all of it: {fresh_plan.draft.make_command('read')} {reference}"
    # Also remove the child's own row from the lineage, because ``--print`` does not create the
    # child.
    own_row_pattern = re.compile(
        rf" · {fresh_plan.draft.session_id}|\n +[^\n]*{fresh_plan.draft.session_id}[^\n]*"
    )
    opening = own_row_pattern.sub("", fresh_plan.opening.replace(reference_to_child, ""))

    def format_opening() -> str:
        if not options.print_whole_digest:
            return opening
        return opening_text(
            own_row_pattern.sub("", fresh_plan.draft.lineage_text),
            extract_next_step(fresh_plan.opening) or "",
            digest=full_text,
        )

    data = {"opening": opening, "digest": digest, "full": full_text}
    options.print_answer(data, format_opening, fresh_plan.draft.warnings)


FALLBACK_EDITORS = ("vi", "nano")
EDITED_FILE_NAME = "handoff.md"
MAX_EDITED_BYTES = 4 * 1024 * 1024  # the maximum size in bytes of the edited text
_EDITOR_REMEDY = "Name your editor: EDITOR=nano resume-hooks handoff --edit"


@contextlib.contextmanager
def edit_text(text: str) -> Iterator[str]:
    """Let the user edit a text, and yield the edited text. If the with block fails, keep the edited file.

    Raise ResumeHooksError if no editor is found, if the editor fails, or if the file can't be
    written or read.
    """
    try:
        folder = tempfile.mkdtemp(prefix="resume-hooks-")
    except OSError as error:
        raise _make_write_error(error) from error
    path = os.path.join(folder, EDITED_FILE_NAME)
    is_kept = False
    try:
        try:
            with open(path, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
        except OSError as error:
            raise _make_write_error(error) from error
        _run_editor(path)
        try:
            edited_text = read_regular_file(path, MAX_EDITED_BYTES).decode("utf-8-sig", "replace")
        except FileNotFoundError:
            # If the user deletes the file in the editor, the empty text cancels the verb.
            edited_text = ""
        except OSError as error:
            raise ResumeHooksError(
                f"The saved text can't be read: {error.strerror}; no session was made"
            ) from error
        try:
            yield edited_text
        except ResumeHooksError as error:
            is_kept = True
            error.remedy = f"{error.remedy} Your text is in {path}".strip()
            raise
    finally:
        if not is_kept:
            # The editor may have made backup copies in the folder. They are deleted too.
            shutil.rmtree(folder, ignore_errors=True)


def _make_write_error(error: OSError) -> ResumeHooksError:
    return ResumeHooksError(
        f"The text to edit could not be written: {error.strerror}; no session was made",
        "Set TMPDIR to a writable folder.",
    )


def _run_editor(path: str) -> None:
    command = _find_editor_command()
    # The editor handles Ctrl+C, as it does when git starts it. The handler is a function and not
    # SIG_IGN, because the editor would inherit SIG_IGN.
    previous_handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        # The editor is the user's own program, so it runs in the user's current folder with the
        # user's environment.
        status = programs.run_program(
            [*command, path], os.environ, folder=os.getcwd(), environ=os.environ
        ).returncode
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            reason = error.strerror
        else:
            reason = str(error)
        raise ResumeHooksError(
            f"The editor {command[0]} can't be started: {reason}; no session was made",
            _EDITOR_REMEDY,
        ) from error
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if status:
        raise ResumeHooksError(
            f"The editor {command[0]} ended with an error ({status}), so no session was made"
        )


def _find_editor_command() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(os.environ.get(name, ""))
        except ValueError as error:
            raise ResumeHooksError(
                f"{name} can't be parsed: {error}; no session was made", _EDITOR_REMEDY
            ) from error
        if command:
            return command
    editor = next(
        filter(None, (programs.find_program(name, os.environ) for name in FALLBACK_EDITORS)), None
    )
    if editor is None:
        names = " nor ".join(FALLBACK_EDITORS)
        raise ResumeHooksError(
            f"No editor: VISUAL and EDITOR are not set, and neither {names} is installed",
            _EDITOR_REMEDY,
        )
    return [editor]


def roll_over_session(options: RolloverOptions) -> Receipt:
    """Create a rollover, and return its receipt. Unless ``--quick`` was given, ask a model."""
    if not options.quick:
        # Imported late: modules that ask a model take 100 ms to load, and ``--quick`` does not need
        # them.
        from resume_hooks.cli.rollover_summary import rollover_with_summary

        return rollover_with_summary(options)
    if options.with_summary or options.prompt or options.model or options.timeout:
        raise UsageError(
            "--quick asks no model",
            "Leave out --quick, or --with-summary, -p, --model and --timeout.",
        )
    refuse_start_in_other_folder(options)
    parent = options.locate_session(allow_other_agents=True)
    return print_child(
        options, make_quick_rollover(parent, make_caller_for_new_child(options)).receipt
    )
