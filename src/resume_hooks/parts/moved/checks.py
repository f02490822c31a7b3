"""What doctor says of copies."""

from __future__ import annotations

from resume_hooks.maintenance.doctor import Finding, ok, problem
from resume_hooks.parts.moved.copies import doubled
from resume_hooks.paths import Where


def check(_: str) -> Finding:
    """Whether a session lies in several folders, which newer clients refuse to resume."""
    found = doubled(Where())
    if not found:
        return ok("every session lies in one project folder")
    own = found[0][0].session_id
    more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
    remedy = f"Keep one, the others to the trash: resume-hooks delete {own} --other-copies"
    said = f"{own} lies in {len(found[0])} project folders{more}; clients since 2.1.223 resume it from no other folder"
    return problem(said, remedy, "found")
