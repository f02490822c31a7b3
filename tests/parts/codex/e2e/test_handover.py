"""Tests of sessions that continue in the other agent and are resumed in its real client."""

from __future__ import annotations

import hashlib
import os

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.derive.verbs.fork import ForkSpec, plan_fork
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.locate import SessionFile, resolve_locator
from resume_hooks.transcripts import records
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import session_id
from tests.e2e.harness.api_requests import conversation_of_request
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import text_of_request as spoken_to_claude
from tests.needs import corpus_sessions, require_for_test
from tests.parts.codex.e2e.client import PROBE_PROMPT, CodexHome, thread_id_of_path
from tests.parts.codex.e2e.responses import item_text, join_input_texts
from tests.parts.codex.rollouts import codex_rollouts

TESTED_SESSION_COUNT = 10 if os.environ.get("RUN_ALL") == "1" else 3
MAX_SESSION_BYTES = 2_000_000  # Maximum size of a session in these tests, in bytes.


@pytest.fixture
def where(home: ClientHome, codex: CodexHome, monkeypatch: pytest.MonkeyPatch) -> Where:
    """Return the paths of a run that uses the homes of both clients."""
    monkeypatch.setenv("HOME", str(home.root))
    monkeypatch.setenv("CODEX_HOME", str(codex.codex))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.config))
    monkeypatch.delenv("RESUME_HOOKS_HOME", raising=False)
    return Where()


def write_fork_and_handoff(parent: SessionFile, where: Where, target_agent: str) -> tuple[str, str]:
    """Return the ids of a fork and of a handoff that were written for the other agent."""
    fork = write_child(plan_fork(parent, where, ForkSpec(target_agent=target_agent)), where)
    contents = ChildContents(build_digest(parent, where))
    handoff = agents.plan_fresh_child(
        parent,
        where,
        kind="handoff",
        next_step="write the tests",
        contents=contents,
        target_agent=target_agent,
    )
    assert fork.agent == target_agent
    return fork.session_id, write_child(handoff, where).session_id


def test_claude_code_resumes_children_of_codex_sessions(
    codex: CodexHome, home: ClientHome, where: Where, client: ClientVersion, api: MockApi
) -> None:
    """Claude Code resumes a fork and a handoff of a Codex session.

    Both children name Codex and the parent, and the handoff contains the next step.
    """
    found = [path for path in codex_rollouts() if path.stat().st_size < MAX_SESSION_BYTES][::-1][
        :TESTED_SESSION_COUNT
    ]
    require_for_test(
        "the corpus of rollouts", found, "set RESUME_HOOKS_CODEX, or put it beside the transcripts"
    )
    for path in [codex.add_rollout(source, home.cwd) for source in found]:
        before = hashlib.sha256(path.read_bytes()).digest()
        parent = resolve_locator(thread_id_of_path(path), "/", where, allow_other_agents=True)
        fork, handoff = write_fork_and_handoff(parent, where, "claude")
        assert hashlib.sha256(path.read_bytes()).digest() == before
        for child in (fork, handoff):
            api.clear_requests()
            done = run_print(client, home, api, PROBE_PROMPT, resume=child)
            assert done.returncode == 0, done.stderr
            request = api.main_requests()[-1]
            words = spoken_to_claude(request)
            assert f"{parent.session_id}" in words, path.name
            assert "session ran in Codex" in words
            assert PROBE_PROMPT in words
            rows = LineageFinder(where).find_lineage(resolve_locator(child, "/", where).path)
            assert [row.session_id for row in rows][-2:] == [parent.session_id, child]
            if child == handoff:
                assert "Next step, as the user put it:\nwrite the tests" in words
            else:
                assert start_of_last_prompt(parent) in words
                assert len(conversation_of_request(request)) >= 2


def test_codex_resumes_children_of_claude_code_sessions(
    codex: CodexHome, home: ClientHome, where: Where
) -> None:
    """Codex resumes a fork and a handoff of a Claude Code session.

    Both children name Claude Code and the parent.
    """
    sized = [
        path for path in corpus_sessions() if 20_000 < path.stat().st_size < MAX_SESSION_BYTES
    ][::-1]
    found = [
        path for path in sized if any(node.is_message for node in scan_transcript(str(path)).chain)
    ][:TESTED_SESSION_COUNT]
    require_for_test("the transcript corpus", found, "set RESUME_HOOKS_CORPUS")
    for number, path in enumerate(found, 1):
        placed = home.install_session(path, session_id(number), set_cwd=True)
        parent = resolve_locator(session_id(number), str(home.cwd), where)
        before = hashlib.sha256(placed.read_bytes()).digest()
        fork, handoff = write_fork_and_handoff(parent, where, "codex")
        assert hashlib.sha256(placed.read_bytes()).digest() == before
        for child in (fork, handoff):
            sent = codex.resume(child)
            words = join_input_texts(sent)
            assert parent.session_id in words, path.name
            assert "session ran in Claude Code" in words
            assert item_text(sent[-1]) == PROBE_PROMPT
            rows = LineageFinder(where).find_lineage(
                resolve_locator(child, "/", where, allow_other_agents=True).path
            )
            assert [row.session_id for row in rows][-2:] == [parent.session_id, child]
        assert "Next step, as the user put it:\nwrite the tests" in words


def start_of_last_prompt(parent: SessionFile) -> str:
    """Return the first 60 characters of the last prompt in a session."""
    transcript = scan_transcript(parent.path)
    prompts = [
        records.prompt_text(transcript.read_record(node))
        for node in transcript.chain
        if node.is_prompt
    ]
    return prompts[-1].strip().split("\n")[0][:60] if prompts else ""
