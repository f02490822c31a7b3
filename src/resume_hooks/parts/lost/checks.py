"""What doctor says of sessions that left their prompts alone."""

from __future__ import annotations

from resume_hooks.maintenance.doctor import Finding, ok
from resume_hooks.parts.lost.lost_prompts import lost_prompts
from resume_hooks.parts.lost.strategy import NAME
from resume_hooks.paths import Where
from resume_hooks.system.invocation import typed


def check(_: str) -> Finding:
    """How many sessions are gone of which prompts are left."""
    if found := lost_prompts(Where()):
        lists = typed(f"sessions --all --agent {NAME}")
        return ok(f"{found}, in history.jsonl; search finds them, {lists} lists them", "found")
    return ok("no session is gone of which prompts are left")
