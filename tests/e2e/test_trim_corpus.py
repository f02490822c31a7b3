"""Tests that a trimmed child of every real session resumes in the real client.

Every call still has its result. On the newest client, the children's requests are compared with the
parent's request. Each test run uses a sample of sessions; ``make test-all`` uses all sessions and
clients.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.errors import NothingToTrim
from resume_hooks.paths import is_session_id
from resume_hooks.sessions import locate
from resume_hooks.transcripts.records import get_message
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.trimmable_pieces import MEDIA_PIECE, THINKING_PIECE
from tests.derive.trim.sessions import get_chain_rewrite
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    ClientHome,
    ClientVersion,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import LINEAGE_MARKER, text_of_request
from tests.needs import corpus, corpus_folder, corpus_sessions, one_in

OPTIONS_BY_NAME = {
    "defaults": Options(min_savings=0),
    "everything": Options(threshold=100, keep_recent=0, assistant=1_000, min_savings=0),
    "bash": Options(tools=("bash",), threshold=100, keep_recent=1, min_savings=0),
}
SAMPLE_SESSIONS = (
    "_cli_generated/2.0.76/-home-user-gen-2-0-76-proj/a282734a-4845-4796-9000-170faa81ba03.jsonl",
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/759d0644-d434-4a88-94fb-d7821cb06853.jsonl",
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__cli/062a8bdd-4322-4ffa-bc38-3e8b8bfb5a56.jsonl",
    "entireio__cli/839b35f7-4dbd-4d93-9772-3c272cc87caa.jsonl",
    "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl",
    "gmeligio__flutter-docker-image/5e12a303-c989-4291-a42d-bc1eb620afea.jsonl",
    "obra__episodic-memory/large-conversation.jsonl",
    "obra__episodic-memory/long-conversation.jsonl",
    "teslamint__entirecontext/d29c2adb-9a9e-45ac-b435-bce63d920d59.jsonl",
)
ALL_SESSION_NAMES = [str(path.relative_to(corpus_folder())) for path in corpus_sessions()]


def compare_trimmed_children(
    name: str,
    client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    settings: Sequence[str] = tuple(OPTIONS_BY_NAME),
) -> None:
    """Trim a session with each of the ``settings``, and compare the children's requests with the parent's."""
    source = corpus() / name
    parent = home.install_session(
        source, source.stem if is_session_id(source.stem) else str(uuid.uuid4())
    )
    fingerprint = hashlib.sha256(parent.read_bytes()).digest()
    try:
        reading = plan.scan_session(locate.session_file(str(parent)))
    except NothingToTrim:
        assert not any(node.is_message for node in scan_transcript(str(parent)).chain)
        return
    # Without the copy, the client would change the session that it resumes.
    twin = home.install_session(source, str(uuid.uuid4()))
    whole = resume_request(find_client(NEWEST_VERSION), home, api, twin.stem)
    known = signed_thinking(
        [
            get_message(reading.transcript.read_record(n)).get("content")
            for n in reading.transcript.chain
        ]
    )
    for setting in settings:
        decided = plan.plan_trim(reading, home.where, OPTIONS_BY_NAME[setting])
        if not decided.is_worthwhile:
            continue
        trimmed = resume_request(client, home, api, write_child(decided, home.where).session_id)
        assert LINEAGE_MARKER in text_of_request(trimmed)
        assert count_block_values(trimmed, "tool_use", "id") == count_block_values(
            whole, "tool_use", "id"
        )
        assert count_block_values(trimmed, "tool_result", "tool_use_id") == count_block_values(
            whole, "tool_result", "tool_use_id"
        )
        assert signed_thinking([message["content"] for message in trimmed["messages"]]) <= known
        check_dropped_texts_are_not_sent(decided, trimmed)
    assert hashlib.sha256(parent.read_bytes()).digest() == fingerprint


def resume_request(
    client: ClientVersion, home: ClientHome, api: MockApi, session_id: str
) -> dict[str, Any]:
    """Resume a session with a prompt, and return the client's request."""
    api.clear_requests()
    done = run_print(client, home, api, "go on now", resume=session_id)
    assert done.returncode == 0, done.stderr
    return api.main_requests()[-1]


def count_block_values(request: dict[str, Any], block_type: str, key: str) -> Counter[str]:
    """Count how often each value of ``key`` occurs in the request's blocks of the given kind."""
    contents = [m["content"] for m in request["messages"] if isinstance(m["content"], list)]
    return Counter(
        block.get(key)
        for content in contents
        for block in content
        if block.get("type") == block_type
    )


def signed_thinking(contents: list[Any]) -> Counter[tuple[str, str]]:
    """Return the thinking blocks that have a signature.

    The client sends only some of these blocks, depending on the model. The tests therefore compare
    the blocks in the sessions' files.
    """
    rows = [block for content in contents if isinstance(content, list) for block in content]
    return Counter(
        (block["thinking"], block["signature"]) for block in rows if block.get("type") == "thinking"
    )


def check_dropped_texts_are_not_sent(plan: TrimPlan, request: dict[str, Any]) -> None:
    """Check that the request contains no dropped text, unless the same text also occurs elsewhere."""
    said = json.dumps(request["messages"], ensure_ascii=False)
    kept = Path(plan.draft.path).read_text(encoding="utf-8", errors="replace")
    assert any(choice.placeholder in said for choice in plan.choices)
    for text in dropped_texts(plan):
        encoded = json.dumps(text, ensure_ascii=False)[1:-1]
        assert encoded not in said or encoded in kept


def dropped_texts(plan: TrimPlan) -> Iterator[str]:
    """Yield the texts that a plan drops completely."""
    transcript = scan_transcript(get_chain_rewrite(plan).source_path)
    nodes = {node.line_number: node for node in transcript.chain}
    for choice in plan.choices:
        value: Any = transcript.read_record(nodes[choice.piece.line_number])
        for key in choice.piece.address:
            value = value[key]
        if choice.piece.kind == MEDIA_PIECE:
            yield str(value["source"].get("data", value))
        else:
            yield value["signature"] if choice.piece.kind == THINKING_PIECE else value


@pytest.mark.parametrize("name", one_in(3, SAMPLE_SESSIONS))
def test_ten_trimmed_children_resume_in_the_newest_client(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Ten trimmed sessions resume in the newest client.

    Some of the sessions have compactions, images, parallel calls or damage, or come from old
    clients. One is the largest session. Each is trimmed with the setting that trims most, and two
    are also trimmed with every other setting. tests/derive/trim/test_corpus.py checks the files of
    every session with every setting.
    """
    compare_trimmed_children(
        name,
        client,
        home,
        api,
        tuple(OPTIONS_BY_NAME) if name in SAMPLE_SESSIONS[:2] else ("everything",),
    )


@pytest.mark.whole_corpus
@pytest.mark.parametrize("name", ALL_SESSION_NAMES)
def test_every_trimmed_child_resumes_in_every_client(
    name: str, every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A trimmed child of each session in the corpus resumes in each client."""
    compare_trimmed_children(name, every_client, home, api)
