"""Tests that a fork of a real session, whole or cut, sends the same messages as its parent.

Each fork is compared with the request that the newest client sends when it resumes the parent. For
a cut fork, this client resumes the parent with ``--resume-session-at``. Each test run uses only a
few sessions; ``make test-all`` uses thirty sessions and all clients.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import uuid
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.cut_point import CutAtRecord, CutBeforeCompaction, CutSelector
from resume_hooks.errors import NothingToFork
from resume_hooks.paths import is_session_id
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage_block import LINEAGE_START_MARKER
from resume_hooks.transcripts.linearize import find_max_valid_record_count, linearize_chain
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.placeholders import MISSING_RESULT_TEXT
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from tests.builders import (
    SESSION,
    assistant,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
)
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    VERSIONS,
    ClientHome,
    ClientVersion,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.needs import corpus, corpus_folder, corpus_sessions, one_in
from tests.search.index.probe import uuid_of_text

NEW_PROMPT = "go on now"
CUTS_PER_SESSION = 2
"""Number of random records per session. Each session is cut after each of these records."""

SAMPLE_SESSIONS = (
    "_cli_generated/2.0.76/-home-user-gen-2-0-76-proj/a282734a-4845-4796-9000-170faa81ba03.jsonl",
    "_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/759d0644-d434-4a88-94fb-d7821cb06853.jsonl",
    "entireio__git-sync/88db7fea-797f-49be-9036-c762ae804ce0.jsonl",
    "obra__episodic-memory/large-conversation.jsonl",
)
"""Sessions with unusual contents.

They have parallel calls, a compaction that kept messages, an unanswered call, or no first prompt.
"""

SESSION_WITH_UNANSWERED_CALL = SAMPLE_SESSIONS[2]
"""The session with an unanswered call, which old clients read differently."""

ALL_SESSION_NAMES = [str(path.relative_to(corpus_folder())) for path in corpus_sessions()]
THIRTY_SESSION_NAMES = sorted(
    ALL_SESSION_NAMES, key=lambda name: hashlib.sha256(name.encode()).digest()
)[:30]

REMINDER_PATTERN = re.compile(r"<(system-reminder|task-notification)>.*?</\1>\s*", re.DOTALL)
"""A text that the client adds, for example the date, tools, skills, environment or reports.

Its location depends on the client's version.
"""

TEXTS_INSERTED_BY_CLIENTS = {
    "",
    "No response requested.",
    "(no content)",
    "[Request interrupted by user]",
    MISSING_RESULT_TEXT,
}
MISSING_RESULT_BEGINNINGS = (MISSING_RESULT_TEXT, "[Tool call interrupted:", "[Tool result missing")
"""Beginnings of the results that replace missing results of unanswered calls.

They are written by resume-hooks, the newest client or older clients.
"""

REMOVED_REFERENCES_BEGINNING = "[Tool references removed"
"""The beginning of a result from which references to unavailable tools were removed.

