"""Tests of imported sessions in the real client.

Imported sessions send the original conversation and do not change the client's settings.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from resume_hooks.parts.share.verbs.import_ import import_file
from tests import strangers
from tests.builders import session_bytes
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    ClientHome,
    ClientVersion,
    Tui,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import text_of_request
from tests.e2e.test_bundle import IMPORT_REMARK, request_blocks
from tests.e2e.test_fork import client_environ
from tests.e2e.test_trim_corpus import resume_request
from tests.needs import REPO, corpus, one_in

SAMPLE_TRANSCRIPTS = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__cli/062a8bdd-4322-4ffa-bc38-3e8b8bfb5a56.jsonl",
    "entireio__cli/839b35f7-4dbd-4d93-9772-3c272cc87caa.jsonl",
    "obra__episodic-memory/long-conversation.jsonl",
)


@pytest.fixture(autouse=True)
def client_home(home: ClientHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the imports in the tests write to the client's own home."""
    monkeypatch.setenv("HOME", str(home.root))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.config))


def import_session(content: bytes, home: ClientHome) -> str:
    """Import a transcript with this content and return the id of the new session."""
    path = home.root / "x.jsonl"
    path.write_bytes(content)
    made, _ = import_file(str(path), str(home.cwd))
    assert made.written
    return made.session_id


@pytest.mark.parametrize("name", one_in(2, SAMPLE_TRANSCRIPTS))
def test_an_imported_session_sends_its_conversation(
    name: str, every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """An imported session sends the original conversation after a note that it is not verified.

    Prompts, answers, calls and results keep their order.
    """
    source = corpus() / name
    session_id = import_session(source.read_bytes(), home)
    found = resume_request(every_client, home, api, session_id)
    assert text_of_request(found).count(IMPORT_REMARK) == 1
    twin = home.install_session(source, str(uuid.uuid4()))
    # Older clients lose parallel calls of the original, so the newest client's request is expected.
    assert request_blocks(found) == request_blocks(
        resume_request(find_client(NEWEST_VERSION), home, api, twin.stem)
    )


def test_a_hostile_transcript_sets_no_client_state(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A hostile transcript sets no mode, model, permission, system prompt or folder of the client.

    Its conversation is sent unchanged.
    """
    session_id = import_session(session_bytes(strangers.hostile_records()), home)
    done = run_print(every_client, home, api, "go on now", resume=session_id)
    assert done.returncode == 0, done.stderr
    request = api.main_requests()[-1]
    assert strangers.HOSTILE_TEXT not in json.dumps(request)
    assert request["model"] != strangers.HOSTILE_MODEL
    (began,) = [event for event in done.events if event.get("subtype") == "init"]
    assert began["permissionMode"] == "default"
    assert began["cwd"] == str(home.cwd)
    texts = text_of_request(request)
    for words in strangers.HOSTILE_MESSAGES:
        assert texts.count(words) == 1, words


def test_the_client_picker_lists_an_imported_session(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """``claude --resume`` lists an imported session by its title, shows its messages and continues it."""
    import_session(session_bytes(strangers.hostile_records()), home)
    with Tui(every_client, home, api) as tui:
        tui.start(["--resume"], must_be_ready=False)
        tui.wait_for("Fix the parser · import")
        tui.key("Enter")
        tui.wait_for(strangers.HOSTILE_MESSAGES[1])
        tui.wait_until_idle()
        assert "could not be restored" not in tui.text()
        tui.submit("and now")
        tui.wait_for("Mock reply 1")


def test_an_imported_session_does_not_need_its_source(
    client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """An imported session can be resumed after the imported file was deleted."""
    path = tmp_path / "x.jsonl"
    shutil.copyfile(corpus() / SAMPLE_TRANSCRIPTS[0], path)
    made, _ = import_file(str(path), str(home.cwd))
    path.unlink()
    assert request_blocks(resume_request(client, home, api, made.session_id))


def without_home_paths(text: str, home: ClientHome) -> str:
    """Return ``text`` with "H" in place of each home folder, also in names of project folders."""
    return re.sub(
        rf"{re.escape(str(home.root))}|/home/user|~",
        "H",
        re.sub(r"-(?:~|home-user[\w-]*)", "-H", text),
    )


def test_a_shared_page_can_be_imported_on_another_machine(
    client: ClientVersion, home: ClientHome, other_machine: ClientHome, api: MockApi
) -> None:
    """A session that was shared as a page and imported on another machine sends the same conversation."""
    root = home.install_session(corpus() / SAMPLE_TRANSCRIPTS[0], str(uuid.uuid4()), set_cwd=True)
    page = other_machine.root / "talk.html"
    output_of_command(home, "share", root.stem, "--yes", "-o", str(page))
    before = request_blocks(resume_request(find_client(NEWEST_VERSION), home, api, root.stem))
    shutil.rmtree(home.config / "projects")
    made = json.loads(output_of_command(other_machine, "import", str(page), "--json"))["data"]
    request = resume_request(client, other_machine, api, made["session_id"])
    assert text_of_request(request).count(IMPORT_REMARK) == 1
    assert str(home.root) not in json.dumps(request)
    assert [without_home_paths(words, home) for _, words in request_blocks(request)] == [
        without_home_paths(words, home) for _, words in before
    ]


def output_of_command(home: ClientHome, *words: str) -> bytes:
    """Run a command of the shell in a home and return its output."""
    command = [sys.executable, "-m", "resume_hooks", *words]
    environ = client_environ(home) | {"PYTHONPATH": str(REPO / "src"), "PATH": os.defpath}
    return subprocess.run(
        command, env=environ, cwd=home.cwd, check=True, capture_output=True
    ).stdout
