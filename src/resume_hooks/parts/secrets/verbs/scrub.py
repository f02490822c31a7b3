"""Run ``scrub``: write a child without secrets, remove the secrets from all files, or list them."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import click

from resume_hooks import clock, questions, seam
from resume_hooks.cli.child import (
    make_caller_for_new_child,
    receipt_text,
    refuse_start_in_other_folder,
    start_client_if_requested,
)
from resume_hooks.cli.options import current_folder, parse_time_option
from resume_hooks.cli.output import facts_table, print_text, show_work_progress
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import ExitCode, SessionInUse, UsageError
from resume_hooks.parts.secrets import child, findings, literals
from resume_hooks.parts.secrets.audit import Audit, audit_sessions_for_secrets
from resume_hooks.parts.secrets.file_scan import PLACE_FOR_SECRETS_IN_FOLDER_NAMES
from resume_hooks.parts.secrets.findings import (
    EXCLUDED_STATE,
    REMAINING_STATE,
    REMOVED_STATE,
    UNCHANGED_STATE,
    LocationWithSecrets,
    ScrubFindings,
    ScrubScope,
)
from resume_hooks.parts.secrets.locations import INDEXED, OWN_SESSION
from resume_hooks.parts.secrets.purge import remove_scrub_leftovers, remove_secrets_from_files
from resume_hooks.parts.secrets.verbs import ScrubOptions
from resume_hooks.paths import Where, project_folder_names
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import store_of_agents
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.head_tail import HeadTail

# Maximum number of secrets in the text output. ``--json`` lists all secrets.
MAX_LISTED_SECRETS = 200
MAX_LISTED_LOCATIONS = 40  # The maximum number of files to list for each state.
_HEADINGS_BY_STATE = {
    UNCHANGED_STATE: "Found in:",
    REMOVED_STATE: "Removed from:",
    REMAINING_STATE: "Not removed, or possibly not removed, from:",
    EXCLUDED_STATE: "Also found, but not changed:",
}
_UNCHANGED_PARENT_NOTE = (
    "The session itself still contains the secrets: only the child was written."
)
_NOTE_ON_SECRETS_IN_FOLDER_NAME = (
    "The name of the project's folder contains a secret. A scrub leaves it in every record, because "
    "Claude Code finds a session by its folder. Rename the folder."
)
_OTHER_AGENT_UNSUPPORTED_MESSAGE = (
    "Only sessions of Claude Code can be rewritten: the forks and rewinds of other agents refer to "
    "positions in the file"
)
_SHORT_VALUES_NOTE = (
    "{count:,} secrets are too short to search for in all files, because ordinary words may look the same. "
    "Copies may remain: search for them by hand, or pass the secrets to --secret-stdin."
)


def scrub_session(options: ScrubOptions) -> ExitCode:
    """Run ``scrub``, and return the exit code.

    The exit code is 1 if secrets remain after a scrub in place, or if ``--list`` has found secrets.
    """
    _refuse_conflicting_options(options)
    if options.must_list_secrets:
        return list_secrets(options)
    if not options.in_place:
        refuse_start_in_other_folder(options)
    if options.must_read_secrets_from_stdin:
        supplied_secrets = literals.parse_supplied_secrets(_read_secrets_from_stdin())
    else:
        supplied_secrets = {}
    scrub_scope = ScrubScope(
        options.include_ancestors,
        options.include_other_sessions,
        options.include_file_backups,
        options.include_documents,
        options.include_client_files,
    )
    session = options.locate_session_with_answers()
    if options.in_place and session.agent != CLAUDE_NAME:
        raise UsageError(
            _OTHER_AGENT_UNSUPPORTED_MESSAGE,
            (
                "Run the command without --in-place to get a child without secrets. Then delete the "
                "session in its own client."
            ),
        )
    if options.in_place and not options.dry_run:
        remove_scrub_leftovers(options.where)
    scrub_findings = findings.search_all_files(
        session,
        options.where,
        kinds=options.kinds,
        supplied_secrets=supplied_secrets,
        scope=scrub_scope,
    )
    if options.in_place:
        return _scrub_in_place(scrub_findings, options)
    return _scrub_in_child(scrub_findings, options)


def _scrub_in_child(scrub_findings: ScrubFindings, options: ScrubOptions) -> ExitCode:
    receipt = None
    # If the session has no secrets, no child is needed.
    if any(row.location.relation == OWN_SESSION for row in scrub_findings.locations_to_change):
        plan = child.plan_scrubbed_child(
            scrub_findings.session,
            options.where,
            scrub_findings.scanning_cleaner,
            output_dir=options.output_dir,
        )
        receipt = make_caller_for_new_child(options).write_child(plan)
    warnings = list(receipt.warnings) if receipt else []
    if scrub_findings.locations_to_change:
        is_foreign = scrub_findings.session.agent != CLAUDE_NAME
        command_words = ["scrub", scrub_findings.session.session_id, "--in-place"]
        for kind in options.kinds:
            command_words.extend(("--kind", kind))
        command_words += ["--secret-stdin"] if options.must_read_secrets_from_stdin else []
        warnings.append(
            _UNCHANGED_PARENT_NOTE
            + ("" if is_foreign else f" To remove them: {shell_command(shlex.join(command_words))}")
        )
    if scrub_findings.scanning_cleaner.has_secret_in_folder_name(
        HeadTail(scrub_findings.session.path).cwd.encode("utf-8", "surrogatepass")
    ):
        warnings.append(_NOTE_ON_SECRETS_IN_FOLDER_NAME)
    _print_findings(scrub_findings, options, receipt, warnings)
    if receipt is not None:
        start_client_if_requested(options, receipt)
    return 0


def _scrub_in_place(scrub_findings: ScrubFindings, options: ScrubOptions) -> ExitCode:
    is_scrubbed_in_place = False
    if scrub_findings.locations_to_change and not options.dry_run:
        if scrub_findings.open_reason:
            raise SessionInUse(
                f"The session may be open: {scrub_findings.open_reason}",
                "Quit the session's client, wait a minute, and run the command again.",
            )
        if not options.yes:
            print_text(_format_findings(scrub_findings))
        is_scrubbed_in_place = options.confirm_write(
            "Remove the secrets for good?", ask_first=not options.yes
        )
        if is_scrubbed_in_place:
            scrub_findings = replace(
                scrub_findings,
                locations_with_secrets=tuple(
                    remove_secrets_from_files(scrub_findings, options.where)
                ),
            )
    rewritten_session_ids = []
    for row in scrub_findings.locations_with_secrets:
        if row.scrub_state == REMOVED_STATE:
            rewritten_session_ids.append(row.location.session_id)
    notes = (
        _collect_notes_after_scrub(rewritten_session_ids, options.where)
        if is_scrubbed_in_place
        else []
    )
    _print_findings(scrub_findings, options, None, notes, is_scrubbed_in_place=is_scrubbed_in_place)
    was_tried = not options.dry_run and (
        is_scrubbed_in_place or not scrub_findings.locations_to_change
    )
    return int(
        was_tried
        and any(row.scrub_state == REMAINING_STATE for row in scrub_findings.locations_with_secrets)
    )


def _collect_notes_after_scrub(rewritten_session_ids: list[str], where: Where) -> list[str]:
    """Return the notes of other parts about the rewritten sessions, for example from the team part."""
    notes = []
    for notes_after_scrub in seam.find_answers(questions.notes_after_scrub):
        notes += notes_after_scrub(rewritten_session_ids, where)
    return notes


def _print_findings(
    scrub_findings: ScrubFindings,
    options: ScrubOptions,
    child_receipt: Receipt | None,
    warnings: list[str],
    *,
    is_scrubbed_in_place: bool = False,
) -> None:
    if scrub_findings.short_secrets:
        warnings.append(_SHORT_VALUES_NOTE.format(count=len(scrub_findings.short_secrets)))
    was_written = is_scrubbed_in_place or (child_receipt is not None and child_receipt.written)
    data = {
        "session_id": scrub_findings.session.session_id,
        "file": scrub_findings.session.original_path,
        "in_place": options.in_place,
        "written": was_written,
        "open": scrub_findings.open_reason,
        "places": scrub_findings.locations_with_secrets,
        "receipt": child_receipt,
    }

    def format_findings_with_receipt() -> str:
        receipt = f"\n\n{receipt_text(child_receipt)}" if child_receipt else ""
        return f"{_format_findings(scrub_findings)}{receipt}" + (
            "" if was_written else "\n\nNothing was written."
        )

    options.print_answer(data, format_findings_with_receipt, warnings)


def _format_findings(scrub_findings: ScrubFindings) -> str:
    kinds: Counter[str] = Counter()
    for row in scrub_findings.locations_with_secrets:
        kinds.update(row.counts_by_kind if row.location.relation == OWN_SESSION else ())
    facts = [("session", scrub_findings.session_title), ("id", scrub_findings.session.session_id)]
    facts.append(("its secrets", _format_counts_by_kind(kinds) or "none was found"))
    if scrub_findings.open_reason:
        facts.append(("open", scrub_findings.open_reason))
    parts = [facts_table(facts)]
    for state, heading in _HEADINGS_BY_STATE.items():
        rows = []
        for row in scrub_findings.locations_with_secrets:
            if row.scrub_state == state and (
                row.counts_by_kind or row.state_reason or state == REMOVED_STATE
            ):
                rows.append(row)
        if rows:
            if len(rows) > MAX_LISTED_LOCATIONS:
                more_lines = [f"  and {len(rows) - MAX_LISTED_LOCATIONS:,} more"]
            else:
                more_lines = []
            parts.append(
                "\n".join(
                    [heading, *map(_format_location, rows[:MAX_LISTED_LOCATIONS]), *more_lines]
                )
            )
    return "\n\n".join(parts)


def _format_location(row: LocationWithSecrets) -> str:
    location = row.location
    owner = "" if location.relation in {"", OWN_SESSION} else f"{location.relation} "
    counts = _format_counts_by_kind(row.counts_by_kind) or (
        "rebuilt" if location.kind == INDEXED else ""
    )
    parts = "  ".join(part for part in (f"{owner}{location.kind}", counts, location.path) if part)
    return f"  {parts}" + (f"\n    {row.state_reason}" if row.state_reason else "")


def _format_counts_by_kind(kinds: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items()))


def _read_secrets_from_stdin() -> bytes:
    """Return the secrets from stdin. On a terminal, ask for one secret without echoing it."""
    if sys.stdin.isatty():
        return str(click.prompt("Secret", hide_input=True, err=True)).encode()
    return sys.stdin.buffer.read(literals.MAX_SECRET_INPUT_BYTES + 1)


def _refuse_conflicting_options(options: ScrubOptions) -> None:
    """Raise UsageError for options that cannot be combined.

    Also raise UsageError if a scrub in place must ask for confirmation but there is no terminal.
    """
    if not options.must_list_secrets and (
        list_only_option := options.find_given_option("all_sessions", "whole_project", "since")
    ):
        raise UsageError(
            f"{list_only_option} works only with --list",
            "Give a session, or use --list.",
        )
    write_only_option = options.find_given_option(
        "in_place", "must_read_secrets_from_stdin", "output_dir", "start"
    )
    if options.must_list_secrets and write_only_option:
        raise UsageError(
            f"{write_only_option} and --list can't be combined",
            "Give only one of them.",
        )
    scope_option = options.find_given_option(
        "include_ancestors",
        "include_other_sessions",
        "include_file_backups",
        "include_documents",
        "include_client_files",
    )
    if scope_option and not options.in_place:
        raise UsageError(
            f"{scope_option} works only with --in-place",
            "Without --in-place, the command only writes a child.",
        )
    if options.in_place and (options.output_dir is not None or options.start):
        raise UsageError("--in-place creates no child", "Leave out --output-dir and --start.")
    if options.in_place:
        options.must_ask("A scrub in place")


def list_secrets(options: ScrubOptions) -> ExitCode:
    """Print where secrets were found. Return 1 if a file has secrets or cannot be read."""
    if sum([bool(options.locator), options.all_sessions, options.whole_project]) > 1:
        raise UsageError("SESSION, --all and --project can't be combined", "Give one of them.")
    session_ids, description = _select_sessions(options)
    if options.since is not None:
        start_time = clock.format_timestamp(parse_time_option(options.since))
    else:
        start_time = ""
    with show_work_progress("Looking", quiet=options.as_json) as report_progress:
        audit_result = audit_sessions_for_secrets(
            options.where,
            sessions=session_ids,
            kinds=options.kinds,
            start_time=start_time,
            progress=report_progress,
        )
    warnings = [*audit_result.unreadable_files, *audit_result.warnings]
    options.print_answer(audit_result, lambda: format_audit(audit_result, description), warnings)
    return int(bool(audit_result.leaks or audit_result.unreadable_files))


def format_audit(audit_result: Audit, scope_phrase: str = "") -> str:
    """Return the secrets as text, oldest first, with the number of secrets of each kind and next steps.

    ``scope_phrase`` is a phrase that describes the searched sessions, for example ``of all
    sessions``.
    """
    searched_phrase = format_count(audit_result.file_count, "file") + scope_phrase
    if not audit_result.leaks:
        return f"No secrets found in {searched_phrase}." + (
            " Some could not be read." if audit_result.unreadable_files else ""
        )
    rows = []
    for leak in audit_result.leaks[:MAX_LISTED_SECRETS]:
        location = leak.record_reference or f"{leak.file_path}, line {leak.line_number + 1:,}"
        kind = click.style(leak.kind, fg="red")
        rows.append(
            f"{clock.format_minute(leak.time)}  {kind}, {leak.length:,} characters  {leak.place}  {location}"
        )
    if len(audit_result.leaks) > MAX_LISTED_SECRETS:
        rows.append(f"and {len(audit_result.leaks) - MAX_LISTED_SECRETS:,} more; --json lists all")
    kinds = Counter(leak.kind for leak in audit_result.leaks)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    session_id = next(
        (leak.session_id for leak in audit_result.leaks if leak.session_id), "SESSION"
    )
    rows += [
        f"{format_count(len(audit_result.leaks), 'place')} with secrets in {searched_phrase}: {counts}.",
        "Revoke and replace each secret: anyone who could read these files may have the secret.",
        (
            "Then remove the secrets from the session and all copies: "
            f"{shell_command(f'scrub {session_id} --in-place')}"
        ),
        (
            "Or continue in a child without the secrets (the session still has them): "
            f"{shell_command(f'scrub {session_id}')}"
        ),
        "Exports leave secrets out automatically.",
    ]
    if any(leak.place == PLACE_FOR_SECRETS_IN_FOLDER_NAMES for leak in audit_result.leaks):
        rows.append(_NOTE_ON_SECRETS_IN_FOLDER_NAME)
    return "\n".join(rows)


class _SelectedSessions(NamedTuple):
    """The sessions to search for secrets.

    ``session_ids`` is None if all sessions are to be searched. ``description`` is a phrase such as
    ``of all sessions``, with a space before it.
    """

    session_ids: set[str] | None
    description: str


def _select_sessions(options: ScrubOptions) -> _SelectedSessions:
    if options.all_sessions:
        return _SelectedSessions(None, " of all sessions")
    if options.whole_project:
        names = project_folder_names(current_folder(), options.where)
        sessions = set()
        for session in store_of_agents(options.where).sessions(names):
            sessions.add(session.session_id)
        return _SelectedSessions(
            sessions,
            f" of this project's {format_count(len(sessions), 'session')} (for other sessions: --all)",
        )
    session_id = options.locate_session(allow_other_agents=True).session_id
    return _SelectedSessions(
        {session_id}, f" of session {session_id[:8]} only (for other sessions: --project, --all)"
    )