The reason that follows it depends on the client's version.
"""

CLEARED_RESULT_BEGINNINGS = (
    "<persisted-output>Tool result saved to",
    "[Old tool result content cleared]",
)
"""Texts that an old client sends in place of results if the whole context is too large for it."""

RequestRows = list[tuple[str, str, str]]


def rows_of_request(request: dict[str, Any]) -> RequestRows:
    """Return a request's conversation without the client's additions.

    Each row contains a kind, a role or id, and a text.
    """
    rows: RequestRows = []
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        rows += (
            row
            for block in blocks
            if message["role"] != "system"
            for row in rows_of_block(message["role"], block)
        )
    while rows and rows[-1][:2] == ("text", "user"):
        # Remove the prompt, or the summary request that an old client sends instead if the context
        # is too large for it.
        rows.pop()
    return rows


def rows_of_block(role: str, block: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield those contents of a block that the tests compare.

    Each is a tuple: the kind, the role or the id, and the text.
    """
    if block["type"] == "text":
        text = REMINDER_PATTERN.sub("", block["text"]).strip()
        if text not in TEXTS_INSERTED_BY_CLIENTS:
            yield "text", role, text
    elif block["type"] == "tool_use":
        # The client adds the present text of the plan file to the input of this call.
        given = {} if block["name"] == "ExitPlanMode" else block["input"]
        yield "tool_use", block["id"], str(sorted(given.items()))
    elif block["type"] == "tool_result":
        content = block.get("content") or ""
        texts = (
            [content]
            if isinstance(content, str)
            else [inner.get("text", "[media]") for inner in content]
        )
        text = REMINDER_PATTERN.sub("", "\n".join(texts)).strip()
        known = next(
            (
                mark
                for marks in (
                    MISSING_RESULT_BEGINNINGS,
                    CLEARED_RESULT_BEGINNINGS,
                    (REMOVED_REFERENCES_BEGINNING,),
                )
                for mark in marks
                if text.startswith(mark)
            ),
            text,
        )
        yield (
            "tool_result",
            block["tool_use_id"],
            MISSING_RESULT_BEGINNINGS[0] if known in MISSING_RESULT_BEGINNINGS else known,
        )
    elif block["type"] not in {"thinking", "redacted_thinking"}:
        # Which thinking the client sends depends on the model.
        yield block["type"], role, str(block.get("source"))


def resume_request(
    client: ClientVersion, home: ClientHome, api: MockApi, name: str, *extra_arguments: str
) -> RequestRows:
    """Resume a session with a prompt, and return the messages of the client's request."""
    api.clear_requests()
    done = run_print(client, home, api, NEW_PROMPT, resume=name, extra_args=extra_arguments)
    assert done.returncode == 0, done.stderr
    return rows_of_request(api.main_requests()[0])


def client_environ(home: ClientHome) -> dict[str, str]:
    """Return the environment in which the plugin's commands run in a client's home."""
    return {**os.environ, "CLAUDE_CONFIG_DIR": str(home.config), "HOME": str(home.root)}


def fork_receipt(home: ClientHome, parent: Path, cut: CutSelector | None = None) -> Receipt:
    """Fork a session, and return the receipt."""
    return write_child(
        fork.plan_fork(locate.session_file(str(parent)), home.where, cut=cut), home.where
    )


def install_corpus_session(home: ClientHome, name: str) -> Path:
    """Copy a session of the corpus into the client's home, and return the path of the copy."""
    source = corpus() / name
    return home.install_session(
        source, source.stem if is_session_id(source.stem) else str(uuid.uuid4())
    )


def install_copy_of_session(home: ClientHome, parent: Path) -> str:
    """Copy a session and return the copy's id, because the client changes a session that it resumes."""
    return home.install_session(parent.read_bytes(), str(uuid.uuid4())).stem


def cuttable_nodes(transcript: Transcript) -> list[Node]:
    """Return the messages after which a fork can be cut exactly.

    A cut after a different message would be moved, for example to the position after a call's
    result.
    """
    row = linearize_chain(transcript.chain)
    begun = next(
        (place for place, node in enumerate(row.nodes) if node.is_prompt or node.is_summary),
        len(row.nodes),
    )
    return [
        node
        for place, node in enumerate(row.nodes, 1)
        if node.is_message and place > begun and find_max_valid_record_count(row, place) == place
    ]


def remove_lineage_row(rows: RequestRows) -> RequestRows:
    """Return the rows without the text that contains the lineage.

    A fork has this text if its conversation begins with an answer.
    """
    return [
        row for row in rows if not (row[0] == "text" and row[2].startswith(LINEAGE_START_MARKER))
    ]


def differing_rows(older_rows: RequestRows, newest_rows: RequestRows) -> list[Any]:
    """Return the pairs of rows that differ between the requests of an older client and the newest one.

    If the older client cleared a result, this is not a difference.
    """
    pairs = list(zip_longest(remove_lineage_row(older_rows), newest_rows))
    return [
        (one, other) for one, other in pairs if one != other and not is_cleared_result(one, other)
    ]


