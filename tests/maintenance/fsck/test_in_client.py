"""Tests that each broken session resumes in the real client after its repair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.maintenance.fsck import repair
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage_block import LINEAGE_START_MARKER
from resume_hooks.sessions.session_files import session_file
from tests.builders import SESSION
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    ClientHome,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.maintenance.fsck.cases import CASES, Case

NEW_PROMPT = "THE NEW PROMPT"
INSERTED_TEXT_BEGINNINGS = ("<system-reminder>", "No response requested", LINEAGE_START_MARKER)
REPAIRED_CASES = [case for case in CASES if case.repaired_outline]
CASES_AND_VERSIONS = [
    *(
        pytest.param(case, NEWEST_VERSION, marks=[pytest.mark.wide] if at % 3 else [])
        for at, case in enumerate(REPAIRED_CASES)
    ),
    *(
        pytest.param(case, OLDEST_VERSION, marks=pytest.mark.wide)
        for case in REPAIRED_CASES
        if case.severity == "error"
    ),
]

pytestmark = pytest.mark.e2e


def outline_request(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the messages of a request in the form of ``Case.repaired_outline``, up to the new prompt.

    Raises AssertionError if thinking has no signature.
    """
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            assert block["type"] != "thinking" or (block["signature"] and block["thinking"])
            if block["type"] == "tool_use":
                yield f"call:{block['id']}"
            elif block["type"] == "tool_result":
                yield f"result:{block['tool_use_id']}"
            elif block["type"] == "text" and not block["text"].startswith(INSERTED_TEXT_BEGINNINGS):
                assert block["text"].strip()
                before, found, _ = block["text"].partition(NEW_PROMPT)
                yield before.strip()
                if found:
                    return


@pytest.mark.parametrize(
    ("case", "version"),
    CASES_AND_VERSIONS,
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_repaired_child_can_be_resumed(case: Case, version: str, tmp_path: Path) -> None:
    """Clients send exactly the repaired messages of a child, beginning with a user's message.

    The most important cases also run on the oldest client.
    """
    client = find_client(version)
    home = ClientHome(tmp_path / "home")
    path = home.install_session(case.content, SESSION)
    environ = {"HOME": str(home.root), "CLAUDE_CONFIG_DIR": str(home.config)}
    receipt = write_child(
        repair.plan_repair(session_file(str(path)), Where(environ)), Where(environ)
    )
    with MockApi() as api:
        result = run_print(client, home, api, NEW_PROMPT, resume=receipt.session_id)
        requests = api.main_requests()
    assert result.returncode == 0, result.stderr
    spoken = [message for message in requests[0]["messages"] if message["role"] != "system"]
    assert spoken[0]["role"] == "user"
    assert " ".join(filter(None, outline_request(spoken))) == case.repaired_outline
