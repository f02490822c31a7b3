"""``trim`` and ``untrim``: a child whose bulky contents are placeholders, and one in which originals stand again."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.cli.child import (
    checks_text,
    make_child,
    print_child,
    receipt_text,
    require_client,
    require_folder,
)
from resume_hooks.cli.options import locate_trim
from resume_hooks.cli.output import facts_table
from resume_hooks.cli.verbs.children import TrimOptions, UntrimOptions
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim import in_place
from resume_hooks.derive.trim.in_place import InPlaceTrim
from resume_hooks.derive.trim.options import Options, TypedOptions, options_of
from resume_hooks.derive.trim.plan import preview, remarks
from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan, read_trimmed
from resume_hooks.errors import UsageError
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts.head_tail import HeadTail


def trim(options: TrimOptions) -> Receipt:
    """Make the child, as a part does whose option was given; or rewrite the session in place."""
    for trim_by_option in options.asked_of_parts(questions.trim_by_option):
        return trim_by_option(options)
    if options.force and not options.in_place:
        raise UsageError(
            "--force belongs to --in-place", "A child can be made of an open session as it is."
        )
    if options.in_place and options.output_dir is not None:
        raise UsageError(
            "--in-place rewrites the session where it lies", "Leave --output-dir or --in-place out."
        )
    if options.force and options.start:
        raise UsageError(
            "--start would open an open session a second time", "Leave --start or --force out."
        )
    require_client(options)
    trim = options_of(TypedOptions._make(getattr(options, name) for name in TypedOptions._fields))
    if options.in_place:
        return _trim_in_place(trim, options)
    decided = agents.trim(
        options.locate_session(foreign=True), options.where, trim, output_dir=options.output_dir
    )
    made = make_child(options, decided)

    def text() -> str:
        if not made.written:
            return f"{preview(decided)}\n\nNothing was written."
        return receipt_text(made, [("note", sentence) for sentence in remarks(decided)])

    return print_child(options, made, {"savings": decided}, text)


def _trim_in_place(trim: Options, options: TrimOptions) -> Receipt:
    session = options.locate_session()
    require_folder(options, home_folder(HeadTail(session.path), options.where))
    if options.dry_run:
        done = in_place.plan(session, options.where, trim)
    else:
        done = in_place.write(session, options.where, trim, force=options.force)
    more = {"savings": done.decided, "in_place": True, "backup": done.backup or None}
    return print_child(options, done.receipt, more, lambda: _text_in_place(done))


def _text_in_place(done: InPlaceTrim) -> str:
    made = done.receipt
    if not made.written:
        return f"{preview(done.decided)}\n\nNothing was written."
    return facts_table(
        [
            ("rewrote", made.title),
            ("id", made.session_id),
            ("file", made.file),
            ("backup", done.backup),
            ("tokens", f"{made.tokens_before:,} -> about {made.tokens_after:,}"),
            *(("note", sentence) for sentence in remarks(done.decided)),
            ("checks", checks_text(made)),
            ("in Claude Code", made.in_client),
            ("in a shell", made.shell),
        ]
    )


def untrim(options: UntrimOptions) -> None:
    """Make the child in which the originals stand."""
    require_client(options)
    reading = read_trimmed(locate_trim(options.locator, options.where))
    options.refuse_together("everything", "record")
    if reading.trimmed and not (options.everything or options.record):
        count = len(reading.trimmed)
        if count == 1:
            records = "1 record is"
        else:
            records = f"{count:,} records are"
        raise UsageError(
            f"{records} trimmed: which ones do you want back?",
            "--all, or --record N for one of them.",
        )
    decided = agents.untrim(
        reading,
        options.where,
        options.record or None,
        strict=options.strict,
        output_dir=options.output_dir,
    )
    made = make_child(options, decided)
    print_child(
        options, made, {"restoration": decided}, lambda: _untrimmed_text(reading, decided, made)
    )


def _untrimmed_text(reading: TrimmedSession, decided: UntrimPlan, made: Receipt) -> str:
    if decided.is_idle:
        why = reading.nothing
        return "\n\n".join(
            filter(
                None, [f"{why.message}.", why.remedy and f"  {why.remedy}", "Nothing was written."]
            )
        )
    facts = [
        *(("restored", fact) for fact in decided.facts),
        ("characters", f"{decided.characters:,} more"),
    ]
    if decided.after.compacts_at_once:
        facts.append(("note", "Resuming would compact at once: restore less (--record)."))
    return receipt_text(made, facts)
