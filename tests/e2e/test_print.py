"""Tests of the plugin in ``claude -p``: prompts pass, triggers show their card, and children resume."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.e2e.harness.client import RECENT_VERSIONS, ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi, last_user_text
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import ENGINE_ENV, LINEAGE_MARKER, children_of_session, text_of_request

PARENT_ID = "11111111-aaaa-4bbb-8ccc-000000000001"
WORDS_ONLY_IN_PARENT = "PARENT-ONLY-WORDS"


@pytest.fixture
def parent(every_client: ClientVersion, home: ClientHome, api: MockApi) -> Path:
    """Return a session with one turn that the client wrote without the plugin."""
    done = run_print(
        every_client,
        home,
        api,
        f"remember {WORDS_ONLY_IN_PARENT}",
        extra_args=["--session-id", PARENT_ID],
    )
    assert done.returncode == 0, done.stderr
    api.clear_requests()
    return home.project_folder / f"{PARENT_ID}.jsonl"


def test_a_prompt_without_a_trigger_passes_unchanged(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """A prompt that contains a trigger inside JSON is sent to the model unchanged.

    More such prompts are in tests/hook_scripts/test_guard.py and tests/hooks.
    """
    prompt = '{"prompt":">resume"}'
    done = run_print(every_client, home, api, prompt, plugin_dir=plugin, extra_env=ENGINE_ENV)
    assert done.returncode == 0, done.stderr
    assert prompt in last_user_text(api.main_requests()[-1])


def test_triggers_are_blocked_in_both_forms(
    every_client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    plugin: Path,
    parent: Path,
    xserver: XServer,
) -> None:
    """The hook answers ``>resume`` and ``/resume-hooks:handoff``, and no request is sent.

    ``>resume`` shows its card and copies the session's id to the X clipboard. The handoff makes a
    child with the next step.
    """
    env = ENGINE_ENV | {"DISPLAY": xserver.display}
    done = run_print(
        every_client, home, api, ">resume", resume=PARENT_ID, plugin_dir=plugin, extra_env=env
    )
    assert not api.main_requests()
    # In ``-p``, older clients print nothing if a prompt is blocked.
    if every_client.version in RECENT_VERSIONS:
        assert f"session {PARENT_ID} copied (xclip)" in done.text + str(done.events)
    assert xserver.read_clipboard() == PARENT_ID
    typed = "/resume-hooks:handoff fix the tests"
    run_print(every_client, home, api, typed, resume=PARENT_ID, plugin_dir=plugin, extra_env=env)
    assert not api.main_requests()
    (child,) = children_of_session(home, parent)
    assert b"fix the tests" in child.read_bytes()


def test_a_handoff_child_resumes_with_lineage_digest_and_step(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, parent: Path
) -> None:
    """If ``claude -p`` resumes the child of ``>handoff``, it sends lineage, digest and next step.

    The parent's file keeps its content; records are only appended.
    """
    before = parent.read_bytes()
    run_print(
        every_client,
        home,
        api,
        ">handoff fix the tests",
        resume=PARENT_ID,
        plugin_dir=plugin,
        extra_env=ENGINE_ENV,
    )
    assert not api.main_requests()
    assert parent.read_bytes().startswith(before), "the client appends; nothing else may change"
    (child,) = children_of_session(home, parent)
    fingerprint = hashlib.sha256(parent.read_bytes()).digest()
    done = run_print(
        every_client, home, api, "go on", resume=child.stem, plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    assert done.returncode == 0, done.stderr
    assert done.events[-1]["session_id"] == child.stem
    roles = [
        message["role"]
        for message in api.main_requests()[-1]["messages"]
        if message["role"] != "system"
    ]
    assert roles == ["user", "assistant", "user"], "the block, the card, the new prompt"
    said = text_of_request(api.main_requests()[-1])
    assert LINEAGE_MARKER in said
    assert PARENT_ID in said
    assert "fix the tests" in said
    assert "No response requested" not in said
    # The first prompt is also the parent's title. Its words are therefore in the lineage, on the
    # card and in the digest.
    assert said.count(WORDS_ONLY_IN_PARENT) == said.count(f"remember {WORDS_ONLY_IN_PARENT}") <= 5
    assert said.count("Mock reply 1") == 1, (
        "the digest quotes the last words, and the conversation is not there"
    )
    assert hashlib.sha256(parent.read_bytes()).digest() == fingerprint


def test_prompts_pass_after_the_plugin_folder_vanished(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """If the plugin's hooks are deleted while a session uses the plugin, a prompt is sent unchanged."""
    for name in ("guard", "session-start", "session-end", "engine"):
        (plugin / "hooks" / name).unlink()
    done = run_print(every_client, home, api, ">resume", plugin_dir=plugin, extra_env=ENGINE_ENV)
    assert done.returncode == 0
    assert last_user_text(api.main_requests()[-1]).endswith(">resume")
