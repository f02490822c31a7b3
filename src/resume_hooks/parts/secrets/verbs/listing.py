"""``scrub --list``: which secrets lie where; never what they are."""

from __future__ import annotations

from collections import Counter

import click

from resume_hooks import clock
from resume_hooks.cli.options import current_folder, time_of
from resume_hooks.cli.output import at_work
from resume_hooks.errors import UsageError
from resume_hooks.parts.secrets.audit import Audit, audit
from resume_hooks.parts.secrets.verbs import ScrubOptions
from resume_hooks.paths import project_names
from resume_hooks.sessions.agents.registry import store_of
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted

SHOWN = 200  # secrets that are listed to people; ``--json`` lists all


def list_secrets(options: ScrubOptions) -> int:
    """Print where secrets lie; 1 where there are some, or places that can't be looked at."""
    if sum([bool(options.locator), options.all_sessions, options.project]) > 1:
        raise UsageError("SESSION, --all and --project exclude each other", "Give one of them.")
    sessions, reach = _scope(options)
    since = clock.stamp(time_of(options.since)) if options.since is not None else ""
    with at_work("Looking", quiet=options.as_json) as advance:
        found = audit(options.where, sessions=sessions, kinds=options.kind, since=since, progress=advance)
    warnings = [*found.unread, *found.warnings]
    options.emit(found, lambda: render(found, reach), warnings)
    return int(bool(found.leaks or found.unread))


def render(found: Audit, reach: str = "") -> str:
    """The secrets for people, oldest first, how many of each kind, and what to do; ``reach`` says whose files."""
    looked = counted(found.files, "file") + reach
    if not found.leaks:
        return f"No secrets found in {looked}." + (" Some could not be looked at." if found.unread else "")
    rows = []
    for leak in found.leaks[:SHOWN]:
        where = leak.reference or f"{leak.file}, line {leak.line + 1:,}"
        kind = click.style(leak.kind, fg="red")
        rows.append(f"{clock.minute(leak.time)}  {kind}, {leak.length:,} characters  {leak.place}  {where}")
    if len(found.leaks) > SHOWN:
        rows.append(f"and {len(found.leaks) - SHOWN:,} more; --json lists all")
    kinds = Counter(leak.kind for leak in found.leaks)
    counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    session = next((leak.session_id for leak in found.leaks if leak.session_id), "SESSION")
    rows += [
        f"{counted(len(found.leaks), 'place')} with secrets in {looked}: {counts}.",
        "Change each secret where it is valid: whoever could read these files may have it.",
        f"Then take it out of the session and every copy of it: {typed(f'scrub {session} --in-place')}",
        f"Or continue in a child without it; the session keeps it: {typed(f'scrub {session}')}",
        "Exports leave secrets out by themselves.",
    ]
    return "\n".join(rows)


def _scope(options: ScrubOptions) -> tuple[set[str] | None, str]:
    """The sessions that are asked for, None for all, and whose they are as the end of a sentence."""
    if options.all_sessions:
        return None, " of all sessions"
    if options.project:
        names = project_names(current_folder(), options.where)
        sessions = {session.session_id for session in store_of(options.where).sessions(names)}
        return sessions, f" of this project's {counted(len(sessions), 'session')} (others: --all)"
    session_id = options.located(foreign=True).session_id
    return {session_id}, f" of session {session_id[:8]} alone (others: --project, --all)"
