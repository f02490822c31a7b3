"""``import``: create a session of this folder from a file or standard input."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from resume_hooks.cli.child import checks_text, print_child, require_client, require_folder
from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import write_unless_idle
from resume_hooks.derive.imports import plan
from resume_hooks.derive.imports.bring_in import BundleOptions, ImportedSession, import_sessions
from resume_hooks.derive.imports.plan import ImportPlan, ImportSource
from resume_hooks.derive.imports.read_bundle import is_bundle, unpack_bundle
from resume_hooks.errors import ImportFailed, UsageError
from resume_hooks.parts.share.export.shared_page import unpack_carried
from resume_hooks.parts.share.verbs import ImportOptions
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.locator_forms import IMPORT_ADDRESS, is_address
from resume_hooks.sessions.project_folder import only_maker
from resume_hooks.storage.staging import MAX_BYTES, PIECE, file_chunks, stage_chunks
from resume_hooks.system.text import format_count, plain_line

STDIN = "-"
UNVERIFIED = "Its content is unverified: its author could write anything."
BACKUPS_STAY = "A bundle has no file backups: rewind-files starts without any."


def import_transcript(options: ImportOptions) -> None:
    """Create sessions from the source."""
    require_client(options)
    if options.source == STDIN and options.start:
        raise UsageError(
            "--start needs the terminal, and - is read from a pipe", "Leave --start out."
        )
    home = options.home or current_folder()
    require_folder(options, home)
    wish = BundleOptions(canonical_path(home), options.whole, options.force, options.dry_run)
    with _open_source(options.source, options.max_bytes) as taken:
        if is_bundle(taken.path):  # the receipt is that of the last session, which was exported
            found, warnings = _bring_bundle(taken, wish)
            made = found[-1].receipt
            made = made._replace(warnings=(*made.warnings, *warnings))
            bundle = {"imported": None, "bundle": found}
            print_child(
                options, made, bundle, lambda: _bundle_text(taken, found, whole=options.whole)
            )
            return
        if options.whole:
            raise UsageError(
                f"{taken.name} is a transcript, not a bundle",
                "--whole is for bundles: leave it out.",
            )
        decided, made = _bring_transcript(taken, wish)
    if decided.existing is None or options.force:
        known = None
    else:
        known = decided.existing.session_id
    more = {"imported": WithFields(decided, {"existing": known}), "bundle": []}
    print_child(options, made, more, lambda: _import_text(decided, made, known=bool(known)))


def bring_in(source: str, home: str) -> tuple[Receipt, str]:
    """Import a file for ``questions.import_file``; the receipt of a bundle is that of its last session."""
    wish = BundleOptions(canonical_path(home), whole=False, force=False, dry_run=False)
    with _open_source(source, MAX_BYTES) as taken:
        if is_bundle(taken.path):
            return _bring_bundle(taken, wish)[0][-1].receipt, UNVERIFIED
        return _bring_transcript(taken, wish)[1], UNVERIFIED


def _bring_transcript(taken: ImportSource, wish: BundleOptions) -> tuple[ImportPlan, Receipt]:
    with only_maker(wish.home, Where()):
        decided = plan.plan_import(taken, wish.home, Where())
        if decided.existing is not None and not wish.force:
            return decided, plan.existing_import_receipt(decided, decided.existing)
        return decided, write_unless_idle(decided, Where(), dry_run=wish.dry_run)


@contextlib.contextmanager
def _open_source(source: str, most: int) -> Iterator[ImportSource]:
    """Copy the file named by ``source`` to a private file for the duration of the block."""
    if is_address(source):
        raise UsageError("Web addresses are not supported", IMPORT_ADDRESS)
    if source == STDIN:
        path = ""
    else:
        path = os.path.abspath(os.path.expanduser(source))
    if path and os.path.realpath(path).startswith(os.path.realpath(Where().projects) + os.sep):
        raise UsageError(
            f"{path} is a session of this machine", "resume-hooks fork makes a linked copy of it."
        )
    chunks = file_chunks(path) if path else _read_stdin()
    with stage_chunks(chunks, most, Where()) as taken, unpack_carried(taken, most, Where()) as held:
        yield ImportSource(held.path, path or "the standard input", held.sha256, held.size)


def _read_stdin() -> Iterator[bytes]:
    """Yield the bytes of standard input. Raise ImportFailed if it cannot be read."""
    try:
        yield from iter(lambda: sys.stdin.buffer.read(PIECE), b"")
    except OSError as error:
        raise ImportFailed(
            f"The standard input can't be read: {error.strerror}", "Give the path of a file."
        ) from error


def _import_text(decided: ImportPlan, made: Receipt, *, known: bool) -> str:
    if known:
        return facts_table(
            [
                (
                    "known",
                    "the same file was imported before, so nothing was written (--force creates another)",
                ),
                ("title", made.title),
                ("id", made.parent_session_id),
                ("file", made.parent_file),
                ("in Claude Code", made.in_client),
                ("in a shell", made.shell),
            ]
        )
    if decided.damaged:
        damaged = f", {decided.damaged:,} damaged"
    else:
        damaged = ""
    if decided.hidden:
        hidden = f"; {decided.hidden:,} of them visible to the model but not on the screen"
    else:
        hidden = ""
    return facts_table(
        [
            ("imported" if made.written else "would import", made.title),
            ("from", plain_line(decided.source.name)),
            ("sha256", decided.source.sha256),
            *([("id", made.session_id), ("file", made.file)] if made.written else []),
            (
                "took over",
                (
                    f"{format_count(decided.records, 'record')} of "
                    f"{format_count(decided.lines, 'line')}{damaged}{hidden}"
                ),
            ),
            ("tokens", f"about {made.tokens_after:,}"),
            ("checks", checks_text(made)),
            ("note", UNVERIFIED),
            *(
                [("in Claude Code", made.in_client), ("in a shell", made.shell)]
                if made.written
                else []
            ),
        ]
    )


def _bring_bundle(
    taken: ImportSource, wish: BundleOptions
) -> tuple[list[ImportedSession], list[str]]:
    """Import the sessions of a bundle, and return them with notes on the bundle."""
    with unpack_bundle(taken.path, Where()) as packed:
        found = import_sessions(packed, taken.name, wish, Where())
        damaged = sum(each.sums.damaged for each in packed)
        lost = sum(each.sums.left_out + each.refused for each in packed)
    if damaged:
        said = [f"{format_count(damaged, 'damaged line')} left out: a bundle can't contain them."]
    else:
        said = []
    said += [f"{format_count(lost, 'file')} of the sessions could not be imported."] if lost else []
    return found, said + ([BACKUPS_STAY] if wish.whole else [])


def _bundle_text(taken: ImportSource, found: list[ImportedSession], *, whole: bool) -> str:
    last = found[-1].receipt
    if any(came.receipt.written for came in found):
        done = "brought in"
    else:
        done = "would bring in"
    rows = []
    for came in found:
        rows.append(
            (
                "known" if came.existing else done,
                " · ".join(filter(None, (came.receipt.title, came.session_id))),
            )
        )
    if whole:
        what = "complete, with their files"
    else:
        what = "only their conversations (--whole for your own bundles)"
    checked = sum(len(came.receipt.checks) for came in found)
    return facts_table(
        [
            *rows,
            ("from", plain_line(taken.name)),
            ("taken over", what),
            ("at home in", last.folder),
            ("checks", f"{checked} passed" if last.written else "not run: nothing was written"),
            *(
                [("in Claude Code", last.in_client), ("in a shell", last.shell)]
                if found[-1].session_id
                else []
            ),
        ]
    )