def is_cleared_result(
    older_row: tuple[str, str, str] | None, newest_row: tuple[str, str, str] | None
) -> bool:
    """Check whether ``older_row`` is the same result as ``newest_row``, but cleared by an old client."""
    return (
        older_row is not None
        and newest_row is not None
        and older_row[:2] == newest_row[:2]
        and older_row[2] in CLEARED_RESULT_BEGINNINGS
    )


def check_fork_requests(
    cut: Node | None, parent: Path, clients: Sequence[ClientVersion], home: ClientHome, api: MockApi
) -> None:
    """Check that each client sends the same messages for a fork as the newest client sends for the parent.

    Older clients read some files differently. If so, the older client's request for the fork must
    equal its request for the parent, and must contain every call and result of the newest client's
    request.
    """
    at = ("--resume-session-at", cut.uuid) if cut else ()
    newest = resume_request(
        find_client(NEWEST_VERSION), home, api, install_copy_of_session(home, parent), *at
    )
    for client in clients:
        child = fork_receipt(home, parent, CutAtRecord(cut.uuid) if cut else None)
        assert not cut or child.warnings == ()
        found, wanted = resume_request(client, home, api, child.session_id), newest
        if client.version != NEWEST_VERSION and differing_rows(found, wanted):
            assert ids_of_calls_and_results(found) == ids_of_calls_and_results(wanted)
            wanted = resume_request(client, home, api, install_copy_of_session(home, parent), *at)
        assert differing_rows(found, wanted) == [], (client.version, at)


def ids_of_calls_and_results(rows: RequestRows) -> list[tuple[str, str]]:
    """Return the sorted kinds and ids of calls and results."""
    return sorted(row[:2] for row in rows if row[0].startswith("tool_"))


def check_forks_at_random_cuts(
    name: str, versions: Sequence[str], home: ClientHome, api: MockApi
) -> None:
    """Make a whole fork and forks at random messages of a session, and check the requests of each client."""
    parent = install_corpus_session(home, name)
    fingerprint = hashlib.sha256(parent.read_bytes()).digest()
    clients = [find_client(version) for version in versions]
    try:
        check_fork_requests(None, parent, clients, home, api)
    except NothingToFork:
        return
    places = cuttable_nodes(scan_transcript(str(parent)))
    for node in random.Random(name).sample(places, min(CUTS_PER_SESSION, len(places))):
        check_fork_requests(node, parent, clients, home, api)
    assert hashlib.sha256(parent.read_bytes()).digest() == fingerprint


@pytest.mark.parametrize("name", one_in(4, SAMPLE_SESSIONS))
def test_forks_of_a_sample_send_their_parents_messages(
    name: str, home: ClientHome, api: MockApi
) -> None:
    """Forks of the sample sessions, whole and at two random cuts each, send their parents' messages.

    All forks are resumed with the newest client. The session with an unanswered call is also tested
    with the oldest client.
    """
    check_forks_at_random_cuts(
        name,
        (OLDEST_VERSION, NEWEST_VERSION)
        if name == SESSION_WITH_UNANSWERED_CALL
        else (NEWEST_VERSION,),
        home,
        api,
    )


@pytest.mark.whole_corpus
@pytest.mark.parametrize(
    "name",
    THIRTY_SESSION_NAMES + [name for name in SAMPLE_SESSIONS if name not in THIRTY_SESSION_NAMES],
)
def test_forks_of_thirty_sessions_send_their_parents_messages(
    name: str, home: ClientHome, api: MockApi
) -> None:
    """Forks of thirty sessions and of the sample sessions send their parents' messages.

    The forks contain the whole session or are cut at random messages.
    """
    check_forks_at_random_cuts(name, VERSIONS, home, api)


