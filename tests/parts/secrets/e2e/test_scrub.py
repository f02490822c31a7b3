"""Tests that a scrubbed session sends the same requests in the real client, except for the secrets."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.parts.secrets import child, findings
from resume_hooks.parts.secrets.findings import REMAINING_STATE, ScrubFindings
from resume_hooks.parts.secrets.purge import remove_secrets_from_files
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import session_file
from tests.builders import assistant, session_bytes, tool_result, tool_use, user
from tests.e2e.harness.client import ClientHome, ClientVersion
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.test_fork import RequestRows, client_environ, resume_request
from tests.needs import corpus, one_in
from tests.parts.secrets.scrub.planting import SECRETS, THINKING_BLOCK

SAMPLE_TRANSCRIPTS = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/759d0644-d434-4a88-94fb-d7821cb06853.jsonl",
    "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl",
)
"""Two real sessions: the first has a compaction that kept messages, and the second has several
kinds of calls and results."""

SECRET_PLACEHOLDER = "[secret removed: github-pat]"


def session_full_of_secrets(content: bytes) -> bytes:
    """Return the session with a secret in every text except thinking."""
    return b"\n".join(
        _add_secret_to_line(line, number) for number, line in enumerate(content.split(b"\n"))
    )


def _add_secret_to_line(line: bytes, line_number: int) -> bytes:
    record = json.loads(line) if line.startswith(b"{") else None
    if record is None or record.get("type") not in {"user", "assistant"}:
        return line
    _add_secret(record, SECRETS[line_number % len(SECRETS)])
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _add_secret(record: dict[str, Any], secret: str) -> None:
    message = record.get("message") or {}
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = f"{content} token={secret}"
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            block["text"] += f" token={secret}"
        elif block.get("type") == "tool_result" and isinstance(block.get("content"), str):
            block["content"] += f"\n{secret}"
    if isinstance(record.get("toolUseResult"), dict):
        record["toolUseResult"]["told"] = secret


def request_without_secrets(rows: RequestRows) -> RequestRows:
    """Return the request with placeholders instead of the secrets."""
    secrets = re.compile("|".join(SECRETS))
    return [(kind, name, secrets.sub(SECRET_PLACEHOLDER, text)) for kind, name, text in rows]


def scan_idle_session(home: ClientHome, path: Path) -> ScrubFindings:
    """Search a session for secrets after setting its last write to ten minutes ago."""
    os.utime(path, (time.time() - 600,) * 2)
    return findings.search_all_files(session_file(str(path)), Where(client_environ(home)))


def assert_requests_match_after_scrub(
    content: bytes, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Check that a session sends the same requests after a scrub, except for the secrets.

    Both the scrubbed child and the session that was scrubbed in place are checked.
    """
    path = home.install_session(content, str(uuid.uuid4()))
    # A client writes to the session that it resumes, so a copy is resumed.
    twin = home.install_session(content, str(uuid.uuid4()))
    whole = resume_request(client, home, api, twin.stem)
    assert any(secret in text for secret in SECRETS for _, _, text in whole)
    twin.unlink()
    shutil.rmtree(twin.with_suffix(""), ignore_errors=True)
    before = path.read_bytes()

    found = scan_idle_session(home, path)
    made = write_child(
        child.plan_scrubbed_child(
            found.session, Where(client_environ(home)), found.scanning_cleaner
        ),
        Where(client_environ(home)),
    )
    assert path.read_bytes() == before
    assert resume_request(client, home, api, made.session_id) == request_without_secrets(whole)

    rows = remove_secrets_from_files(scan_idle_session(home, path), Where(client_environ(home)))
    assert [row for row in rows if row.scrub_state == REMAINING_STATE] == []
    assert str(path) not in {
        row.location.path for row in scan_idle_session(home, path).locations_to_change
    }
    assert resume_request(client, home, api, path.stem) == request_without_secrets(whole)
    # The message with which the client sets the effort is empty.
    messages = api.main_requests()[0]["messages"]
    assert all(message["content"] for message in messages if "output_config" not in message)


@pytest.mark.parametrize("name", one_in(2, SAMPLE_TRANSCRIPTS))
def test_scrubbed_real_sessions_send_the_same_requests_without_secrets(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Real sessions send the same requests after a scrub, except for the secrets."""
    assert_requests_match_after_scrub(
        session_full_of_secrets((corpus() / name).read_bytes()), client, home, api
    )


def session_with_secret_thinking() -> bytes:
    """Return a session whose thinking always contains a secret.

    Some thinking precedes a call, and some is the only content of its message.
    """
    one = SECRETS[0]
    thought = {**THINKING_BLOCK, "thinking": f"the token is {one}"}
    rows = [user(f"use {one}", uuid=str(uuid.uuid4()), ts=0)]
    for number in range(3):
        call, answer, ts = f"toolu_{number}", f"m{number}", 10 * number
        told = assistant(
            [thought], uuid=str(uuid.uuid4()), parent=rows[-1]["uuid"], ts=ts + 1, message_id=answer
        )
        use = tool_use(
            call, uuid=str(uuid.uuid4()), parent=told["uuid"], ts=ts + 2, message_id=answer
        )
        rows += [told, use]
        rows.append(
            tool_result(call, f"got {one}", uuid=str(uuid.uuid4()), parent=use["uuid"], ts=ts + 3)
        )
    alone = assistant(
        [thought], uuid=str(uuid.uuid4()), parent=rows[-1]["uuid"], ts=40, message_id="m9"
    )
    rows += [alone, user("and now?", uuid=str(uuid.uuid4()), parent=alone["uuid"], ts=41)]
    rows.append(assistant("Done.", uuid=str(uuid.uuid4()), parent=rows[-1]["uuid"], ts=42))
    return session_bytes(rows)


def test_thinking_with_a_secret_is_removed_from_requests(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Thinking with a secret is removed completely, and no empty message is sent."""
    assert_requests_match_after_scrub(session_with_secret_thinking(), every_client, home, api)
