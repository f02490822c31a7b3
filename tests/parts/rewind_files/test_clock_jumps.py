"""A clock that jumps between two runs."""

from __future__ import annotations

import os
from pathlib import Path

from resume_hooks.parts.rewind_files import writing
from tests.builders import ConfigHome
from tests.parts.rewind_files.project import SESSION as OWN
from tests.parts.rewind_files.project import Project
from tests.test_clock_jumps import YEAR, Clock, hands

__all__ = ["hands"]


def test_undo_means_the_run_that_was_last(tmp_path: Path, config_home: ConfigHome, hands: Clock) -> None:
    """Also where the clock went back between two runs: runs sort as they were made."""
    project = Project(config_home, tmp_path / "work" / "proj")
    names: list[str] = []
    for ahead in (0, -YEAR, -2 * YEAR, -YEAR, 10):
        hands.ahead = ahead
        project.put("a", f"new {len(names)}")
        decided = project.plan(project.simple({"a": project.keep("a", "old")}))
        names.append(os.path.basename(writing.write(decided, project.home.where)))
        found = writing.plan_undo(OWN, project.home.where)
        names.append(os.path.basename(writing.write(found, project.home.where)))
        assert project.path("a").read_text() == f"new {len(names) - 2}"
    assert names == sorted(names)
    assert len(set(names)) == len(names)
