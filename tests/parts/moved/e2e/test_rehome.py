"""Tests of re-homed sessions in the real client.

A session whose folder was moved can be resumed and is listed, and its files can be rewound. The
files of a fork can be rewound even if its parent was deleted.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.cut_point import CutAtRecord, CutSelector
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.transcripts import records
from resume_hooks.transcripts.transcript import scan_transcript
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    ClientHome,
    ClientVersion,
    Tui,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import LINEAGE_MARKER, text_of_request
from tests.e2e.test_fork import client_environ
from tests.e2e.test_trim_files import LONG_TEXT, rewind_files, send_prompt, write_and_edit_file


def move_project(home: ClientHome) -> Path:
    """Rename the project's folder, like a repository that was moved, and return the old path."""
    old = home.cwd
    home.cwd = old.rename(home.root / "elsewhere")
    home.write_client_config()
    return old


def fork_into_current_folder(
    parent: Path, home: ClientHome, cut: CutSelector | None = None, *, is_rehomed: bool = True
) -> Receipt:
    """Fork the session into the folder in which the client starts now.

    If ``is_rehomed`` is false, the fork stays in the folder that the session names.
    """
    environ = client_environ(home)
    where = str(home.cwd) if is_rehomed else None
    return write_child(
        fork.plan_fork(locate.session_file(str(parent)), Where(environ), cut=cut, home=where),
        Where(environ),
    )


def prompt_ids(parent: Path) -> list[str]:
    """Return the uuids of a session's prompts."""
    transcript = scan_transcript(str(parent))
    return [
        node.uuid for node in transcript.chain if records.is_prompt(transcript.read_record(node))
    ]


def remove_parent(parent: Path, home: ClientHome) -> None:
    """Delete the parent with its file backups."""
    parent.unlink()
    shutil.rmtree(home.config / "file-history" / parent.stem)


def assert_rewinds_after_a_move(client: ClientVersion, home: ClientHome, api: MockApi) -> str:
    """Re-home a session of a moved folder, rewind its files to each prompt, and resume it.

    Return the session's title.
    """
    parent = write_and_edit_file(client, home, api)
    first, second = prompt_ids(parent)
    old = move_project(home)
    made = fork_into_current_folder(parent, home)
    remove_parent(parent, home)
    file = home.cwd / "a.txt"
    assert rewind_files(client, home, api, made.session_id, second)
    assert file.read_text() == f"FIRST\n{LONG_TEXT}"
    assert rewind_files(client, home, api, made.session_id, first)
    assert file.read_text() == "ORIGINAL\n"
    assert not old.exists()
    api.clear_requests()
    done = run_print(client, home, api, "go on now", resume=made.session_id)
    assert done.returncode == 0, done.stderr
    said = text_of_request(api.main_requests()[-1])
    assert LINEAGE_MARKER in said
    assert f"Its project was {old} and is {home.cwd} now" in said
    assert "edit it" in said
    return made.title


def test_a_session_of_a_moved_project_can_be_rehomed(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """In every client, a session of a moved project can be re-homed, and its files can be rewound.

    The newest client lists the session in the new folder.
    """
    title = assert_rewinds_after_a_move(every_client, home, api)
    if every_client.version == NEWEST_VERSION:
        with Tui(every_client, home, api) as tui:
            tui.start(["--resume"], must_be_ready=False)
            tui.wait_for(re.escape(title))


def test_a_fork_can_rewind_its_files(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """A whole or cut fork can rewind its files to each of its prompts, even without its parent."""
    parent = write_and_edit_file(client, home, api)
    first, second = prompt_ids(parent)
    last = next(
        node for node in reversed(scan_transcript(str(parent)).chain) if node.uuid == second
    )
    cut = fork_into_current_folder(
        parent, home, CutAtRecord(last.line_number - 1), is_rehomed=False
    )
    whole = fork_into_current_folder(parent, home, is_rehomed=False)
    remove_parent(parent, home)
    file = home.cwd / "a.txt"
    assert rewind_files(client, home, api, whole.session_id, second)
    assert file.read_text() == f"FIRST\n{LONG_TEXT}"
    assert rewind_files(client, home, api, cut.session_id, first)
    assert file.read_text() == "ORIGINAL\n"


@pytest.mark.wide
def test_work_in_a_fork_keeps_the_parents_backups(home: ClientHome, api: MockApi) -> None:
    """Work in a fork does not change the parent's file backups.

    An old client would overwrite a backup file that has the name of the next version. Such a client
    does not find a session whose project was moved to another folder.
    """
    oldest = find_client(OLDEST_VERSION)
    parent = write_and_edit_file(oldest, home, api)
    history = home.config / "file-history" / parent.stem
    kept = {path.name: path.read_bytes() for path in history.iterdir()}
    second = next(
        node for node in scan_transcript(str(parent)).chain if node.uuid == prompt_ids(parent)[1]
    )
    made = fork_into_current_folder(
        parent, home, CutAtRecord(second.line_number - 1), is_rehomed=False
    )
    file = str(home.cwd / "a.txt")
    for text in ("THIRD", "FOURTH", "FIFTH"):
        steps = [
            {"name": "Read", "input": {"file_path": file}},
            {"name": "Write", "input": {"file_path": file, "content": text}},
            "done",
        ]
        send_prompt(oldest, home, api, text, steps, made.session_id)
    assert len(list((history.parent / made.session_id).iterdir())) > 1
    assert {path.name: path.read_bytes() for path in history.iterdir()} == kept
    move_project(home)
    done = run_print(oldest, home, api, "go on now", resume=parent.stem)
    assert done.returncode != 0
    assert "No conversation found" in done.stderr + done.text + str(done.events)


def test_rehome_copies_all_sessions_of_a_moved_folder(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """``rehome`` finds the old folder and copies both of its sessions, which continue in the new one."""
    write_and_edit_file(client, home, api)
    send_prompt(client, home, api, "another one", ["done"])
    move_project(home)
    command = [sys.executable, "-m", "resume_hooks", "rehome", "--json"]
    done = subprocess.run(
        command, env=client_environ(home), cwd=home.cwd, capture_output=True, check=True
    )
    made = json.loads(done.stdout)["data"]["made"]
    said = []
    for receipt in made:
        api.clear_requests()
        run_print(client, home, api, "go on now", resume=receipt["session_id"])
        said.append(text_of_request(api.main_requests()[-1]))
    assert len(said) == 2
    assert "edit it" in said[0]
    assert "another one" in said[1]
