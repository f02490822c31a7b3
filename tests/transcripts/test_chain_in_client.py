"""Tests that compare the live chain with the requests that the real client sends on resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import SESSION, session_bytes
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.needs import one_in
from tests.transcripts.chain_cases import CHAIN_CASES, Case

NEW_PROMPT = "THE NEW PROMPT"
INSERTED_TEXTS = ("<system-reminder>", "No response requested", "Continue from where")

pytestmark = pytest.mark.e2e


def outline_request(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the messages of a request in the format of ``expected_messages`` in chain_cases.py.

    The client's own texts, the new prompt and everything after it are omitted.
    """
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                yield f"call:{block['id']}"
            elif block["type"] == "tool_result":
                yield f"result:{block['tool_use_id']}"
            elif block["type"] == "text" and not block["text"].startswith(INSERTED_TEXTS):
                before, found, _ = block["text"].partition(NEW_PROMPT)
                yield before.strip()
                if found:
                    return


@pytest.mark.parametrize("case", one_in(3, CHAIN_CASES), ids=lambda case: case.name)
def test_the_client_sends_the_chain_of_each_case(case: Case, tmp_path: Path) -> None:
    """The newest client sends the expected messages when it resumes the transcript of each case."""
    client = find_client(NEWEST_VERSION)
    home = ClientHome(tmp_path / "home")
    home.install_session(session_bytes(case.records), SESSION)
    with MockApi() as api:
        result = run_print(client, home, api, NEW_PROMPT, resume=SESSION)
        requests = api.main_requests()
    assert result.returncode == 0, result.stderr
    assert (
        " ".join(filter(None, outline_request(requests[0]["messages"]))) == case.expected_messages
    )
