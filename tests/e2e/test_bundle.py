"""Tests of a session that is exported on one machine, imported on another, and continued there."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.imports.read_bundle import unpack_bundle
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.import_ import (
    ImportedSession,
    ImportSpec,
    import_sessions,
)
from resume_hooks.reading.bundle import BundleRedactor, export_bundle
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import LineageFinder
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, ClientVersion, Tui, find_client
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import text_of_request
from tests.e2e.test_trim_corpus import resume_request
from tests.needs import corpus, one_in

SAMPLE_SESSIONS = (
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/df8230e3-7d29-4c72-9a88-d37f1793fdd9.jsonl",
    "entireio__cli/062a8bdd-4322-4ffa-bc38-3e8b8bfb5a56.jsonl",
)
IMPORT_REMARK = "The conversation below took place elsewhere and was imported from "
IGNORED_TEXT_BEGINNINGS = (IMPORT_REMARK, "<task-notification>")
"""Beginnings of texts that comparisons ignore: the remark that an import adds, and the client's
notification."""

_REMINDER_PATTERN = re.compile(r"[<\u2039]system-reminder>.*?[<\u2039]/system-reminder>", re.DOTALL)
"""A reminder that the client adds to messages and tool results.

An import replaces the brackets of its tags.
"""


def request_blocks(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the role and the JSON of each block of a request's conversation.

    The client's additions and the import's remark are left out. Thinking is left out too, because
    client 2.1.329 sends it only to the model that wrote it, and an imported session names no model.
    """
    return [
        (m["role"], json.dumps(block))
        for m in request["messages"]
        if m["role"] != "system"
        for block in _comparable_blocks(m)
    ]


def _comparable_blocks(message: dict[str, Any]) -> Iterator[Any]:
    content = message["content"]
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        bare = _remove_reminders(
            {key: value for key, value in block.items() if key != "cache_control"}
        )
        thought = bare["type"] in {"thinking", "redacted_thinking"}
        if (
            not thought
            and bare.get("text") != ""
            and not str(bare.get("text", "")).startswith(IGNORED_TEXT_BEGINNINGS)
        ):
            yield bare


def _remove_reminders(value: Any) -> Any:
    if isinstance(value, str):
        return _REMINDER_PATTERN.sub("", value).strip()
    if isinstance(value, dict):
        return {key: _remove_reminders(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [
            bare
            for inner in value
            if (bare := _remove_reminders(inner)) != {"type": "text", "text": ""}
        ]
    return value


def pack_sessions(sessions: list[Path], home: ClientHome) -> bytes:
    """Return a redacted bundle of the sessions."""
    files = [locate.session_file(str(session)) for session in sessions]
    return b"".join(export_bundle(files, home.where, BundleRedactor(Redactor())))


def import_bundle(
    bundle: bytes, other_machine: ClientHome, *, with_all_records: bool
) -> list[ImportedSession]:
    """Import a bundle on the other machine, and return the imported sessions."""
    path = other_machine.root / "x.bundle.json"
    path.write_bytes(bundle)
    folder = os.path.realpath(other_machine.cwd)
    with unpack_bundle(str(path), other_machine.where) as sessions:
        return import_sessions(
            sessions,
            str(path),
            ImportSpec(folder, with_all_records),
            Caller(other_machine.where),
        )


@pytest.mark.parametrize("name", one_in(2, SAMPLE_SESSIONS))
def test_a_bundle_continues_on_another_machine(
    name: str, client: ClientVersion, home: ClientHome, other_machine: ClientHome, api: MockApi
) -> None:
    """After an import, a session and its fork have the same ids, requests and lineage as the originals."""
    root = home.install_session(corpus() / name, str(uuid.uuid4()), set_cwd=True)
    child = write_child(fork.plan_fork(locate.session_file(str(root)), home.where), home.where)
    bundle = pack_sessions([root, Path(child.file)], home)
    before = request_blocks(resume_request(client, home, api, child.session_id))
    shutil.rmtree(home.config / "projects")
    found = import_bundle(bundle, other_machine, with_all_records=True)
    assert [came.session_id for came in found] == [root.stem, child.session_id]
    request = resume_request(client, other_machine, api, child.session_id)
    assert request_blocks(request) == before
    rows = LineageFinder(other_machine.where).find_lineage(found[1].receipt.file)
    assert [(row.session_id, row.status) for row in rows] == [
        (root.stem, "present"),
        (child.session_id, "present"),
    ]


def test_an_imported_conversation_is_sent_with_a_remark(
    every_client: ClientVersion, home: ClientHome, other_machine: ClientHome, api: MockApi
) -> None:
    """An imported session's request contains the conversation and one remark about the import."""
    root = home.install_session(corpus() / SAMPLE_SESSIONS[0], str(uuid.uuid4()), set_cwd=True)
    bundle = pack_sessions([root], home)
    before = request_blocks(resume_request(find_client(NEWEST_VERSION), home, api, root.stem))
    (came,) = import_bundle(bundle, other_machine, with_all_records=False)
    request = resume_request(every_client, other_machine, api, came.session_id)
    assert text_of_request(request).count(IMPORT_REMARK) == 1
    assert request_blocks(request) == before


def test_the_client_resumes_an_imported_session_by_its_id(
    client: ClientVersion, home: ClientHome, other_machine: ClientHome, api: MockApi
) -> None:
    """The client resumes an imported session by its id on the other machine."""
    root = home.install_session(corpus() / SAMPLE_SESSIONS[1], str(uuid.uuid4()), set_cwd=True)
    (came,) = import_bundle(pack_sessions([root], home), other_machine, with_all_records=True)
    with Tui(client, other_machine, api) as tui:
        tui.start(["--resume", came.session_id], must_be_ready=False)
        tui.wait_until_idle()
        tui.submit("and now")
        tui.wait_for("Mock reply 1")
    assert came.receipt.file.startswith(str(other_machine.config))
