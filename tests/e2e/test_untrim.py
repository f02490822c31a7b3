"""Tests with the real client that an untrimmed child sends exactly the contents of the original."""

from __future__ import annotations

import os
import uuid
from typing import Any

import pytest

from resume_hooks.derive import untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.sessions import locate
from tests.e2e.harness.client import ClientHome, ClientVersion
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.test_trim_corpus import resume_request
from tests.needs import corpus, one_in

TRIM_ALL_OPTIONS = Options(threshold=100, keep_recent=0, assistant=1_000, min_savings=0)
SAMPLE_SESSIONS = (
    "entireio__cli/130d7b7e-5801-4345-9bd6-f32fd9b8429b.jsonl",
    "teslamint__entirecontext/d29c2adb-9a9e-45ac-b435-bce63d920d59.jsonl",
    "obra__episodic-memory/long-conversation.jsonl",
)


@pytest.mark.parametrize("name", one_in(2, SAMPLE_SESSIONS))
def test_an_untrimmed_child_sends_the_original_contents(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """An untrimmed child sends the same blocks as the original session.

    The trimmed session from which the child was made is deleted before the child resumes.
    """
    parent = home.install_session(corpus() / name, str(uuid.uuid4()))
    twin = home.install_session(corpus() / name, str(uuid.uuid4()))
    decided = plan.plan_trim(
        plan.scan_session(locate.session_file(str(parent))), home.where, TRIM_ALL_OPTIONS
    )
    child = locate.session_file(write_child(decided, home.where).file)
    whole = write_child(untrim.plan_untrim(scan_trimmed_session(child), home.where), home.where)
    os.unlink(child.path)
    back, original = (
        blocks_of_request(resume_request(client, home, api, one))
        for one in (whole.session_id, twin.stem)
    )
    assert back == original


def blocks_of_request(request: dict[str, Any]) -> list[Any]:
    """Return the blocks of a request's conversation, without cache marks and the lineage."""
    found = []
    for said in request["messages"]:
        content = (
            said["content"]
            if isinstance(said["content"], list)
            else [{"type": "text", "text": said["content"]}]
        )
        found += [
            {key: value for key, value in block.items() if key != "cache_control"}
            for block in content
        ]
    return [
        block
        for block in found
        if not str(block.get("text", "")).startswith(("[SESSION LINEAGE]", "<system-"))
    ]
