"""Tests of removing the files that a killed command left for a child, and of keeping all others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.derive.child import claims
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.needs import REPO

KILLED_FORK_SCRIPT = """
import os, sys
from resume_hooks.derive import fork
from resume_hooks.derive.child import write_child
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import session_file
write_child.create_session = lambda *_: os._exit(9)
write_child.write_child(fork.plan_fork(session_file(sys.argv[1]), Where()), Where())
"""


@pytest.mark.part("secrets")
@pytest.mark.parametrize("cleanup_cause", ["the next child", "a scrub", "a start"])
def test_files_of_a_killed_fork_are_removed(config_home: ConfigHome, cleanup_cause: str) -> None:
    """The folder that a killed command left for a child is removed, and the parent's files are kept.

    The folder is removed by the next command that writes a child, by a scrub, and by the start of a
    session.
    """
    path = Path(write_session(config_home.project(), SESSION, conversation(3)))
    outputs = path.with_suffix("") / "tool-results"
    outputs.mkdir(parents=True)
    (outputs / "x.txt").write_text("a secret")
    environ = {**os.environ, **config_home.environ, "PYTHONPATH": str(REPO / "src")}
    done = subprocess.run(
        [sys.executable, "-c", KILLED_FORK_SCRIPT, str(path)], env=environ, check=False
    )
    assert done.returncode == 9
    left = [
        each for each in config_home.project().iterdir() if each.is_dir() and each.name != SESSION
    ]
    assert len(left) == 1
    if cleanup_cause == "the next child":
        with claims.claim_child(session_id(5), config_home.project().name, config_home.where):
            pass
    elif cleanup_cause == "a scrub":
        # Imported here so that the other cases also run without the part "secrets".
        from resume_hooks.parts.secrets import purge

        purge.remove_scrub_leftovers(config_home.where)
    else:
        claims.remove_sidecars_of_killed_commands(config_home.where)
    assert not left[0].exists()
    assert (outputs / "x.txt").exists()
    assert (
        not (config_home.config / "resume-hooks" / "making").exists()
        or cleanup_cause != "the next child"
    )


def test_the_cleanup_keeps_folders_that_are_still_used(config_home: ConfigHome) -> None:
    """The cleanup keeps the folders of running processes and of existing sessions.

    Claim files with invalid names are ignored.
    """
    folder = config_home.config / "resume-hooks" / "making"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)
    project = config_home.project()
    for number, process in ((1, os.getpid()), (2, 2**22 + 1)):
        (project / session_id(number)).mkdir()
        (folder / f"{process}.{session_id(number)}.{project.name}").touch()
    write_session(project, session_id(2), conversation(1))
    (folder / f"{2**22 + 1}.{session_id(3)}...").touch()
    (folder / "odd").touch()
    claims.remove_sidecars_of_killed_commands(config_home.where)
    assert (project / session_id(1)).is_dir()
    assert (project / session_id(2)).is_dir()
    assert {path.name for path in folder.iterdir()} == {
        "odd",
        f"{os.getpid()}.{session_id(1)}.{project.name}",
    }
