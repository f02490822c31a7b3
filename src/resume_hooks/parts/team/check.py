"""doctor's check of the team that was joined; the server is not asked."""

from __future__ import annotations

from importlib.util import find_spec

from resume_hooks.maintenance.doctor import Finding, ok, problem
from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.connect import DRIVER, how_to_add
from resume_hooks.paths import Where
from resume_hooks.system.text import counted


def team(_: str) -> Finding:
    """Whether turns' ends can push what they should."""
    joined, failing = team_file.found(Where()), team_file.failing(Where())
    if joined is None:
        return ok("none was joined", "none")
    if failing:
        return problem(failing.sentence, failing.remedy, "failing")
    if find_spec(DRIVER) is None:
        return problem(f"{DRIVER}, which speaks to the server of {joined.service}, is missing", how_to_add(), "driver")
    pushes = f"turns' ends push {counted(len(joined.projects), 'project')}, last push {team_file.last_push(Where())}"
    return ok(f"{joined.service} as {joined.login}; {pushes}; the server was not asked")
