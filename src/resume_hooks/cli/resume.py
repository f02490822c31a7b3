"""``resume``: a session, how full it is, and the ways on from it, compared."""

from __future__ import annotations

import os
from typing import Any

import click

from resume_hooks import clock, cost, settings, ways
from resume_hooks.cli.output import emit, json_option, located, locator_argument, table
from resume_hooks.events import resume_card
from resume_hooks.receipt import resume_command


@click.command("resume")
@locator_argument
@json_option
def command(locator: str | None, as_json: bool) -> None:
    """Show a session, how full it is, and what going on, a trim, a handoff, a rollover or a compaction would cost.

    All figures but the context in use are estimates, from what the API counted of this session's own requests: the
    tokens that each way leaves, those that its next turn would send past the cache, and the turns after which it has
    cost less than going on. docs/estimates.md says how they are made.

    \b
    Examples:
      resume-hooks resume
      resume-hooks resume 5e12a303
      resume-hooks resume "Fix the parser" --json
    """
    session = located(locator)
    window = settings.number("context_window")
    found = ways.compare(session.session_id, session.path, os.environ, window, clock.now(), limit=0)
    emit("resume", facts(found), lambda: render(found), as_json=as_json)


def facts(found: ways.Comparison) -> dict[str, Any]:
    """A comparison in its documented JSON form."""
    context, seen, rates = found.context, found.traffic, cost.rates_of(found.traffic.lifetime)
    return {
        "session_id": found.session_id,
        "session_file": found.glance.path,
        "title": found.glance.title,
        "context": {**context._asdict(), "percent": context.percent, "compacts_at_once": context.compacts_at_once},
        "cache": {
            "warm": found.warm,
            "lifetime_seconds": seen.lifetime,
            "age_seconds": found.age,
            "tokens": seen.cached if found.warm else 0,
        },
        "typical_turn": {"requests": seen.requests, "tokens": seen.growth},
        "base": found.base._asdict(),
        "rates": {"input": 1.0, "cache_read": rates.read, "uncached": rates.write, "output": cost.OUTPUT},
        "estimates": [estimate._asdict() for estimate in found.estimates],
        "advice": found.advice._asdict() if found.advice else None,
        "commands": {
            "in_client": f"/resume {found.session_id}",
            "shell": resume_command(found.folder, found.session_id),
        },
    }


def render(found: ways.Comparison) -> str:
    """A comparison for people, with what to type for each way."""
    glance, short = found.glance, found.session_id[:8]
    facts_shown = table(
        [
            ("title", glance.title),
            ("id", found.session_id),
            ("size", resume_card.size(glance)),
            ("context", resume_card.used(found.context)),
        ]
    )
    commands = table(
        [
            ("go on", resume_command(found.folder, found.session_id)),
            ("", f"/resume {found.session_id}   in Claude Code"),
            *((way, f"resume-hooks {way} {short}") for way in (ways.TRIM, ways.HANDOFF, ways.ROLLOVER)),
            ("", "/resume-hooks:trim, :handoff, :rollover   in the session itself"),
        ]
    )
    parts = [facts_shown, "\n".join(resume_card.recommended(found)), "\n".join(resume_card.table(found)), commands]
    return "\n\n".join(part for part in parts if part)
