"""Helpers that write secrets to every file of a session and search for those that remain.

The secrets are composed at run time, so that no file of the project contains one.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from resume_hooks import seam
from resume_hooks.archive import link_sessions
from resume_hooks.archive.vault import archive_session, delete
from resume_hooks.derive import fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.trim_in_place import trim_in_place
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import open_index
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived import manifest, unpack
from resume_hooks.sessions.session_files import session_file
from resume_hooks.storage import stored_settings
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    chain_record,
    last_prompt,
    line,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
)

OLD_FILE_TIME = 1_000_000_000.0
UNRELATED_SESSION_ID = session_id(77)
"""The id of a session that contains a secret but is not related to the session of
``plant_secrets``."""

THINKING_BLOCK = {"type": "thinking", "signature": "c2lnbmVk" * 8}


def make_secret(number: int = 0) -> str:
    """Return a text in the form of a GitHub token that belongs to no account."""
    signs = "q7Rt2VbXk9LmW4pZc8NdY5hJf3GsT6uA1eQo"
    return "gh" + "p_" + signs[number:] + signs[:number]


SECRETS = tuple(make_secret(number) for number in range(3))


class PlantedHome(NamedTuple):
    """A home with a session that contains secrets, and the paths of its children."""

    home: ConfigHome
    path: Path
    children: tuple[Path, ...]


def records_with_secrets() -> list[Record]:
    """Return a session with secrets in each kind of record, on each branch."""
    one, two, three = SECRETS
    asked = [{"question": f"use {one}?"}]
    read = f"SOUGHT_TOKEN={one}\n" + "filler line\n" * 400
    return [
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "timestamp": "2026-01-31T09:29:00.000Z",
            "content": one,
        },
        user(f"my token is {one}", uuid="u0", ts=0),
        assistant(
            [{**THINKING_BLOCK, "thinking": f"they gave {one}"}],
            uuid="t0",
            parent="u0",
            ts=1,
            message_id="m0",
        ),
        assistant(
            f"I keep {one} in mind", uuid="a0", parent="t0", ts=2, message_id="m0", tokens=9_000
        ),
        assistant(
            [{**THINKING_BLOCK, "thinking": f"only {two}"}],
            uuid="t9",
            parent="a0",
            ts=3,
            message_id="m9",
        ),
        user(f"a dead branch with {two}", uuid="dead", parent="t9", ts=4),
        user("go on", uuid="u1", parent="t9", ts=5),
        tool_use(
            "c1",
            uuid="a1",
            parent="u1",
            ts=6,
            name="Bash",
            tool_input={"command": f"curl -H 'X: {two}'"},
        ),
        tool_result(
            "c1",
            read,
            uuid="r1",
            parent="a1",
            ts=7,
            toolUseResult={"stdout": read, "stderr": quote(two)},
        ),
        tool_use(
            "c2",
            uuid="a2",
            parent="r1",
            ts=8,
            name="AskUserQuestion",
            tool_input={"questions": asked},
        ),
        tool_result(
            "c2",
            "ok",
            uuid="r2",
            parent="a2",
            ts=9,
            toolUseResult={"answers": {f"use {one}?": "yes"}},
        ),
        tool_use(
            "c3", uuid="a3", parent="r2", ts=10, name="Bash", tool_input={"command": "cat big"}
        ),
        tool_result(
            "c3",
            f"<persisted-output>saved to: /x/{SESSION}/tool-results/big.txt</persisted-output>",
            uuid="r3",
            parent="a3",
            ts=11,
        ),
        chain_record(
            "attachment",
            uuid="at",
            parent="r3",
            ts=12,
            session_id=SESSION,
            attachment={
                "type": "file",
                "content": json.dumps({"k": three}),
                "rendered": f"<f>{three}</f>",
            },
        ),
        assistant("Done with all of it.", uuid="a4", parent="at", ts=13, tokens=20_000),
        {
            "type": "api-request-blob",
            "hash": "00",
            "message": {"role": "user", "content": [{"text": one}]},
        },
        {"type": "summary", "summary": f"about {two}", "leafUuid": "a4"},
        {"type": "ai-title", "aiTitle": f"Use of {one}", "sessionId": SESSION},
        {"type": "custom-title", "customTitle": f"Token {one}", "sessionId": SESSION},
        {"type": "tag", "tag": "kept", "sessionId": SESSION},
        {**last_prompt("a4"), "lastPrompt": f"and {three}"},
    ]


def lines_with_unusual_secrets() -> list[bytes]:
    """Return lines with secrets in unusual forms, for example in base64 or outside JSON."""
    one, two, _ = SECRETS
    wrapped = base64.b64encode(f"user:{one}:x".encode()).decode()
    escaped = "".join(
        f"\\u{ord(sign):04x}" if place % 5 == 0 else sign for place, sign in enumerate(two)
    )
    return [
        b"no JSON " + one.encode(),
        b'{ "type": "strange", "note": "' + escaped.encode() + b'" }\r',
        line({"type": "strange", "basic": wrapped, "nested": json.dumps(json.dumps({"t": one}))}),
    ]


def write_old_file(path: Path, content: bytes) -> Path:
    """Write a file with an old modification time and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)
    os.utime(path, (OLD_FILE_TIME, OLD_FILE_TIME))
    return path


