"""Tests that a child of every real session resumes in the real client.

The child's request contains the lineage but no record of the parent.
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import NothingToHandOff
from resume_hooks.paths import is_session_id
from resume_hooks.sessions import locate
from resume_hooks.transcripts.transcript import scan_transcript
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import LINEAGE_MARKER, text_of_request
from tests.needs import corpus_folder, corpus_sessions, one_in

SAMPLE_SESSIONS = (
    "_cli_generated/2.0.76/-home-user-gen-2-0-76-proj/a282734a-4845-4796-9000-170faa81ba03.jsonl",
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/759d0644-d434-4a88-94fb-d7821cb06853.jsonl",
    "daaain__claude-code-log/edge_cases.jsonl",
    "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl",
    "gmeligio__flutter-docker-image/5e12a303-c989-4291-a42d-bc1eb620afea.jsonl",
)
ALL_SESSION_NAMES = [str(path.relative_to(corpus_folder())) for path in corpus_sessions()]
_NEXT_STEP = "WRITE-THE-CHANGELOG"


def check_child_resumes(
    source: Path, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Hand off the session ``source`` in a new project, resume the child, and check its request."""
    session_id = source.stem if is_session_id(source.stem) else str(uuid.uuid4())
    parent = home.install_session(source, session_id)
    fingerprint = hashlib.sha256(parent.read_bytes()).digest()
    try:
        plan = agents.plan_fresh_child(
            locate.session_file(str(parent)), home.where, kind="handoff", next_step=_NEXT_STEP
        )
    except NothingToHandOff:
        assert not any(
            node.is_prompt or node.context_tokens for node in scan_transcript(str(parent)).chain
        )
        return
    receipt = write_child(plan, home.where)
    done = run_print(client, home, api, "go on now", resume=receipt.session_id)
    assert done.returncode == 0, done.stderr
    messages = [m for m in api.main_requests()[-1]["messages"] if m["role"] != "system"]
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    said = text_of_request(api.main_requests()[-1])
    assert LINEAGE_MARKER in said
    assert session_id in said
    assert _NEXT_STEP in said
    assert "tool_result" not in said
    assert hashlib.sha256(parent.read_bytes()).digest() == fingerprint


@pytest.mark.parametrize("name", one_in(3, SAMPLE_SESSIONS))
def test_five_children_resume_in_the_newest_client(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Children of five real sessions resume in the newest client.

    Some of the parents contain an image, a compaction, damage or an unanswered call. One is the
    largest session in the corpus.
    """
    check_child_resumes(_corpus_path(name), client, home, api)


@pytest.mark.whole_corpus
@pytest.mark.parametrize("name", ALL_SESSION_NAMES)
def test_every_child_resumes_in_every_client(
    name: str, every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A child of each session in the corpus resumes in each client."""
    check_child_resumes(_corpus_path(name), every_client, home, api)


def _corpus_path(name: str) -> Path:
    from tests.needs import corpus

    return corpus() / name
