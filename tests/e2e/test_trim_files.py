"""Tests that in a trimmed child, the real client can rewind and edit the user's files.

This also works after the parent was removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.sessions import locate
from resume_hooks.transcripts import records
from resume_hooks.transcripts.transcript import scan_transcript
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi

CHECKPOINTS_ENV = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1"}
LONG_TEXT = "".join(
    f"line {number} of a file that is worth a placeholder\n" for number in range(40)
)
TRIM_ALL_OPTIONS = Options(threshold=100, keep_recent=0, min_savings=0)


@pytest.fixture
def session_with_edits(client: ClientVersion, home: ClientHome, api: MockApi) -> Path:
    """Return a session in which the client wrote a file and edited it in a second turn."""
    return write_and_edit_file(client, home, api)


def write_and_edit_file(client: ClientVersion, home: ClientHome, api: MockApi) -> Path:
    """Have the client write and edit ``a.txt``, and return the session's file."""
    file = str(home.cwd / "a.txt")
    Path(file).write_text("ORIGINAL\n")
    read = {"name": "Read", "input": {"file_path": file}}
    first = {"name": "Write", "input": {"file_path": file, "content": f"FIRST\n{LONG_TEXT}"}}
    second = {
        "name": "Edit",
        "input": {"file_path": file, "old_string": "FIRST", "new_string": "SECOND"},
    }
    session_id = send_prompt(client, home, api, "write it", [read, first, "done"])
    send_prompt(client, home, api, "edit it", [read, second, "done"], session_id)
    assert Path(file).read_text() == f"SECOND\n{LONG_TEXT}"
    return home.project_folder / f"{session_id}.jsonl"


def send_prompt(
    client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    prompt: str,
    script: list[Any],
    resume: str | None = None,
) -> str:
    """Send one prompt, answer it with ``script``, and return the session's id."""
    api.clear_requests()
    api.script = script
    done = run_print(
        client,
        home,
        api,
        prompt,
        resume=resume,
        extra_args=["--dangerously-skip-permissions"],
        extra_env=CHECKPOINTS_ENV,
    )
    assert done.returncode == 0, done.stderr
    return done.session_id


def rewind_files(
    client: ClientVersion, home: ClientHome, api: MockApi, session_id: str, prompt: str
) -> bool:
    """Run the client's own ``--rewind-files``.

    Return False if the client has no snapshot for this prompt because it ended too early.
    """
    done = subprocess.run(
        [*client.command, "-p", "--resume", session_id, "--rewind-files", prompt],
        cwd=home.cwd,
        env=home.env(api.client_env() | CHECKPOINTS_ENV),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if b"No file checkpoint" in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    return True


def make_fully_trimmed_child(parent: Path, home: ClientHome) -> str:
    """Trim everything that can be trimmed in the session, and return the child's id."""
    decided = plan.plan_trim(
        plan.scan_session(locate.session_file(str(parent))), home.where, TRIM_ALL_OPTIONS
    )
    assert {"results", "inputs"} & {choice.rule for choice in decided.choices}
    return write_child(decided, home.where).session_id


def check_rewind_restores_files(
    client: ClientVersion, home: ClientHome, api: MockApi, parent: Path
) -> None:
    """Check that after the parent was deleted, a child's files can be rewound to each of the two prompts."""
    child = make_fully_trimmed_child(parent, home)
    transcript = scan_transcript(str(parent))
    prompts = [
        node.uuid for node in transcript.chain if records.is_prompt(transcript.read_record(node))
    ]
    parent.unlink()
    shutil.rmtree(home.config / "file-history" / parent.stem)
    file = home.cwd / "a.txt"
    for prompt, expected in zip(
        reversed(prompts), (f"FIRST\n{LONG_TEXT}", "ORIGINAL\n"), strict=True
    ):
        assert rewind_files(client, home, api, child, prompt)
        assert file.read_text() == expected


@pytest.mark.wide
def test_the_client_rewinds_files_of_a_trimmed_child(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """In a trimmed child, the client's ``--rewind-files`` restores each of a file's two earlier versions.

    The parent and its snapshots are deleted before the test rewinds the files.
    """
    check_rewind_restores_files(
        every_client, home, api, write_and_edit_file(every_client, home, api)
    )


@pytest.mark.wide
def test_a_child_can_edit_a_trimmed_file(
    client: ClientVersion, home: ClientHome, api: MockApi, session_with_edits: Path
) -> None:
    """In a child whose reads and writes of a file were trimmed, the model can still edit this file.

    Afterwards, the file contains no placeholder.
    """
    child = make_fully_trimmed_child(session_with_edits, home)
    file = home.cwd / "a.txt"
    third = {
        "name": "Edit",
        "input": {"file_path": str(file), "old_string": "SECOND", "new_string": "THIRD"},
    }
    send_prompt(client, home, api, "edit it again", [third, "done"], child)
    assert file.read_text() == f"THIRD\n{LONG_TEXT}"


def test_the_written_content_of_a_changed_file_is_kept(
    client: ClientVersion, home: ClientHome, api: MockApi, session_with_edits: Path
) -> None:
    """If a file changed after the model wrote it, the child keeps the content that the model wrote.

    If a placeholder replaced this content, the client would send the whole file as a change.
    """
    file = home.cwd / "b.txt"
    write = {"name": "Write", "input": {"file_path": str(file), "content": LONG_TEXT}}
    send_prompt(client, home, api, "write another", [write, "done"], session_with_edits.stem)
    os.utime(file)
    child = make_fully_trimmed_child(session_with_edits, home)
    send_prompt(client, home, api, "go on", ["done"], child)
    said = str(api.main_requests()[-1]["messages"])
    assert said.count("line 39 of a file") == 1
