"""An imported session says in the real client what was said elsewhere, and changes nothing of how that continues."""

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
from tests.e2e.harness.client import NEWEST, ClientHome, ClientVersion, Tui, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import message_texts_of_request
from tests.e2e.test_bundle import INTRODUCTION, request_blocks
from tests.e2e.test_fork import environ_of
from tests.e2e.test_trim_corpus import resume_request
from tests.needs import REPO, corpus, one_in

SAMPLE = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__cli/062a8bdd-4322-4ffa-bc38-3e8b8bfb5a56.jsonl",
    "entireio__cli/839b35f7-4dbd-4d93-9772-3c272cc87caa.jsonl",
    "obra__episodic-memory/long-conversation.jsonl",
)


@pytest.fixture(autouse=True)
def here(home: ClientHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is imported goes into the client's own home."""
    monkeypatch.setenv("HOME", str(home.root))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.config))


def imported_id(content: bytes, home: ClientHome) -> str:
    """Return the id of an imported session."""
    path = home.root / "x.jsonl"
    path.write_bytes(content)
    made, _ = import_file(str(path), str(home.cwd))
    assert made.written
    return made.session_id


@pytest.mark.parametrize("name", one_in(2, SAMPLE))
def test_it_sends_the_conversation(
    name: str, every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Prompts, answers, calls and results in their order, after a remark that nobody verified them."""
    source = corpus() / name
    session_id = imported_id(source.read_bytes(), home)
    found = resume_request(every_client, home, api, session_id)
    assert message_texts_of_request(found).count(INTRODUCTION) == 1
    twin = home.install_session(source, str(uuid.uuid4()))
    # Older clients lose parallel calls of the original; what the newest sends of it is the measure.
    assert request_blocks(found) == request_blocks(
        resume_request(find_client(NEWEST), home, api, twin.stem)
    )


def test_a_strangers_wishes(every_client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """Neither mode, model, rights, system prompt, plan nor worktree of a hostile transcript.

    Its talk is what it is.
    """
    session_id = imported_id(session_bytes(strangers.hostile()), home)
    done = run_print(every_client, home, api, "go on now", resume=session_id)
    assert done.returncode == 0, done.stderr
    request = api.main_requests()[-1]
    assert strangers.EVIL not in json.dumps(request)
    assert request["model"] != strangers.MODEL
    (began,) = [event for event in done.events if event.get("subtype") == "init"]
    assert began["permissionMode"] == "default"
    assert began["cwd"] == str(home.cwd)
    texts = message_texts_of_request(request)
    for words in strangers.SAID:
        assert texts.count(words) == 1, words


def test_the_picker_shows_it(every_client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """``claude --resume`` lists it by its title, its screen shows what was said, and one can continue."""
    imported_id(session_bytes(strangers.hostile()), home)
    with Tui(every_client, home, api) as tui:
        tui.start(["--resume"], ready=False)
        tui.wait_for("Fix the parser · import")
        tui.key("Enter")
        tui.wait_for(strangers.SAID[1])
        tui.wait_idle()
        assert "could not be restored" not in tui.text()
        tui.submit("and now")
        tui.wait_for("Mock reply 1")


def test_a_copy_without_its_source(
    client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """A file that was imported is not needed any more."""
    path = tmp_path / "x.jsonl"
    shutil.copyfile(corpus() / SAMPLE[0], path)
    made, _ = import_file(str(path), str(home.cwd))
    path.unlink()
    assert request_blocks(resume_request(client, home, api, made.session_id))


def homeless(words: str, home: ClientHome) -> str:
    """A text without anybody's home, in paths and in the names of project folders."""
    return re.sub(
        rf"{re.escape(str(home.root))}|/home/user|~",
        "H",
        re.sub(r"-(?:~|home-user[\w-]*)", "-H", words),
    )


def test_a_shared_page(
    client: ClientVersion, home: ClientHome, elsewhere: ClientHome, api: MockApi
) -> None:
    """One file, written by ``share`` and imported on the other machine, where the client says what was said here."""
    root = home.install_session(corpus() / SAMPLE[0], str(uuid.uuid4()), set_cwd=True)
    page = elsewhere.root / "talk.html"
    command_output(home, "share", root.stem, "--yes", "-o", str(page))
    before = request_blocks(resume_request(find_client(NEWEST), home, api, root.stem))
    shutil.rmtree(home.config / "projects")
    made = json.loads(command_output(elsewhere, "import", str(page), "--json"))["data"]
    request = resume_request(client, elsewhere, api, made["session_id"])
    assert message_texts_of_request(request).count(INTRODUCTION) == 1
    assert str(home.root) not in json.dumps(request)
    assert [homeless(words, home) for _, words in request_blocks(request)] == [
        homeless(words, home) for _, words in before
    ]


def command_output(home: ClientHome, *words: str) -> bytes:
    """Return the command line's output in a home."""
    command = [sys.executable, "-m", "resume_hooks", *words]
    environ = environ_of(home) | {"PYTHONPATH": str(REPO / "src"), "PATH": os.defpath}
    return subprocess.run(
        command, env=environ, cwd=home.cwd, check=True, capture_output=True
    ).stdout