def plant_secrets(home: ConfigHome) -> PlantedHome:
    """Write a session with children, copies and other files that all contain secrets."""
    one, two, three = SECRETS
    project, where = home.project(), home.where
    torn = b'{"torn": "' + three.encode()
    path = write_old_file(
        project / f"{SESSION}.jsonl",
        session_bytes(records_with_secrets()) + b"\n".join([*lines_with_unusual_secrets(), torn]),
    )
    own = project / SESSION
    write_old_file(own / "tool-results" / "big.txt", f"line\ntoken {two}\n".encode())
    agent = [
        user(f"look for {one}", uuid="s0", isSidechain=True),
        assistant("none", uuid="s1", parent="s0"),
    ]
    write_old_file(own / "subagents" / "agent-1.jsonl", session_bytes(agent))
    write_old_file(
        own / "subagents" / "agent-1.meta.json",
        json.dumps({"agentType": "x", "description": two}).encode(),
    )
    write_old_file(project / "agent-2.jsonl", session_bytes(agent))
    write_old_file(project / "agent-2.meta.json", json.dumps({"description": one}).encode())
    write_old_file(
        project / f".{SESSION}.jsonl.2026-01-31T09-30-00.000Z.moving", session_bytes(agent)
    )
    write_old_file(project / f"{SESSION}.jsonl.bak", session_bytes(records_with_secrets()))
    write_old_file(home.config / "file-history" / SESSION / "0a@v1", f"KEY={one}\n".encode())
    children = tuple(_write_children(home, path))
    write_old_file(
        project / f"{UNRELATED_SESSION_ID}.jsonl",
        session_bytes([user(f"also {one}", uuid="o0"), assistant("ok", uuid="o1")]),
    )
    archive_session.archive_session(session_file(str(children[0])), where)
    archive_session.archive_session(session_file(str(path)), where)
    write_old_file(
        home.config / "history.jsonl",
        line({"display": f"my token is {one}", "sessionId": SESSION}) + b"\n",
    )
    write_old_file(home.config / "paste-cache" / "ab.txt", three.encode())
    write_old_file(
        home.config / "settings.json", json.dumps({"env": {"SOUGHT_TOKEN": two}}).encode()
    )
    note = {"version": 1, "opening": f"next: {one}"}
    write_old_file(
        home.config / "resume-hooks" / "pending" / "waiting-x", json.dumps(note).encode()
    )
    if seam.is_installed("documents"):
        document = write_old_file(
            home.root / "docs" / "2026-01-31-token-11111111.md", f"# Token {one}\n".encode()
        )
        stored_settings.store_setting("handoff_dir", str(document.parent), where)
    with open_index(where):
        pass
    lost = write_old_file(own / "subagents" / "agent-3.jsonl", session_bytes(agent))
    link_sessions.link_all_sessions(where, lambda: False)
    lost.unlink()
    return PlantedHome(home, path, children)


def _write_children(home: ConfigHome, path: Path) -> Iterator[Path]:
    """Yield a trimmed child, its fork, and a fork that was trimmed in place.

    The function also makes a fourth child and deletes it.
    """
    environ = home.environ
    options = Options(threshold=100, keep_recent=0, min_savings=0)
    reading = plan.scan_session(session_file(str(path)))
    trimmed = Path(
        write_child(plan.plan_trim(reading, Where(environ), options), Where(environ)).file
    )
    forked = Path(
        write_child(fork.plan_fork(session_file(str(trimmed)), Where(environ)), Where(environ)).file
    )
    rewritten = Path(
        write_child(fork.plan_fork(session_file(str(path)), Where(environ)), Where(environ)).file
    )
    gone = Path(
        write_child(fork.plan_fork(session_file(str(path)), Where(environ)), Where(environ)).file
    )
    for child in (trimmed, forked, rewritten, gone):
        os.utime(child, (OLD_FILE_TIME, OLD_FILE_TIME))
    trim_in_place(session_file(str(rewritten)), options, Caller(Where(environ)))
    delete.move_to_trash(
        delete.plan_delete(session_file(str(gone)), Where(environ)), Where(environ)
    )
    yield from (trimmed, forked, rewritten)


def find_secrets_by_path(
    home: ConfigHome, secrets: Sequence[str] = SECRETS
) -> dict[str, list[str]]:
    """Map the path of each file that contains secrets to these secrets.

    The files in the packs of archived sessions are included. A file with several hard links is
    listed once.
    """
    found: dict[str, list[str]] = {}
    links = set(Path(held_links.links_folder(home.where)).rglob("*")) - set(
        map(Path, held_links.links_without_client_file(home.where))
    )
    for path in sorted(set(home.root.rglob("*")) - links):
        if path.is_file() and (
            told := [text for text in secrets if _contains_secret(text, path.read_bytes())]
        ):
            found[str(path.relative_to(home.root))] = told
    for kept in manifest.list_archived(home.where):
        for place, content in _unpack_archived_files(kept):
            if told := [text for text in secrets if _contains_secret(text, content)]:
                found[f"vault: {kept.session_id}/{place}"] = told
    return found


def _unpack_archived_files(
    archived_session: manifest.ArchivedSession,
) -> Iterator[tuple[str, bytes]]:
    for part, pieces in unpack.read_pack_contents(
        archived_session.folder, list(archived_session.all_parts)
    ):
        yield part.place, b"".join(pieces)


def _contains_secret(text: str, content: bytes) -> bool:
    """Check whether the bytes contain a secret in any form.

    The index stores a secret in lower case, and other files store it escaped or in base64.
    """
    lowered = content.lower()
    cores = [
        base64.b64encode(bytes(shift) + text.encode()).decode()[4:-4].encode() for shift in range(3)
    ]
    escaped = "".join(
        f"\\u{ord(sign):04x}" if place % 5 == 0 else sign for place, sign in enumerate(text)
    )
    words = [text.encode().lower(), escaped.encode().lower(), text[4:].encode().lower()]
    return any(word in lowered for word in words) or any(core in content for core in cores)