@pytest.mark.parametrize(
    "name", [SAMPLE_SESSIONS[1], "entireio__cli/8ef64fdd-df8c-41f2-ac32-d9471671f062.jsonl"]
)
def test_a_fork_before_a_compaction_sends_the_old_messages(
    name: str, home: ClientHome, api: MockApi
) -> None:
    """A fork from before the last compaction sends the messages of a copy that ends at the compaction."""
    parent = install_corpus_session(home, name)
    before = parent.read_bytes()
    lines = before.splitlines(keepends=True)
    end = max(
        number for number, line in enumerate(lines) if b'"subtype":"compact_boundary"' in line
    )
    earlier = home.install_session(b"".join(lines[:end]), str(uuid.uuid4())).stem
    newest = find_client(NEWEST_VERSION)
    child = fork_receipt(home, parent, CutBeforeCompaction())
    assert (
        differing_rows(
            resume_request(newest, home, api, child.session_id),
            resume_request(newest, home, api, earlier),
        )
        == []
    )
    assert parent.read_bytes() == before


def branched_session(name: str) -> bytes:
    """Return a session with a first turn, an abandoned second turn, and the turn that replaced the second."""
    rows = [
        user("first", uuid=uuid_of_text(1), ts=1, session_id=name),
        tool_use(
            "toolu_1",
            uuid=uuid_of_text(2),
            parent=uuid_of_text(1),
            ts=2,
            name="Bash",
            tool_input={"command": "ls"},
        ),
        tool_result("toolu_1", "OUTPUT", uuid=uuid_of_text(3), parent=uuid_of_text(2), ts=3),
        assistant("done", uuid=uuid_of_text(4), parent=uuid_of_text(3), ts=4),
        user("LEFT", uuid=uuid_of_text(5), parent=uuid_of_text(4), ts=5),
        assistant("left", uuid=uuid_of_text(6), parent=uuid_of_text(5), ts=6),
        user("TAKEN", uuid=uuid_of_text(7), parent=uuid_of_text(4), ts=7),
        assistant("taken", uuid=uuid_of_text(8), parent=uuid_of_text(7), ts=8),
    ]
    return session_bytes({**row, "sessionId": name} for row in rows)


def test_a_fork_can_resume_an_abandoned_branch(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A fork can end in a branch that the user abandoned.

    The client's own ``--resume-session-at`` does not find the records of this branch.
    """
    parent = home.install_session(branched_session(SESSION), SESSION)
    copy = home.install_session(branched_session(session_id(2)), session_id(2))
    done = run_print(
        every_client,
        home,
        api,
        NEW_PROMPT,
        resume=copy.stem,
        extra_args=["--resume-session-at", uuid_of_text(6)],
    )
    assert done.returncode != 0
    assert "No message found" in done.stderr + str(done.events)
    made = fork_receipt(home, parent, CutAtRecord(uuid_of_text(6)))
    texts = [
        text
        for kind, _, text in resume_request(every_client, home, api, made.session_id)
        if kind == "text"
    ]
    assert texts == ["first", "done", "LEFT", "left"]


def test_a_fork_after_a_call_keeps_its_result(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A fork at a call also contains the result of the call.

    The client's own ``--resume-session-at`` separates the call from its result.
    """
    parent = home.install_session(branched_session(SESSION), SESSION)
    copy = home.install_session(branched_session(session_id(2)), session_id(2))
    theirs = resume_request(
        every_client, home, api, copy.stem, "--resume-session-at", uuid_of_text(2)
    )
    assert "OUTPUT" not in [text for _, _, text in theirs]
    made = fork_receipt(home, parent, CutAtRecord(uuid_of_text(2)))
    assert made.warnings == ("The cut moved forward to record 2, so that no tool call is split.",)
    assert resume_request(every_client, home, api, made.session_id)[-1] == (
        "tool_result",
        "toolu_1",
        "OUTPUT",
    )
