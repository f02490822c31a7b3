"""Tests that ten clients work in the same home at the same time without losing or damaging data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from resume_hooks.search.index.connect import index_status, open_index
from resume_hooks.sessions.link_log import links_file, read_links
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.needs import REPO

CLIENT_COUNT, ROUND_COUNT = 10, 3
CLIENT_PROGRAM = """
import json, os, sys
from resume_hooks.hooks import context_notice as notice, prompt, session
from tests.fuzz.targets.hooks import run_hook_main
own, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
shared = os.path.join(os.path.dirname(path), own + ".jsonl")

def send(main, where, **event):
    number = os.path.basename(where).removesuffix(".jsonl")
    sent = {"session_id": number, "transcript_path": where, "cwd": "/home/user/proj", **event}
    out = run_hook_main(main, json.dumps(sent).encode())
    said = json.loads(out).get("reason", "") if out else ""
    assert "resume-hooks failed" not in said, said
    return said

print("ready", flush=True)
sys.stdin.readline()
for turn in range(rounds):
    for where in (path, shared):
        said = send(prompt.main, where, prompt=f">handoff step {turn} of {os.getpid()}")
        assert "handed off" in said, said
    assert " turns" in send(prompt.main, path, prompt=">search prompt")
    assert "Nothing needed" in send(prompt.main, path, prompt=">resume")
    send(prompt.main, path, prompt=f">mark goal {turn}")
    assert send(prompt.main, path, prompt="not ours") == ""
    send(notice.main, path, hook_event_name="Stop")
    send(session.main, path, hook_event_name="SessionEnd", reason="clear")
    send(session.main, shared, hook_event_name="SessionStart", source="clear")
    send(session.main, path, hook_event_name="SessionStart", source="startup")
print("done", flush=True)
"""


def test_ten_simultaneous_clients_lose_nothing(config_home: ConfigHome) -> None:
    """If ten clients hand off sessions at the same time, no child, link, title or index entry is lost.

    Each client starts, hands off its own session and a shared one, searches, asks a question, and
    ends. The sessions themselves stay unchanged.
    """
    folder = config_home.project()
    shared = write_session(folder, session_id(99), conversation(5))
    own = [
        write_session(folder, session_id(n), conversation(5)) for n in range(1, CLIENT_COUNT + 1)
    ]
    before = {path: Path(path).read_bytes() for path in (*own, shared)}
    clients = [_start_client(config_home, path, number) for number, path in enumerate(own)]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("go\n")
        client.stdin.flush()
    for client in clients:
        out, err = client.communicate(timeout=120)
        assert (out, err, client.returncode) == ("done\n", "", 0)
    assert {path: Path(path).read_bytes() for path in before} == before, "sources stay as they were"
    _check_children_and_index(config_home, folder, set(before))


def _start_client(home: ConfigHome, path: str, client_number: int) -> subprocess.Popen[str]:
    more = {
        "RESUME_HOOKS_CLIPBOARD": "none",
        "CLAUDE_PID": str(900_000 + client_number),
        "PATH": os.environ["PATH"],
    }
    environ = {**home.environ, **more, "PYTHONPATH": f"{REPO / 'src'}:{REPO}"}
    command = [sys.executable, "-c", CLIENT_PROGRAM, session_id(99), path, str(ROUND_COUNT)]
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    return subprocess.Popen(command, env=environ, **pipes)  # type: ignore[call-overload, no-any-return]


def _check_children_and_index(home: ConfigHome, folder: Path, sources: set[str]) -> None:
    children = [path for path in folder.glob("*.jsonl") if str(path) not in sources]
    assert len(children) == 2 * CLIENT_COUNT * ROUND_COUNT
    links = Counter(link.child_id for link in read_links(home.where) if link.kind == "handoff")
    assert set(links) >= {path.stem for path in children}, "no link is lost"
    for row in Path(links_file(home.where)).read_bytes().splitlines():
        assert isinstance(json.loads(row), dict)
    titles = Counter(_title_of(path) for path in children)
    assert max(titles.values()) == 1, "every number was given once"
    with open_index(home.where) as index:
        assert index.notes == []
        index.postings.verify_files()
        assert index.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (index_status(home.where).state, index_status(home.where).outdated_file_count) == (
        "ready",
        0,
    )
    left = [
        path.name
        for path in (home.config / "resume-hooks").rglob("*")
        if path.name.endswith((".tmp", ".begun"))
    ]
    assert left == []
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".resume-hooks")]


def _title_of(path: Path) -> str:
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if b"customTitle" in line]
    return str(rows[-1]["customTitle"])
